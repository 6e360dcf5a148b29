package agenda

import (
	"slices"
	"testing"

	"landfall.build/engine/snapshottest"
	"landfall.build/engine/snapshotv1"
	"landfall.build/events/seedtest"
	eventsv1 "landfall.build/events/v1"
)

func list(q *Queue) (tasks []string) {
	for _, task := range q.Wanted("") {
		tasks = append(tasks, describe(task))
	}
	return tasks
}

// TestARestoredQueueGoesOnAsTheOneThatItsSnapshotWasTakenOf over random histories, as bytes and back.
func TestARestoredQueueGoesOnAsTheOneThatItsSnapshotWasTakenOf(t *testing.T) {
	random, fields := seedtest.Random(t), snapshottest.New(t)
	for range 30 {
		h, restored := &history{Rand: random, queue: New(), twin: &twin{}}, New()
		read := 0
		for range 400 { // more moves than are kept
			h.step()
			for ; read < len(h.twin.facts); read++ {
				restored.Apply(h.twin.facts[read], int64(read+1))
			}
			if random.IntN(20) == 0 {
				fields.Same(h.queue, restored)
				restored = snapshottest.Reopened(t, h.queue.Snapshot(), Restore)
				fields.Same(h.queue, restored)
			}
			if got, want := list(restored), list(h.queue); !slices.Equal(got, want) {
				t.Fatalf("after %v it wants %q, not %q", h.twin.facts[len(h.twin.facts)-1], got, want)
			}
		}
	}
	fields.Done()
}

func TestRestoreRefusesWhatDoesNotFit(t *testing.T) {
	ref := &eventsv1.ChangeRef{Change: "c", Revision: 1}
	for name, m := range map[string]*snapshotv1.Agenda{
		"an analysis of no change":       {Texts: []string{"m"}, Analyses: []*snapshotv1.AgendaAnalysis{{Effect: &snapshotv1.AgendaEffect{}}}},
		"an analysis without an effect":  {Texts: []string{"m"}, Analyses: []*snapshotv1.AgendaAnalysis{{}}},
		"a text that is not there":       {Moves: []*snapshotv1.AgendaMove{{To: 1}}},
		"a neighbour without a revision": {Texts: []string{"m"}, Moves: []*snapshotv1.AgendaMove{{Effect: &snapshotv1.AgendaEffect{Change: ref, Neighbours: []uint32{0}}}}},
		"a lineup that does not fit":     {Lineup: &snapshotv1.Lineup{Changes: []*snapshotv1.LineupChange{{}}}},
	} {
		if _, err := Restore(m); err == nil {
			t.Errorf("%s is restored", name)
		}
	}
	if q, err := Restore(nil); err != nil || len(q.Wanted("")) > 0 {
		t.Errorf("of no message there is %v, %v", q, err)
	}
}
