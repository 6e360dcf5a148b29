package evidence_test

import (
	"fmt"
	"slices"
	"testing"

	"landfall.build/engine/evidence"
	"landfall.build/events/seedtest"
	eventsv1 "landfall.build/events/v1"
)

// TestForgettingAndWithdrawingInAnyOrderLeaveTheSame: results and what forgets them stand in one topic, withdrawals in
// another, and every reader folds the two in an order of its own. A result that was withdrawn may come again, late.
func TestForgettingAndWithdrawingInAnyOrderLeaveTheSame(t *testing.T) {
	r := seedtest.Random(t)
	v := evidence.Version{Target: "//a", Hash: "h"}
	again := 0
	for range 20_000 {
		// The one that writes: it has read all results, and no withdrawal, which no number depends on.
		writer := evidence.NewLedger()
		var builds []any
		var made []*eventsv1.StepFinished
		for range 2 + r.IntN(8) {
			switch {
			case r.IntN(3) == 0:
				f := evidence.ForgottenRecord([]evidence.Version{v})
				writer.Forget(f, nil)
				builds = append(builds, f)
			case len(made) > 0 && r.IntN(4) == 0:
				f := made[r.IntN(len(made))]
				writer.Apply(f)
				builds = append(builds, f)
			default:
				f := &eventsv1.StepFinished{Target: v.Target, Hash: v.Hash, Attempt: writer.NextAttempt(v), Outcome: eventsv1.StepOutcome(1 + r.IntN(5))}
				if slices.ContainsFunc(made, func(o *eventsv1.StepFinished) bool { return o.Attempt == f.Attempt }) {
					t.Fatalf("attempt %d is made twice after %v", f.Attempt, builds)
				}
				writer.Apply(f)
				made, builds = append(made, f), append(builds, f)
			}
		}
		var upTo []uint32
		for range r.IntN(3) {
			if len(made) > 0 {
				upTo = append(upTo, made[r.IntN(len(made))].Attempt)
			}
		}
		policy := &eventsv1.StepPolicy{FailedRetries: uint32(r.IntN(2)), TimedOutRetries: uint32(r.IntN(2)), InfrastructureRetries: uint32(r.IntN(2))}
		read := func() evidence.State {
			l, left := evidence.NewLedger(), upTo
			for _, m := range builds {
				for len(left) > 0 && r.IntN(3) == 0 {
					l.Withdraw(v, left[0])
					left = left[1:]
				}
				switch m := m.(type) {
				case *eventsv1.StepFinished:
					l.Apply(m)
				case *eventsv1.EvidenceForgotten:
					if l.Result(v) != nil {
						again++
					}
					l.Forget(m, nil)
				}
			}
			for _, n := range left {
				l.Withdraw(v, n)
			}
			return l.State(v, policy)
		}
		if a, b := read(), read(); a != b {
			t.Fatalf("one reader says %s, another %s, of %v withdrawn up to %v under %v", a, b, builds, upTo, policy)
		}
	}
	if again == 0 {
		t.Error("nothing was ever forgotten")
	}
}

// TestWhoStartsRemembersTheSameWithdrawals: it reads all of them before the first result, and however many there are,
// none may be lost of those whose results come.
func TestWhoStartsRemembersTheSameWithdrawals(t *testing.T) {
	const n = 20_000 // more than are kept
	version := func(i int) evidence.Version { return evidence.Version{Target: "//t", Hash: fmt.Sprint(i)} }
	failed := func(i int, number uint32) *eventsv1.StepFinished {
		return &eventsv1.StepFinished{Target: "//t", Hash: fmt.Sprint(i), Attempt: number, Outcome: eventsv1.StepOutcome_STEP_OUTCOME_FAILED}
	}
	live, started := evidence.NewLedger(), evidence.NewLedger()
	for i := range n {
		live.Apply(failed(i, 1))
		live.Withdraw(version(i), 1)
		started.Withdraw(version(i), 1)
	}
	for i := range n {
		started.Apply(failed(i, 1))
	}
	var half []evidence.Version
	for i := range n / 2 {
		half = append(half, version(i))
	}
	record := evidence.ForgottenRecord(half)
	for _, l := range []*evidence.Ledger{live, started} {
		l.Forget(record, nil)
	}
	for i := range n {
		if a, b := live.State(version(i), nil), started.State(version(i), nil); a != evidence.Unknown || b != evidence.Unknown {
			t.Fatalf("version %d, which was withdrawn, is %s for one and %s for the other", i, a, b)
		}
	}
	// What is made from now on counts, for both.
	for _, l := range []*evidence.Ledger{live, started} {
		l.Apply(failed(0, l.NextAttempt(version(0))))
		if s := l.State(version(0), nil); s != evidence.Red {
			t.Errorf("a version that failed after it was forgotten is %s", s)
		}
	}
}
