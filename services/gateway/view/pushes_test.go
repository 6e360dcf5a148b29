package view_test

import (
	"strings"
	"testing"
	"time"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/services/gateway/api/apitest"
	"landfall.build/services/gateway/view"
)

// TestADirectPushIsNamedWhereAChangeWaitsForIt: by its commit, its author and its subject, which are bounded and harmless.
func TestADirectPushIsNamedWhereAChangeWaitsForIt(t *testing.T) {
	s := begin(t)
	s.land("a")
	at := apitest.Commit("main")
	push := func(commit, author, title string, targets ...string) {
		id := apitest.Commit(commit)
		s.Fold(main, events.TopicChanges, &eventsv1.MainlineMoved{From: at, To: id, Author: author, Title: title})
		s.Graph(main, &eventsv1.GraphDelta{Mainline: &eventsv1.Mainline{Head: id}, Nodes: []*eventsv1.Node{{Change: apitest.Ref("a"), Analyzed: true}}})
		if name := events.ShortID(id); !strings.Contains(s.why("a"), name) {
			t.Errorf("before %s is analysed: %s", name, s.why("a"))
		}
		f := &eventsv1.MainlineAnalyzed{From: at, To: id, Affected: &eventsv1.Affected{}}
		for _, target := range targets {
			f.Affected.Targets = append(f.Affected.Targets, &eventsv1.TargetVersion{Target: target, Hash: commit})
		}
		s.Fold(main, events.TopicChanges, f)
		at = id
	}
	push("one", "Ada <ada@example.com>", "mend the cart", "//cart")
	push("two", "Eve\x1b[31m <eve@example.com>", strings.Repeat("long ", 1000), "//docs")
	s.Graph(main, &eventsv1.GraphDelta{Mainline: &eventsv1.Mainline{Head: at, Analyzed: true}, Nodes: []*eventsv1.Node{{Change: apitest.Ref("a"), Analyzed: true, Classes: []*eventsv1.Class{blockedIn("//cart")}}}})
	if why, want := s.why("a"), "A direct push ("+events.ShortID(apitest.Commit("one"))+" by Ada, “mend the cart”) changed //cart"; !strings.HasPrefix(why, want) {
		t.Errorf("a waits for %q, not for %q", why, want)
	}
	s.Graph(main, &eventsv1.GraphDelta{Nodes: []*eventsv1.Node{{Change: apitest.Ref("a"), Analyzed: true, Classes: []*eventsv1.Class{blockedIn("//docs")}}}})
	if why := s.why("a"); !strings.Contains(why, events.ShortID(apitest.Commit("two"))) || strings.Contains(why, "\x1b") || len(why) > 400 {
		t.Errorf("a waits for %q", why)
	}
}

// TestThePushThatBrokeATargetIsNamed: the first one that gave it another version since the last that is known to be green. Where the
// versions between have no results, it is one of several.
func TestThePushThatBrokeATargetIsNamed(t *testing.T) {
	s := begin(t)
	s.land("a")
	waits := "a"
	at := apitest.Commit("main")
	push := func(commit string, affected *eventsv1.Affected) {
		id := apitest.Commit(commit)
		s.Fold(main, events.TopicChanges, &eventsv1.MainlineMoved{From: at, To: id, Author: "Ada <ada@example.com>", Title: commit})
		s.Fold(main, events.TopicChanges, &eventsv1.MainlineAnalyzed{From: at, To: id, Affected: affected})
		at = id
	}
	cart := func(hash string) *eventsv1.TargetVersion {
		return &eventsv1.TargetVersion{Target: "//cart", Hash: hash}
	}
	const failedUs = 1_700_000_002_000_000
	step := func(hash string, outcome eventsv1.StepOutcome) {
		finished := int64(failedUs)
		if hash != "v2" {
			finished += 1_000_000
		}
		s.Fold(main, events.TopicBuilds, &eventsv1.StepFinished{Target: "//cart", Hash: hash, Attempt: 1, Outcome: outcome, FinishedUs: finished})
	}
	name := func(commit string) string {
		return events.ShortID(apitest.Commit(commit)) + " by Ada, “" + commit + "”"
	}
	pushed := ""
	expect := func(by string) {
		t.Helper()
		hash := pushed
		s.Graph(main, &eventsv1.GraphDelta{Mainline: &eventsv1.Mainline{Head: at, Analyzed: true}, Nodes: []*eventsv1.Node{
			{Change: apitest.Ref(waits), Analyzed: true, Classes: []*eventsv1.Class{blockedIn("//cart")}},
			{Change: &eventsv1.ChangeRef{}, Mainline: true, Analyzed: true, Classes: []*eventsv1.Class{{Targets: []*eventsv1.TargetVersion{cart(hash)}, Outcomes: []*eventsv1.Outcome{{State: eventsv1.OutcomeState_OUTCOME_STATE_RED, Version: cart(hash)}}}}},
		}})
		if why := s.why(waits); !strings.HasPrefix(why, by+" broke //cart on the mainline itself; the change waits until that is repaired.") {
			t.Errorf("it waits for %q, not because of %q", why, by)
		}
	}
	of := func(hash string) *eventsv1.Affected {
		pushed = hash
		return &eventsv1.Affected{Targets: []*eventsv1.TargetVersion{cart(hash)}}
	}
	push("green", of("v1"))
	step("v1", eventsv1.StepOutcome_STEP_OUTCOME_PASSED)
	push("breaks", of("v2"))
	push("other", &eventsv1.Affected{Targets: []*eventsv1.TargetVersion{{Target: "//docs", Hash: "d"}}})
	step("v2", eventsv1.StepOutcome_STEP_OUTCOME_FAILED)
	expect("A direct push (" + name("breaks") + ")")
	push("later", of("v3"))
	step("v3", eventsv1.StepOutcome_STEP_OUTCOME_FAILED)
	expect("A direct push (" + name("breaks") + ")")
	s.Read(main, func(q *view.Queue) {
		o := q.Overview()
		if r := o.RedSince; r == nil || r.Commit != apitest.Commit("breaks") || r.Author != "Ada" || r.Title != "breaks" || r.Suspects != 1 || !r.At.Equal(time.UnixMicro(failedUs)) {
			t.Errorf("the mainline is red since %+v, want the push %s", r, name("breaks"))
		}
	})

	s.LandIt(main, "a", "build-a", nil, "//cart") // which repairs it
	s.land("b")
	waits = "b"
	push("one", of("v5"))
	push("all", &eventsv1.Affected{All: true, Targets: []*eventsv1.TargetVersion{{Target: "//:repository", Hash: "w"}}})
	push("two", of("v6"))
	step("v6", eventsv1.StepOutcome_STEP_OUTCOME_FAILED)
	expect("One of 3 direct pushes (" + name("one") + "; " + name("all") + "; " + name("two") + ")")
	step("v5", eventsv1.StepOutcome_STEP_OUTCOME_PASSED)
	expect("One of 2 direct pushes (" + name("all") + "; " + name("two") + ")")
	s.Fold(main, events.TopicBuilds, &eventsv1.StepFinished{Target: "//:repository", Hash: "w", Attempt: 1, Outcome: eventsv1.StepOutcome_STEP_OUTCOME_PASSED})
	expect("A direct push (" + name("two") + ")")
}

func blockedIn(target string) *eventsv1.Class {
	v := &eventsv1.TargetVersion{Target: target, Hash: "h"}
	return &eventsv1.Class{Targets: []*eventsv1.TargetVersion{v}, Outcomes: []*eventsv1.Outcome{{State: eventsv1.OutcomeState_OUTCOME_STATE_BLOCKED, Version: v}}}
}

func (s *transcript) why(change string) string {
	sum, _, _, _ := s.look(change)
	return sum.Why
}
