package view

import (
	"testing"

	"google.golang.org/protobuf/proto"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/journal"
)

// TestABuildHasPassedOnceAllVersionsAreProven, in whatever order, and its versions are not all counted for each one: a build of a change that
// affects 100,000 targets would be counted as often, and meanwhile nobody is answered.
func TestABuildHasPassedOnceAllVersionsAreProven(t *testing.T) {
	for _, order := range [][]string{{"//a", "//b", "//c"}, {"//c", "//b", "//a"}, {"//b", "//c", "//a"}, {"//c", "//a", "//b"}} {
		q, offset := New("main", DefaultLimits()), int64(0)
		fold := func(topic string, m proto.Message) {
			e := journal.Entry{Topic: topic, Offset: offset}
			e.Message = m
			offset++
			q.Fold(e)
		}
		c := &eventsv1.ChangeRef{Change: "c", Revision: 1}
		fold(events.TopicChanges, &eventsv1.ChangeAdmitted{Admission: &eventsv1.Admission{Queue: "main", Change: "c", Revision: 1}})
		fold(events.TopicDecisions, &eventsv1.Decision{Items: []*eventsv1.DecisionItem{{Item: &eventsv1.DecisionItem_BuildScheduled{BuildScheduled: &eventsv1.BuildScheduled{
			Build: "b", Change: &eventsv1.AssumedChange{Change: c}}}}}})
		fold(events.TopicBuilds, &eventsv1.BuildPrepared{Build: "b", Change: c, Outcome: eventsv1.PreparationOutcome_PREPARATION_OUTCOME_PREPARED,
			Versions: []*eventsv1.TargetVersion{{Target: "//a", Hash: "h"}, {Target: "//t", Trivial: true}, {Target: "//b", Hash: "h"}, {Target: "//c", Hash: "h"}}})
		b := q.builds.byID["b"]
		for i, target := range order {
			if b.passed || b.counted.at != 0 {
				t.Errorf("%v: before the last step the build has passed (%t), or its steps were counted (%d)", order, b.passed, b.counted.at)
			}
			end := &eventsv1.StepFinished{Target: target, Hash: "h", Attempt: 1, Build: "b", Outcome: eventsv1.StepOutcome_STEP_OUTCOME_FAILED}
			fold(events.TopicBuilds, end)
			end = proto.CloneOf(end)
			end.Attempt, end.Outcome = 2, eventsv1.StepOutcome_STEP_OUTCOME_PASSED
			fold(events.TopicBuilds, end)
			if i == len(order)-1 && !b.passed {
				t.Errorf("%v: the build has not passed", order)
			}
		}
	}
}
