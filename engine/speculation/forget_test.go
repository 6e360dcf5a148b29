package speculation

import (
	"fmt"
	"testing"

	"landfall.build/engine/targets"
	eventsv1 "landfall.build/events/v1"
)

// TestWhatIsForgottenIsUnknownAgain: a path that was green is worth a build once more, and its next result counts.
func TestWhatIsForgottenIsUnknownAgain(t *testing.T) {
	q := newTestQueue(t)
	c := q.enter("c", "m0", "//t", "h")
	green := func() bool {
		o := q.published.nodes["c"].Classes[0].Outcomes
		return len(o) == 1 && o[0].State == eventsv1.OutcomeState_OUTCOME_STATE_GREEN
	}
	q.say(&eventsv1.StepFinished{Target: "//t", Hash: "h", Attempt: 1, Outcome: eventsv1.StepOutcome_STEP_OUTCOME_PASSED})
	if !green() {
		t.Fatal("c is not green")
	}
	q.say(&eventsv1.EvidenceForgotten{Versions: []*eventsv1.TargetVersion{{Target: "//t", Hash: "h"}, {Target: "//u", Hash: "never seen"}}})
	if green() {
		t.Fatal("c is green, and nobody knows why")
	}
	q.prepare(c, "m0", "//t", "h", false)
	q.say(&eventsv1.StepFinished{Target: "//t", Hash: "h", Attempt: 2, Outcome: eventsv1.StepOutcome_STEP_OUTCOME_PASSED})
	if !green() {
		t.Error("c was run again, and is not green")
	}
	if n := len(q.builds.byID) + len(q.builds.of) + len(q.builds.waiting); n > 0 {
		t.Errorf("%d entries are left of a build that is over", n)
	}
}

// TestGivenUpBuildsOfTheMainlineAreNotKept: nobody says that one was aborted.
func TestGivenUpBuildsOfTheMainlineAreNotKept(t *testing.T) {
	q := newTestQueue(t)
	for range 10 * keptChecks {
		q.prepare(&eventsv1.ChangeRef{}, "m0", "//t", "h", false)
	}
	if n := len(q.builds.byID); n != keptChecks {
		t.Errorf("%d builds of the mainline are kept, want %d", n, keptChecks)
	}
}

// TestTheNamesOfChangesThatLeftAreBounded: of those that affect very many targets fewer are remembered, the last one always.
func TestTheNamesOfChangesThatLeftAreBounded(t *testing.T) {
	q := newTestQueue(t)
	each := keptNames / 4
	for i, names := range []int{1, each, each, each, each, each, 2 * keptNames, 1} {
		r := revision{change: fmt.Sprint("c", i), number: 1}
		q.keepDeparted(&analysis{revision: r, footprint: targets.Footprint{Leaves: make([]string, names)}})
		if kept := len(q.analyses.departed); kept != []int{1, 2, 3, 4, 4, 4, 1, 1}[i] || len(q.analyses.departedOrder) != kept || q.analysisOf(r) == nil {
			t.Errorf("after change %d there are %d with %d names", i, kept, q.analyses.names)
		}
	}
}

// TestALandingThatIsNotRememberedMayMendAnything, so that nobody is rejected for what it may have mended.
func TestALandingThatIsNotRememberedMayMendAnything(t *testing.T) {
	q := newTestQueue(t)
	q.landings = append(q.landings, landing{7, revision{change: "gone", number: 1}})
	nothing := func(*analysis) bool { return false }
	if !q.landedSince(6, nothing) || q.landedSince(7, nothing) {
		t.Error("what is not remembered mends nothing, or what came before")
	}
}
