package view_test

import (
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

func TestAGroupOfStepsKeepsOneWorkerBusy(t *testing.T) {
	q := view.New(main, view.DefaultLimits())
	put(q, events.TopicSpeculations, &eventsv1.Profile{Delta: &eventsv1.GraphDelta{Settings: &eventsv1.QueueSettings{PoolWorkers: 2}}})
	put(q, events.TopicBuilds, &eventsv1.StepLeased{Target: "//a", Hash: "h", Attempt: 1, Lease: "l1", Group: []*eventsv1.LeasedVersion{{Target: "//b", Hash: "h", Attempt: 1}}})
	put(q, events.TopicBuilds, &eventsv1.StepLeased{Target: "//c", Hash: "h", Attempt: 1, Lease: "l2"})
	if p := q.Overview().Pool; p == nil || p.Running != 3 || p.Busy != 2 {
		t.Errorf("the pool: %+v", p)
	}
}
