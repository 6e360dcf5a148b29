package statetest_test

import (
	"testing"

	"landfall.build/engine/lineup"
	"landfall.build/events/seedtest"
	"landfall.build/services/gateway/state/statetest"
	"landfall.build/services/gateway/view"
)

// TestAStoryIsOneOfAQueue: however long it gets, what is pending and what runs stays bounded, and changes land. Else figures on a story would
// be those of no queue.
func TestAStoryIsOneOfAQueue(t *testing.T) {
	const most = 20
	story, q := statetest.New(seedtest.Random(t), most), view.New("main", view.DefaultLimits())
	landed := 0
	for step := range 20_000 {
		for _, e := range story.Next() {
			if c := q.Fold(e); c.As == lineup.Landed {
				landed++
			}
		}
		if step%1000 > 0 {
			continue
		}
		if n := len(q.Pending()); n > most {
			t.Fatalf("after %d steps %d changes are pending", step, n)
		}
		if m := q.Snapshot(); len(m.Choice.Live) > 5*most || len(m.Choice.Early) > most || len(m.Choice.Leases) > 20*most {
			t.Fatalf("after %d steps %d builds are live, %d are early and %d steps run", step, len(m.Choice.Live), len(m.Choice.Early), len(m.Choice.Leases))
		}
	}
	if landed < 500 {
		t.Errorf("%d changes have landed", landed)
	}
}
