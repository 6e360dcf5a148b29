package past

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"landfall.build/platform/journal/memory"
	"landfall.build/services/gateway/state/statetest"
	"landfall.build/services/gateway/view"
)

// BenchmarkLooking is how long a moment takes that was not asked for before, on a log of 250,000 records of a queue with 100 pending changes:
// the median, and the slowest of 100.
func BenchmarkLooking(b *testing.B) {
	const records = 250_000
	log, story := memory.New(memory.Options{Partitions: 1}), statetest.New(rand.New(rand.NewPCG(1, 2)), 100)
	begin, written := story.Now(), 0
	for written < records {
		for _, e := range story.Next() {
			e.Source, e.Term, e.Time, e.Message = "", -1, story.Now(), proto.Clone(e.Message)
			if _, err := log.Append(b.Context(), e.Topic, 0, e.Envelope); err != nil {
				b.Fatal(err)
			}
			written++
		}
	}
	look := func(p *Past, at time.Time) time.Duration {
		began := time.Now()
		if err := p.Read(b.Context(), at, func(q *view.Queue) { q.Overview(); q.Pending(); q.Finished(100) }); err != nil {
			b.Fatal(err)
		}
		return time.Since(began)
	}
	random := rand.New(rand.NewPCG(3, 4))
	for b.Loop() {
		p := New(Options{Log: log, Queue: main, Limits: view.DefaultLimits(), Every: 10_000, Bytes: 128 << 20})
		first := look(p, story.Now())
		var took []time.Duration
		for range 100 {
			took = append(took, look(p, begin.Add(time.Duration(random.Int64N(int64(story.Now().Sub(begin)))))))
		}
		slices.Sort(took)
		b.ReportMetric(first.Seconds(), "first-s")
		b.ReportMetric(took[50].Seconds()*1000, "median-ms")
		b.ReportMetric(took[99].Seconds()*1000, "slowest-ms")
		b.ReportMetric(float64(p.bytes)/(1<<20), "checkpoints-MiB")
		b.ReportMetric(float64(len(p.checkpoints)), "checkpoints")
	}
}
