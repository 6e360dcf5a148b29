package lineup

import (
	"fmt"
	"testing"

	"landfall.build/engine/snapshottest"
	"landfall.build/engine/snapshotv1"
	"landfall.build/events/seedtest"
	eventsv1 "landfall.build/events/v1"
)

// TestARestoredQueueGoesOnAsTheOneThatItsSnapshotWasTakenOf over random facts, as bytes and back.
func TestARestoredQueueGoesOnAsTheOneThatItsSnapshotWasTakenOf(t *testing.T) {
	random, fields := seedtest.Random(t), snapshottest.New(t)
	for range 200 {
		q, restored, twin := New(), New(), newNaive()
		for n := range 60 {
			m := randomFact(random, twin, n)
			switch f := m.(type) { // what the twin does not hold
			case *eventsv1.ChangeHeld:
				f.Who, f.Why = "who", fmt.Sprint("why", n)
			case *eventsv1.QueuePaused:
				f.Who, f.Why = "who", fmt.Sprint("why", n)
			}
			twin.apply(m)
			q.Apply(m, int64(n))
			restored.Apply(m, int64(n))
			fields.Same(q, restored)
			if random.IntN(8) == 0 {
				restored = snapshottest.Reopened(t, q.Snapshot(), Restore)
				fields.Same(q, restored)
			}
		}
	}
	fields.Done()
}

func TestRestoreRefusesWhatDoesNotFit(t *testing.T) {
	a := &snapshotv1.LineupChange{Admission: admission("a", 1)}
	for name, m := range map[string]*snapshotv1.Lineup{
		"a change without an admission":      {Changes: []*snapshotv1.LineupChange{{}}},
		"a change that is pending twice":     {Changes: []*snapshotv1.LineupChange{a, a}},
		"an intention of no change":          {Intention: &eventsv1.LandIntended{Commits: []string{"t"}}},
		"an intention of no commits":         {Intention: &eventsv1.LandIntended{Change: &eventsv1.ChangeRef{Change: "a"}}},
		"half an id of a settled change":     {SettledIds: make([]byte, 8), SettledRevisions: []uint64{1}, SettledStates: []uint32{1}},
		"a settled change without its state": {SettledIds: make([]byte, 16), SettledRevisions: []uint64{1}},
	} {
		if _, err := Restore(m); err == nil {
			t.Errorf("%s is restored", name)
		}
	}
	if q, err := Restore(nil); err != nil || len(q.Order()) > 0 {
		t.Errorf("of no message there is %v, %v", q, err)
	}
}
