package speculation

import (
	"fmt"
	"testing"

	"landfall.build/engine/evidence"
	"landfall.build/events/seedtest"
	eventsv1 "landfall.build/events/v1"
)

// TestABuildIsOverAsIfAllItsVersionsWereLookedAt, after each attempt, whatever forgets, takes back, quarantines, sets how often steps are
// tried, or restores a snapshot meanwhile.
func TestABuildIsOverAsIfAllItsVersionsWereLookedAt(t *testing.T) {
	random := seedtest.Random(t)
	outcomes := []eventsv1.StepOutcome{
		eventsv1.StepOutcome_STEP_OUTCOME_PASSED, eventsv1.StepOutcome_STEP_OUTCOME_PASSED, eventsv1.StepOutcome_STEP_OUTCOME_PASSED,
		eventsv1.StepOutcome_STEP_OUTCOME_FAILED, eventsv1.StepOutcome_STEP_OUTCOME_TIMED_OUT, eventsv1.StepOutcome_STEP_OUTCOME_ABORTED, eventsv1.StepOutcome_STEP_OUTCOME_COULD_NOT_RUN,
	}
	ended := 0
	for range 3000 {
		q := New()
		policy := func() *eventsv1.QueueSettings {
			if random.IntN(4) == 0 {
				return nil
			}
			return &eventsv1.QueueSettings{Steps: &eventsv1.StepPolicy{FailedRetries: random.Uint32N(2), TimedOutRetries: random.Uint32N(2)}}
		}
		q.settings = policy()
		b := &build{}
		for i := range 1 + random.IntN(6) {
			b.versions = append(b.versions, evidence.Version{Target: fmt.Sprint("//", i), Hash: "h"})
		}
		attempts, over := uint32(0), false
		for event := 0; event < 40 && !over; event++ {
			v := b.versions[random.IntN(len(b.versions))]
			of := &eventsv1.TargetVersion{Target: v.Target, Hash: v.Hash}
			switch random.IntN(16) {
			case 0:
				q.known.ledger.Forget(&eventsv1.EvidenceForgotten{Versions: []*eventsv1.TargetVersion{of}}, nil)
			case 1:
				q.known.ledger.Outdate(v, random.Uint32N(attempts+1))
			case 2:
				q.known.ledger.Withdraw(v, random.Uint32N(attempts+1))
			case 3:
				q.known.ledger.Quarantine(&eventsv1.TargetQuarantined{Target: v.Target, UntilUs: 1 << 60})
			case 4:
				q.known.ledger.Quarantine(&eventsv1.QuarantineEnded{Target: v.Target})
			case 5:
				q.known.ledger.MarkTrivial(v)
			case 6:
				q.known.ledger.ForgetTrivial(v)
			case 7:
				q.settings = policy()
			case 8:
				q.known.ledger = evidence.Restore(q.known.ledger.Snapshot())
				b = &build{versions: b.versions}
			default:
				attempts++
				q.known.ledger.Apply(&eventsv1.StepFinished{Target: v.Target, Hash: v.Hash, Attempt: attempts, Outcome: outcomes[random.IntN(len(outcomes))]})
				got := q.isOverAfter(b, v)
				if over = q.isOver(b); got != over {
					t.Fatalf("after attempt %d at %v the build is over: %v, want %v", attempts, v, got, over)
				}
				if over {
					ended++
				}
			}
		}
	}
	if ended < 1000 {
		t.Errorf("only %d builds were over by an attempt", ended)
	}
}

// BenchmarkAStepOfALargeBuild measures a step of a build of 100,000: incrementally, and by looking at all versions.
func BenchmarkAStepOfALargeBuild(b *testing.B) {
	for _, c := range []struct {
		name string
		over func(q *Queue, of *build, v evidence.Version) bool
	}{{"incremental", (*Queue).isOverAfter}, {"all versions", func(q *Queue, of *build, _ evidence.Version) bool { return q.isOver(of) }}} {
		b.Run(c.name, func(b *testing.B) {
			of := &build{}
			for i := range 100_000 {
				of.versions = append(of.versions, evidence.Version{Target: fmt.Sprint("//", i), Hash: "h"})
			}
			q, at := New(), 0
			for b.Loop() {
				if at == len(of.versions) {
					q, at, of = New(), 0, &build{versions: of.versions}
				}
				v := of.versions[at]
				at++
				q.known.ledger.Apply(&eventsv1.StepFinished{Target: v.Target, Hash: v.Hash, Attempt: 1, Outcome: eventsv1.StepOutcome_STEP_OUTCOME_PASSED})
				if over := c.over(q, of, v); over != (at == len(of.versions)) {
					b.Fatalf("after step %d it is over: %v", at, over)
				}
			}
		})
	}
}
