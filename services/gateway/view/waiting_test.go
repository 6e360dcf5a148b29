package view_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/services/gateway/view"
)

func TestNoStepOfAChangeThatHasLeftComesBeforeOthersAfterARestart(t *testing.T) {
	prepared := func(build, change string) *eventsv1.BuildPrepared {
		return &eventsv1.BuildPrepared{Build: build, Change: refOf(change), Outcome: eventsv1.PreparationOutcome_PREPARATION_OUTCOME_PREPARED, Versions: []*eventsv1.TargetVersion{{Target: "//t", Hash: change}}}
	}
	q := view.New(main, view.DefaultLimits())
	put(q, events.TopicChanges, &eventsv1.ChangeAdmitted{Admission: admissionOf("red")})
	put(q, events.TopicChanges, &eventsv1.ChangeRejected{Change: refOf("red"), Reason: &eventsv1.Reason{Failed: []*eventsv1.Proof{{Version: &eventsv1.TargetVersion{Target: "//t", Hash: "red"}, Attempt: 1}}}})
	put(q, events.TopicChanges, &eventsv1.ChangeAdmitted{Admission: admissionOf("next")})
	put(q, events.TopicDecisions, scheduled("b1", "red"))
	put(q, events.TopicDecisions, scheduled("b2", "next"))
	put(q, events.TopicBuilds, prepared("b1", "red"))
	put(q, events.TopicBuilds, &eventsv1.StepFinished{Target: "//t", Hash: "red", Attempt: 1, Build: "b1", Outcome: eventsv1.StepOutcome_STEP_OUTCOME_FAILED})
	put(q, events.TopicBuilds, prepared("b2", "next"))
	if w := q.Waiting("next", time.Unix(1, 0)); w == nil || w.Before != 0 || w.Sentence != "//t is next for a worker." {
		t.Errorf("the step that waits: %+v", w)
	}
}

// TestARunningStepHasNothingOfTheAttemptBefore, and began when its lease was given, not when that was extended.
func TestARunningStepHasNothingOfTheAttemptBefore(t *testing.T) {
	q := view.New(main, view.DefaultLimits())
	put(q, events.TopicChanges, &eventsv1.ChangeAdmitted{Admission: admissionOf("a")})
	put(q, events.TopicDecisions, scheduled("b1", "a"))
	put(q, events.TopicBuilds, &eventsv1.BuildPrepared{Build: "b1", Change: refOf("a"), Outcome: eventsv1.PreparationOutcome_PREPARATION_OUTCOME_PREPARED, Versions: []*eventsv1.TargetVersion{{Target: "//t", Hash: "h"}}})
	put(q, events.TopicBuilds, &eventsv1.StepFinished{Target: "//t", Hash: "h", Attempt: 1, Build: "b1", Outcome: eventsv1.StepOutcome_STEP_OUTCOME_FAILED, FinishedUs: 5e6, Decisive: []string{"no"}, FailedCommand: "test", Log: "one.log"})
	began := time.Unix(100, 0).UTC()
	for extended := range time.Duration(3) {
		put(q, events.TopicBuilds, &eventsv1.StepLeased{Target: "//t", Hash: "h", Attempt: 2, Lease: "l", Worker: "w", Build: "b1", StampUs: began.Add(extended * time.Minute).UnixMicro()})
	}
	running := func() view.Step {
		c, _ := q.Change("a")
		return c.Builds[0].Steps[0]
	}
	if s := running(); s.State != view.StepRunning || s.Attempt != 2 || s.Worker != "w" || !s.StartedAt.Equal(began) || !s.FinishedAt.IsZero() || len(s.Lines) > 0 || s.FailedCommand != "" || s.Log != "" {
		t.Errorf("the running step is %+v", s)
	}
	put(q, events.TopicBuilds, &eventsv1.StepLeased{Target: "//t", Hash: "h", Attempt: 2, Lease: "of another", Worker: "w2", Build: "b1", StampUs: began.Add(time.Hour).UnixMicro()})
	if s := running(); !s.StartedAt.Equal(began.Add(time.Hour)) {
		t.Errorf("a step that another worker has taken over began at %v", s.StartedAt)
	}
}

// TestAStepThatWaitsForACacheIsShownSo, also for a change whose build shares it.
func TestAStepThatWaitsForACacheIsShownSo(t *testing.T) {
	q := view.New(main, view.DefaultLimits())
	for _, change := range []string{"a", "b"} {
		put(q, events.TopicChanges, &eventsv1.ChangeAdmitted{Admission: admissionOf(change)})
		put(q, events.TopicDecisions, scheduled("of "+change, change))
		put(q, events.TopicBuilds, &eventsv1.BuildPrepared{Build: "of " + change, Change: refOf(change), Outcome: eventsv1.PreparationOutcome_PREPARATION_OUTCOME_PREPARED,
			Versions: []*eventsv1.TargetVersion{{Target: "//s", Hash: "h"}, {Target: "//t", Hash: "h"}, {Target: "//u", Hash: "of " + change}}})
	}
	lease := func(id, filling string, at int64, targets ...string) {
		l := &eventsv1.StepLeased{Target: targets[0], Hash: "h", Attempt: 1, Lease: id, Build: "of a", StampUs: at * 1e6, UntilUs: (at + 30) * 1e6, Filling: filling}
		for _, more := range targets[1:] {
			l.Group = append(l.Group, &eventsv1.LeasedVersion{Target: more, Hash: "h", Attempt: 1})
		}
		put(q, events.TopicBuilds, l)
	}
	expect := func(when, running, step string) {
		t.Helper()
		for _, change := range []string{"a", "b"} {
			e, _ := q.Explain(change)
			c, _ := q.Change(change)
			if !slices.ContainsFunc(e.Reasons, func(r view.Reason) bool { return r.Sentence == "A build is running: 0 of 3 steps done"+running+"." }) {
				t.Errorf("%s, %s: %+v", when, change, e.Reasons)
			}
			if got := c.Builds[0].Steps[1]; got.State != view.StepRunning || got.Message != step {
				t.Errorf("%s, %s: the step is %+v", when, change, got)
			}
		}
	}
	lease("l", "", 100, "//s", "//t")
	expect("leased", "", "")
	lease("l", "go-build", 101, "//s", "//t")
	expect("filling", "; the cache go-build is filled from the mainline first", "The cache go-build is filled from the mainline first.")
	lease("l", "", 150, "//s", "//t")
	expect("filled", "", "")
}

func TestAGroupOfStepsKeepsOneWorkerBusy(t *testing.T) {
	q := view.New(main, view.DefaultLimits())
	put(q, events.TopicSpeculations, &eventsv1.Profile{Delta: &eventsv1.GraphDelta{Settings: &eventsv1.QueueSettings{PoolWorkers: 2}}})
	put(q, events.TopicBuilds, &eventsv1.StepLeased{Target: "//a", Hash: "h", Attempt: 1, Lease: "l1", Group: []*eventsv1.LeasedVersion{{Target: "//b", Hash: "h", Attempt: 1}}})
	put(q, events.TopicBuilds, &eventsv1.StepLeased{Target: "//c", Hash: "h", Attempt: 1, Lease: "l2"})
	if p := q.Overview().Pool; p == nil || p.Running != 3 || p.Busy != 2 {
		t.Errorf("the pool: %+v", p)
	}
}

// TestNoMoreWorkersAreBusyThanRunSteps: the lease of a worker that was killed lapses, and one that is written while another holds gives
// nobody the right to run.
func TestNoMoreWorkersAreBusyThanRunSteps(t *testing.T) {
	q := view.New(main, view.DefaultLimits())
	put(q, events.TopicSpeculations, &eventsv1.Profile{Delta: &eventsv1.GraphDelta{Settings: &eventsv1.QueueSettings{PoolWorkers: 2}}})
	lease := func(target, id string, at, until int64, group ...*eventsv1.LeasedVersion) {
		put(q, events.TopicBuilds, &eventsv1.StepLeased{Target: target, Hash: "h", Attempt: 1, Lease: id, StampUs: at * 1e6, UntilUs: until * 1e6, Group: group})
	}
	expect := func(busy, running int) {
		t.Helper()
		if p := q.Overview().Pool; p == nil || p.Running != running || p.Busy != busy {
			t.Errorf("the pool: %+v, want %d busy and %d steps", p, busy, running)
		}
	}
	lease("//a", "l1", 100, 130, &eventsv1.LeasedVersion{Target: "//b", Hash: "h", Attempt: 1})
	lease("//c", "l2", 100, 130)
	lease("//a", "l3", 120, 150) // too early
	expect(2, 3)
	lease("//c", "l2", 125, 155) // its worker lives, the other one does not
	lease("//d", "l4", 140, 170)
	expect(2, 2)
	put(q, events.TopicBuilds, &eventsv1.StepFinished{Target: "//d", Hash: "h", Attempt: 1, Outcome: eventsv1.StepOutcome_STEP_OUTCOME_PASSED, FinishedUs: 150e6})
	expect(1, 1)
	lease("//a", "l5", 151, 180)
	expect(2, 2)
}

func TestAStepOfABuildThatHasHadTooLittleIsExplained(t *testing.T) {
	at := func(second int64, build, change string) *eventsv1.Decision {
		d := scheduled(build, change)
		d.StampUs = second * 1e6
		d.Items[0].GetBuildScheduled().Value = 1
		return d
	}
	prepared := func(build, change string, steps int) *eventsv1.BuildPrepared {
		p := &eventsv1.BuildPrepared{Build: build, Change: refOf(change), Outcome: eventsv1.PreparationOutcome_PREPARATION_OUTCOME_PREPARED}
		for i := range steps {
			p.Versions = append(p.Versions, &eventsv1.TargetVersion{Target: fmt.Sprintf("//%s%d", change, i), Hash: change})
		}
		return p
	}
	q := view.New(main, view.DefaultLimits())
	for _, change := range []string{"endless", "large", "small"} {
		put(q, events.TopicChanges, &eventsv1.ChangeAdmitted{Admission: admissionOf(change)})
	}
	put(q, events.TopicDecisions, at(1, "b1", "endless"))
	put(q, events.TopicDecisions, at(1, "b2", "large"))
	put(q, events.TopicBuilds, prepared("b1", "endless", 1))
	put(q, events.TopicBuilds, prepared("b2", "large", 100))
	put(q, events.TopicBuilds, &eventsv1.StepFinished{Target: "//endless0", Hash: "endless", Attempt: 1, Build: "b1", Outcome: eventsv1.StepOutcome_STEP_OUTCOME_TIMED_OUT, StartedUs: 1e6, FinishedUs: 3001e6})
	put(q, events.TopicDecisions, at(4999, "b3", "small"))
	put(q, events.TopicBuilds, prepared("b3", "small", 1))
	if w := q.Waiting("small", time.Unix(5000, 0)); w == nil || !w.First.Late || w.Step.Late || w.First.Index >= w.Step.Index ||
		w.Sentence != "//small0 waits for a worker: 100 steps are before it, first //large0 of large (with a fair share of the workers it would have been over long ago)." {
		t.Errorf("the step that waits: %+v", w)
	}
}
