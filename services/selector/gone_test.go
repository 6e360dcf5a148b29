package selector_test

import (
	"slices"
	"testing"

	eventsv1 "landfall.build/events/v1"
)

// TestAChangeWhoseCommitsAreGoneIsTriedAfterAPauseAndEjected: the lander cannot make its tree, and says so in refusals that ask
// for no versions. It is tried again at the next tick; after more tries than the policy repeats comes an ejection.
func TestAChangeWhoseCommitsAreGoneIsTriedAfterAPauseAndEjected(t *testing.T) {
	s := settings()
	s.Steps.InfrastructureRetries = 2
	c := newChain(t, s)
	c.admit("gone", "//t")
	c.say(&eventsv1.StepFinished{Target: "//t", Hash: "//t{gone}", Attempt: 1, Outcome: eventsv1.StepOutcome_STEP_OUTCOME_PASSED})
	answered := 0
	answer := func() {
		for ; answered < len(c.decided) && answered < 100 && c.ejected == nil; answered++ {
			c.say(&eventsv1.Refused{Change: &eventsv1.ChangeRef{Change: "gone", Revision: 1}, Decision: c.decisions[answered], Base: "m0",
				Message: "the commits are gone"})
		}
	}
	var decided []int // before each tick
	for range 4 {
		answer()
		decided = append(decided, len(c.decided))
		c.fact(&eventsv1.Fact{Fact: &eventsv1.Fact_Tick{Tick: &eventsv1.Tick{}}})
	}
	if want := []int{1, 2, 4, 4}; !slices.Equal(decided, want) {
		t.Errorf("before each tick %v decisions were made, and not %v", decided, want)
	}
	if want := []string{"land gone", "land gone", "land gone", "eject gone"}; !slices.Equal(c.decided, want) {
		t.Fatalf("decided: %v, and not %v", c.decided, want)
	}
	if r := c.ejected; r.GetClass() != eventsv1.ReasonClass_REASON_CLASS_INFRASTRUCTURE || r.GetMessage() != "the commits are gone" {
		t.Errorf("it is ejected for %v", r)
	}
}

// TestAChangeWhoseCommitsAreBackLands: the ejection is refused with T's versions, and these are green.
func TestAChangeWhoseCommitsAreBackLands(t *testing.T) {
	c := newChain(t, settings()) // no retries
	c.admit("back", "//t")
	c.say(&eventsv1.StepFinished{Target: "//t", Hash: "//t{back}", Attempt: 1, Outcome: eventsv1.StepOutcome_STEP_OUTCOME_PASSED})
	ref := &eventsv1.ChangeRef{Change: "back", Revision: 1}
	c.say(&eventsv1.Refused{Change: ref, Decision: c.decisions[0], Base: "m0", Message: "the commits are gone"})
	c.fact(&eventsv1.Fact{Fact: &eventsv1.Fact_Tick{Tick: &eventsv1.Tick{}}})
	c.say(&eventsv1.Refused{Change: ref, Decision: c.decisions[len(c.decisions)-1], Base: "m0", Tree: "tree", Message: "nothing has used up its retries",
		Versions: []*eventsv1.TargetVersion{{Target: "//t", Hash: "//t{back}", Part: 1}}})
	if want := []string{"land back", "eject back", "land back"}; !slices.Equal(c.decided, want) {
		t.Errorf("decided: %v, and not %v", c.decided, want)
	}
}

// TestAChangeThatMakesNoVersionsLandsOnceItIsReleased: its refusal asks for no versions either, and there is a tree.
func TestAChangeThatMakesNoVersionsLandsOnceItIsReleased(t *testing.T) {
	c := newChain(t, settings())
	c.admit("docs")
	ref := &eventsv1.ChangeRef{Change: "docs", Revision: 1}
	c.say(&eventsv1.ChangeHeld{Change: "docs", Hold: "h", Who: "who", Why: "why"})
	c.say(&eventsv1.Refused{Change: ref, Decision: c.decisions[0], Base: "m0", Tree: "tree", Message: "it is held"})
	c.say(&eventsv1.ChangeReleased{Change: "docs", Hold: "h"})
	if want := []string{"land docs", "land docs"}; !slices.Equal(c.decided, want) {
		t.Errorf("decided: %v, and not %v", c.decided, want)
	}
}
