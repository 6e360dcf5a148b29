package steps

import (
	"fmt"
	"testing"

	eventsv1 "landfall.build/events/v1"
)

// TestWhereNobodyChoosesNothingIsKeptOfBuildsThatAreGone: a gateway folds what workers choose their steps by, and may never be asked.
func TestWhereNobodyChoosesNothingIsKeptOfBuildsThatAreGone(t *testing.T) {
	q := New()
	for i := range 10_000 {
		build := fmt.Sprint("b", i)
		q.Apply(&eventsv1.Decision{Items: []*eventsv1.DecisionItem{{Item: &eventsv1.DecisionItem_BuildScheduled{BuildScheduled: &eventsv1.BuildScheduled{Build: build}}}}}, Origin{})
		q.Apply(&eventsv1.BuildPrepared{
			Build: build, Outcome: eventsv1.PreparationOutcome_PREPARATION_OUTCOME_PREPARED, Versions: []*eventsv1.TargetVersion{{Target: "//t", Hash: build}},
		}, Origin{})
		if i >= 10 {
			q.Apply(&eventsv1.Decision{Items: []*eventsv1.DecisionItem{{Item: &eventsv1.DecisionItem_BuildAborted{BuildAborted: &eventsv1.BuildAborted{Build: build}}}}}, Origin{})
		}
	}
	if n := len(q.choice.changed); n > 200 {
		t.Errorf("%d builds are kept, and 10 are live", n)
	}
	if list := q.Next(0, 100, nil, nil); len(list) != 10 {
		t.Errorf("%d steps are offered by 10 builds", len(list))
	}
}
