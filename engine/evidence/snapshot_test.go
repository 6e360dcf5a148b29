package evidence_test

import (
	"fmt"
	"testing"

	"google.golang.org/protobuf/proto"

	"landfall.build/engine/evidence"
	"landfall.build/engine/snapshottest"
	"landfall.build/engine/snapshotv1"
	"landfall.build/events/seedtest"
	eventsv1 "landfall.build/events/v1"
)

// TestASnapshotHoldsTheWholeLedger goes through random ledgers, as bytes and back.
func TestASnapshotHoldsTheWholeLedger(t *testing.T) {
	random := seedtest.Random(t)
	fields := snapshottest.New(t)
	for range 50 {
		l := evidence.NewLedger()
		for range 200 {
			v := evidence.Version{Target: fmt.Sprint("//t", random.IntN(20)), Hash: fmt.Sprint("h", random.IntN(3))}
			switch attempt := l.NextAttempt(v); random.IntN(11) {
			case 8:
				l.Quarantine(&eventsv1.TargetQuarantined{Target: v.Target, UntilUs: 1})
			case 9:
				l.Quarantine(&eventsv1.QuarantineEnded{Target: v.Target})
			case 10:
				l.Outdate(v, uint32(random.IntN(4)))
			case 0:
				l.Withdraw(v, uint32(random.IntN(4)))
			case 1:
				l.Forget(evidence.ForgottenRecord([]evidence.Version{v}), nil)
			case 2:
				l.MarkTrivial(v)
			default:
				l.Apply(&eventsv1.StepFinished{Target: v.Target, Hash: v.Hash, Attempt: attempt, Build: "b", Outcome: eventsv1.StepOutcome(1 + random.IntN(5))})
			}
		}
		bytes, err := proto.Marshal(l.Snapshot())
		if err != nil {
			t.Fatal(err)
		}
		m := &snapshotv1.EvidenceLedger{}
		if err := proto.Unmarshal(bytes, m); err != nil {
			t.Fatal(err)
		}
		fields.Same(l, evidence.Restore(m))
	}
	fields.Done()
}
