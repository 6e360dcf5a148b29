package state

import (
	"math/rand/v2"
	"testing"

	"google.golang.org/protobuf/proto"

	"landfall.build/engine/snapshotv1"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/services/gateway/view"
)

// large is a queue of 1,000 pending changes with a long history.
func large() *Queue {
	q, s := New("main", view.DefaultLimits()), newStory(rand.New(rand.NewPCG(1, 2)), 1000)
	for range 120_000 {
		for _, e := range s.next() {
			q.Fold(e, func(r *eventsv1.RequestRefused) string { return e.ID })
		}
	}
	return q
}

// BenchmarkOpening is how long it takes to read the snapshot of a large queue.
func BenchmarkOpening(b *testing.B) {
	q := large()
	frozen, err := proto.Marshal(q.Snapshot("main"))
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		m := &snapshotv1.GatewayQueue{}
		if err := proto.Unmarshal(frozen, m); err != nil {
			b.Fatal(err)
		}
		if _, err := Restore(m, view.DefaultLimits()); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(len(frozen)), "bytes")
}
