package evidence_test

import (
	"testing"

	"landfall.build/engine/evidence"
	"landfall.build/events/seedtest"
	eventsv1 "landfall.build/events/v1"
)

// TestM20aTheOrderOfWithdrawalsAndResultsDoesNotMatter: they stand in different topics, and every reader
// folds them in an order of its own.
func TestM20aTheOrderOfWithdrawalsAndResultsDoesNotMatter(t *testing.T) {
	r := seedtest.Random(t)
	v := evidence.Version{Target: "//a", Hash: "h"}
	outcomes := []eventsv1.StepOutcome{
		eventsv1.StepOutcome_STEP_OUTCOME_PASSED, eventsv1.StepOutcome_STEP_OUTCOME_FAILED,
		eventsv1.StepOutcome_STEP_OUTCOME_TIMED_OUT, eventsv1.StepOutcome_STEP_OUTCOME_COULD_NOT_RUN, eventsv1.StepOutcome_STEP_OUTCOME_ABORTED,
	}
	for range 20_000 {
		var steps []*eventsv1.StepFinished
		for i := range 1 + r.IntN(6) {
			steps = append(steps, &eventsv1.StepFinished{Target: v.Target, Hash: v.Hash, Attempt: uint32(i + 1), Outcome: outcomes[r.IntN(len(outcomes))]})
		}
		var upTo []uint32
		for range r.IntN(3) {
			upTo = append(upTo, uint32(1+r.IntN(len(steps))))
		}
		takeBack := (*evidence.Ledger).Withdraw
		if r.IntN(2) == 0 {
			takeBack = (*evidence.Ledger).Outdate
		}
		policy := &eventsv1.StepPolicy{FailedRetries: uint32(r.IntN(3)), TimedOutRetries: uint32(r.IntN(3)), InfrastructureRetries: uint32(r.IntN(3))}
		// Results keep their order; withdrawals come anywhere between, differently for two readers.
		fold := func() evidence.State {
			l := evidence.NewLedger()
			left := append([]uint32(nil), upTo...)
			for _, s := range steps {
				for len(left) > 0 && r.IntN(2) == 0 {
					takeBack(l, v, left[0])
					left = left[1:]
				}
				l.Apply(s)
			}
			for _, n := range left {
				takeBack(l, v, n)
			}
			return l.State(v, policy)
		}
		if a, b := fold(), fold(); a != b {
			t.Fatalf("one reader says %s, another %s, of %v withdrawn up to %v under %v", a, b, steps, upTo, policy)
		}
	}
}
