package view_test

import (
	"fmt"
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
