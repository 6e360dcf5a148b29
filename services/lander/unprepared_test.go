package lander

import (
	"fmt"
	"testing"

	eventsv1 "landfall.build/events/v1"
)

// TestTheLanderCountsForItselfWhatCouldNotBePrepared: each build once, of revisions that are not over.
func TestTheLanderCountsForItselfWhatCouldNotBePrepared(t *testing.T) {
	u := unprepared{}
	c := &eventsv1.ChangeRef{Change: "c", Revision: 2}
	say := func(build string, revision uint64, outcome eventsv1.PreparationOutcome, known uint64, pending bool) {
		u.add(&eventsv1.BuildPrepared{Build: build, Change: &eventsv1.ChangeRef{Change: "c", Revision: revision}, Outcome: outcome}, known, pending)
	}
	const failed = eventsv1.PreparationOutcome_PREPARATION_OUTCOME_INFRASTRUCTURE
	for i := range 3 {
		say(fmt.Sprint("b", i), 2, failed, 2, true)
		say(fmt.Sprint("b", i), 2, failed, 2, true) // a record may be there twice
	}
	say("b3", 2, eventsv1.PreparationOutcome_PREPARATION_OUTCOME_UNMERGEABLE, 2, true)
	say("b4", 2, eventsv1.PreparationOutcome_PREPARATION_OUTCOME_PREPARED, 2, true)
	say("b5", 1, failed, 2, true) // an older revision
	if got := u.count(c); got != 3 {
		t.Errorf("%d builds count, want 3", got)
	}
	say("b6", 3, failed, 2, true) // its admission was not read yet
	if got := u.count(&eventsv1.ChangeRef{Change: "c", Revision: 3}); got != 1 {
		t.Errorf("%d builds of the revision to come, want 1", got)
	}
	u.refused(&eventsv1.Refused{Change: c, Decision: "d1", Message: "its commits are gone"})
	u.refused(&eventsv1.Refused{Change: c, Decision: "d1", Message: "its commits are gone"})
	u.refused(&eventsv1.Refused{Change: c, Decision: "d2", Tree: "tree"})
	u.refused(&eventsv1.Refused{Change: c, Decision: "d3", Class: eventsv1.ReasonClass_REASON_CLASS_MERGE_CONFLICT})
	if got := u.count(c); got != 4 {
		t.Errorf("%d builds and refusals count, want 4", got)
	}
	u.forget(c)
	say("b7", 2, failed, 2, false) // it is decided
	if u.count(c) != 0 {
		t.Error("a decided revision is counted")
	}
}
