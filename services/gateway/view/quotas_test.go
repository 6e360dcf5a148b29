package view_test

import (
	"fmt"
	"testing"
	"time"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/services/gateway/view"
)

// bound has two changes of Ada's, one of Bob's that conflicts with her first one, and a build of so many steps of each, whose tree is
// made. One of her steps runs for each that she may have.
func bound(quotas *eventsv1.Quotas, running int) *view.Queue {
	q := view.New(main, view.DefaultLimits())
	delta := &eventsv1.GraphDelta{Settings: &eventsv1.QueueSettings{Hash: "s", Pool: "default", PoolWorkers: 8, Quotas: quotas}, Mainline: &eventsv1.Mainline{Head: "m", Analyzed: true}}
	for i, change := range []string{"large", "more", "behind"} {
		a := admissionOf(change)
		a.Author = "Ada <ada@example.com>"
		n := &eventsv1.Node{Change: refOf(change), Position: int64(i + 1), Analyzed: true, Classes: []*eventsv1.Class{{Targets: []*eventsv1.TargetVersion{{Target: "//" + change}}}}}
		if change == "behind" {
			a.Author = "Bob"
			n.Ahead = []*eventsv1.Ahead{{Change: refOf("large"), Conflicts: true, Targets: []string{"//x"}}}
		}
		put(q, events.TopicChanges, &eventsv1.ChangeAdmitted{Admission: a})
		delta.Nodes = append(delta.Nodes, n)
	}
	put(q, events.TopicSpeculations, &eventsv1.Profile{Delta: delta})
	for _, change := range []string{"large", "more"} {
		put(q, events.TopicDecisions, scheduled("of "+change, change))
		p := &eventsv1.BuildPrepared{Build: "of " + change, Change: refOf(change), Outcome: eventsv1.PreparationOutcome_PREPARATION_OUTCOME_PREPARED}
		for i := range 4 {
			p.Versions = append(p.Versions, &eventsv1.TargetVersion{Target: fmt.Sprintf("//%s%d", change, i), Hash: change})
		}
		put(q, events.TopicBuilds, p)
	}
	for i := range running {
		put(q, events.TopicBuilds, &eventsv1.StepLeased{Target: fmt.Sprint("//large", i), Hash: "large", Attempt: 1, Lease: fmt.Sprint(i), Build: "of large", UntilUs: 1 << 60, Quotas: []*eventsv1.StepQuota{
			{Kind: eventsv1.QuotaKind_QUOTA_KIND_QUEUE, Limit: 9}, {Kind: eventsv1.QuotaKind_QUOTA_KIND_TEAM, Name: "web", Limit: 9}, {Kind: eventsv1.QuotaKind_QUOTA_KIND_AUTHOR, Name: "ada@example.com", Limit: 9}}})
	}
	return q
}

// sentences are those of a change's reasons, with their codes.
func sentences(q *view.Queue, change string) (list []string) {
	c, _ := q.Change(change)
	for _, r := range c.Reasons {
		list = append(list, r.Code+": "+r.Sentence)
	}
	return list
}

func TestWhoIsOverQuotaReadsWhy(t *testing.T) {
	q := bound(&eventsv1.Quotas{Author: 3}, 3)
	for change, want := range map[string]string{
		"large":  "[building: A build is running: 0 of 4 steps done. quota: It waits: ada@example.com has 3 of 3 steps running (quotas.author).]",
		"more":   "[quota: It waits: ada@example.com has 3 of 3 steps running (quotas.author). building: A build waits for a worker.]",
		"behind": "[ahead: large is ahead of it and conflicts with it in //x; large waits: ada@example.com has 3 of 3 steps running (quotas.author).]",
	} {
		if got := fmt.Sprint(sentences(q, change)); got != want {
			t.Errorf("%s: %s\nwant %s", change, got, want)
		}
	}
	w := q.Waiting("more", time.Unix(1, 0))
	if w == nil || w.Step != nil || w.BeforeMore || *w.Quota != (view.Quota{Of: "author", Name: "ada@example.com", Steps: 3, Running: 3}) ||
		w.Sentence != "4 steps of it wait: ada@example.com has 3 of 3 steps running (quotas.author)." {
		t.Errorf("what waits: %+v", w)
	}
	causes := map[string]string{}
	q.Waits(func(w view.Wait) { causes[w.Change] = w.Cause })
	if causes["large"] != view.CauseBuild || causes["more"] != view.CauseQuota || causes["behind"] == view.CauseQuota {
		t.Errorf("causes: %v", causes)
	}
	put(q, events.TopicBuilds, &eventsv1.StepFinished{Target: "//large0", Hash: "large", Attempt: 1, Build: "of large", Outcome: eventsv1.StepOutcome_STEP_OUTCOME_PASSED})
	if got := fmt.Sprint(sentences(q, "more")); got != "[building: A build waits for a worker.]" {
		t.Errorf("once a step has ended: %s", got)
	}
	if w := q.Waiting("more", time.Unix(1, 0)); w == nil || w.Quota == nil || w.Sentence != "4 steps of it wait: ada@example.com may have 3 steps running at the same time (quotas.author), and others come first." {
		t.Errorf("what waits behind her other steps: %+v", w)
	}
}

func TestTheTeamAndTheQueueAreNamedIfTheyAreFull(t *testing.T) {
	for sentence, quotas := range map[string]*eventsv1.Quotas{
		"It waits: team web has 2 of 2 steps running (quotas.teams).":  {Author: 4, Teams: []*eventsv1.TeamQuota{{Name: "web", Who: []string{"ada@*"}, Steps: 2}}},
		"It waits: the queue has 2 of 1 step running (quotas.queue).":  {Queue: 1},
		"It waits: the queue has 2 of 2 steps running (quotas.queue).": {Queue: 2, Author: 3},
	} {
		if got := sentences(bound(quotas, 2), "more"); len(got) == 0 || got[0] != "quota: "+sentence {
			t.Errorf("%v: %q, want %q", quotas, got, sentence)
		}
	}
}

func TestAnUrgentChangeWaitsForNoQuota(t *testing.T) {
	q := bound(&eventsv1.Quotas{Author: 3}, 3)
	put(q, events.TopicChanges, &eventsv1.ChangeMoved{Change: "more"})
	if got := fmt.Sprint(sentences(q, "more")); got != "[building: A build waits for a worker.]" {
		t.Errorf("its reasons: %s", got)
	}
}
