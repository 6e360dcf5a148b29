package directpush

import (
	"testing"

	"landfall.build/engine/snapshottest"
	"landfall.build/engine/snapshotv1"
	"landfall.build/events/seedtest"
	eventsv1 "landfall.build/events/v1"
)

// TestRestoredPushesGoOnAsThoseThatTheirSnapshotWasTakenOf over random histories, as bytes and back.
func TestRestoredPushesGoOnAsThoseThatTheirSnapshotWasTakenOf(t *testing.T) {
	random, fields := seedtest.Random(t), snapshottest.New(t)
	for range 500 {
		changes, builds := history(random)
		original, restored := &reader{Pushes: New()}, &reader{Pushes: New()}
		for len(changes)+len(builds) > 0 {
			from := &changes
			if len(changes) == 0 || len(builds) > 0 && random.IntN(2) == 0 {
				from = &builds
			}
			m := (*from)[0]
			*from = (*from)[1:]
			if f, is := m.(*eventsv1.MainlineAnalyzed); is {
				for _, v := range f.Affected.Targets {
					v.Trivial = random.IntN(4) == 0
				}
			}
			original.fold(m)
			restored.fold(m)
			fields.Same(original.Pushes, restored.Pushes)
			if random.IntN(4) == 0 {
				restored.Pushes = snapshottest.Reopened(t, original.Pushes.Snapshot(), Restore)
				fields.Same(original.Pushes, restored.Pushes)
			}
		}
	}
	fields.Done()
}

func TestRestoreRefusesWhatDoesNotFit(t *testing.T) {
	for name, m := range map[string]*snapshotv1.DirectPushes{
		"a head without its move": {Commits: []string{"m1"}},
		"a target without a name": {Targets: []*snapshotv1.DirectPushTarget{{}}},
	} {
		if _, err := Restore(m); err == nil {
			t.Errorf("%s is restored", name)
		}
	}
	if p, err := Restore(nil); err != nil || !p.Known() {
		t.Errorf("of no message there is %v, %v", p, err)
	}
}
