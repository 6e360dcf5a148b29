package past

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"landfall.build/engine/evidence"
	"landfall.build/engine/steps"
	"landfall.build/events"
	"landfall.build/events/processortest"
	"landfall.build/platform/journal"
	"landfall.build/platform/journal/memory"
	"landfall.build/platform/snapshot"
	"landfall.build/services/gateway/state/statetest"
	"landfall.build/services/gateway/view"
)

// BenchmarkLooking is how long a moment takes, of a log of a million records of a queue with 100 pending changes: the first after a start,
// random ones, with where steps wait, and those of one who plays it forward. The checkpoints are on disk, and made before.
func BenchmarkLooking(b *testing.B) {
	for _, records := range []int{100_000, 1_000_000} {
		b.Run(fmt.Sprintf("records=%d", records), func(b *testing.B) { benchmarkLooking(b, records) })
	}
}

// remembered is how many versions a builder remembers by default (builder.remember).
const remembered = 16_384

// recordMany returns a log of so many records, and when it begins and ends. Evidence is forgotten as a builder does it.
func recordMany(b *testing.B, records int) (log *memory.Log, begin, end time.Time) {
	log, story, worker := memory.New(memory.Options{Partitions: 1}), statetest.New(rand.New(rand.NewPCG(1, 2)), 100), steps.New()
	begin = story.Now()
	written, full := 0, 2*remembered
	put := func(topic string, e events.Envelope) {
		e.Time, e.Source, e.Term, e.Message = story.Now(), "", -1, proto.Clone(e.Message)
		offsets, err := log.Append(b.Context(), topic, 0, e)
		if err != nil {
			b.Fatal(err)
		}
		worker.Apply(e.Message, steps.Origin{Offset: offsets[0]})
		written++
	}
	for written < records {
		for _, e := range story.Next() {
			put(e.Topic, e.Envelope)
		}
		if worker.Early() > remembered {
			worker.ForgetEarly()
		}
		if worker.Remembered() >= full {
			for some := range slices.Chunk(worker.Forgettable(remembered), 2048) {
				put(events.TopicBuilds, events.Envelope{Queue: main, Message: evidence.ForgottenRecord(some)})
			}
			full = 2 * worker.Remembered()
		}
	}
	return log, begin, story.Now()
}

func benchmarkLooking(b *testing.B, records int) {
	log, begin, end := recordMany(b, records)
	store, err := snapshot.Open(b.TempDir(), snapshot.DefaultPace)
	if err != nil {
		b.Fatal(err)
	}
	start := func(log journal.Log) *Past {
		kept, err := store.Series(snapshot.SeriesKey{Key: snapshot.Key{Log: log.ID()}, Name: main})
		if err != nil {
			b.Fatal(err)
		}
		p := New(Options{Log: log, Queue: main, Limits: view.DefaultLimits(), Every: 5_000, Bytes: 2 << 30, Kept: kept})
		if err := p.CatchUp(b.Context()); err != nil {
			b.Fatal(err)
		}
		return p
	}
	began, used := time.Now(), processortest.Used(b)
	start(log)
	made, madeBy := time.Since(began), processortest.Used(b)-used
	look := func(p *Past, at time.Time, whole bool) time.Duration {
		began := time.Now()
		if err := p.Read(b.Context(), at, whole, func(q *view.Queue) {
			q.Overview()
			pending := q.Pending()
			q.Finished(1000)
			q.Graph()
			if whole {
				q.Explain(pending[0].Change)
				q.Waiting(pending[0].Change, at)
			}
		}); err != nil {
			b.Fatal(err)
		}
		return time.Since(began)
	}
	random := rand.New(rand.NewPCG(3, 4))
	report := func(name string, took []time.Duration, used time.Duration) {
		slices.Sort(took)
		n := len(took)
		b.ReportMetric(float64(took[n/2].Milliseconds()), name+"median-ms")
		b.ReportMetric(float64(took[n*95/100].Milliseconds()), name+"p95-ms")
		b.ReportMetric(float64(took[n-1].Milliseconds()), name+"slowest-ms")
		b.ReportMetric(float64(used.Milliseconds())/float64(n), name+"processor-ms")
	}
	for b.Loop() {
		p := start(log)
		first := look(p, end, false)
		b.ReportMetric(float64(first.Milliseconds()), "first-ms")
		for _, whole := range []bool{false, true} {
			var took []time.Duration
			used := processortest.Used(b)
			for range 100 {
				took = append(took, look(p, begin.Add(time.Duration(random.Int64N(int64(end.Sub(begin))))), whole))
			}
			report(map[bool]string{true: "explain-"}[whole], took, processortest.Used(b)-used)
		}
		// An hour of the slider is played in 240 parts.
		var took []time.Duration
		at := begin.Add(end.Sub(begin) / 2)
		look(p, at, false)
		used := processortest.Used(b)
		for range 60 {
			at = at.Add(time.Hour / 240)
			took = append(took, look(p, at, false))
		}
		report("played-", took, processortest.Used(b)-used)
		b.ReportMetric(float64(p.bytes)/(1<<20), "checkpoints-MiB")
		b.ReportMetric(float64(len(p.checkpoints)), "checkpoints")
		b.ReportMetric(made.Seconds(), "made-s")
		b.ReportMetric(madeBy.Seconds(), "made-processor-s")
	}
}
