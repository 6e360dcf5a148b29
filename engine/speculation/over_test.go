package speculation

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"landfall.build/engine/evidence"
	eventsv1 "landfall.build/events/v1"
)

// TestABuildIsOverAsIfAllItsVersionsWereLookedAt, after each attempt, whatever forgets, takes back, quarantines, or sets how often steps are
// tried meanwhile.
func TestABuildIsOverAsIfAllItsVersionsWereLookedAt(t *testing.T) {
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 3))
	ended := 0
	for range 3000 {
		q := New()
		policy := func() *eventsv1.QueueSettings {
			return &eventsv1.QueueSettings{Steps: &eventsv1.StepPolicy{FailedRetries: random.Uint32N(2), TimedOutRetries: random.Uint32N(2)}}
		}
		q.settings = policy()
		b := &build{}
		for i := range 1 + random.IntN(6) {
			b.versions = append(b.versions, evidence.Version{Target: fmt.Sprint("//", i), Hash: "h"})
		}
		var attempts uint32
		for event := 0; event < 40 && !q.isOver(b); event++ {
			v := b.versions[random.IntN(len(b.versions))]
			of := &eventsv1.TargetVersion{Target: v.Target, Hash: v.Hash}
			switch random.IntN(12) {
			case 0:
				q.known.ledger.Forget(&eventsv1.EvidenceForgotten{Versions: []*eventsv1.TargetVersion{of}}, nil)
			case 1:
				q.known.ledger.TakeBack(&eventsv1.Refused{BaseOutdated: []*eventsv1.Proof{{Version: of, Attempt: random.Uint32N(attempts + 1)}}})
			case 2:
				q.known.ledger.Quarantine(&eventsv1.TargetQuarantined{Target: v.Target, UntilUs: 1 << 60})
			case 3:
				q.known.ledger.MarkTrivial(v)
			case 4:
				q.known.ledger.ForgetTrivial(v)
			case 5:
				q.settings = policy()
			default:
				attempts++
				outcomes := []eventsv1.StepOutcome{eventsv1.StepOutcome_STEP_OUTCOME_PASSED, eventsv1.StepOutcome_STEP_OUTCOME_PASSED, eventsv1.StepOutcome_STEP_OUTCOME_FAILED, eventsv1.StepOutcome_STEP_OUTCOME_TIMED_OUT, eventsv1.StepOutcome_STEP_OUTCOME_ABORTED}
				q.known.ledger.Apply(&eventsv1.StepFinished{Target: v.Target, Hash: v.Hash, Attempt: attempts, Outcome: outcomes[random.IntN(len(outcomes))]})
				got, want := q.isOverAfter(b, v), q.isOver(b)
				if got != want {
					t.Fatalf("seed %d: after attempt %d at %v the build is over: %v, want %v", seed, attempts, v, got, want)
				}
				if want {
					ended++
				}
			}
		}
	}
	if ended < 500 {
		t.Errorf("seed %d: only %d builds were over by an attempt", seed, ended)
	}
}
