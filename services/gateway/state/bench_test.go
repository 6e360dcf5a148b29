package state

import (
	"math/rand/v2"
	"runtime"
	"strconv"
	"testing"

	"google.golang.org/protobuf/proto"

	"landfall.build/engine/admission"
	"landfall.build/engine/snapshotv1"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/services/gateway/state/statetest"
	"landfall.build/services/gateway/view"
)

// large is a queue of 1,000 pending changes with a long history.
func large() *Queue {
	q, s := New("main", view.DefaultLimits()), statetest.New(rand.New(rand.NewPCG(1, 2)), 1000)
	for range 120_000 {
		for _, e := range s.Next() {
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

// BenchmarkAnswered is what remembering an answered request costs, beside the newest answers, which are kept whole.
func BenchmarkAnswered(b *testing.B) {
	const requests = 1_000_000
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	for b.Loop() {
		before := heap()
		q := New("main", view.DefaultLimits())
		for i := range requests {
			id := strconv.Itoa(i)
			q.Answers.put(id, Given{Answer: admission.Answer{Refused: &eventsv1.RequestRefused{RequestId: id, Change: "b", Code: string(admission.Empty)}}})
		}
		b.ReportMetric(float64(heap()-before)/requests, "B/request")
		b.ReportMetric(float64(proto.Size(q.Snapshot("main")))/requests, "snapshot-B/request")
		runtime.KeepAlive(q)
	}
}
