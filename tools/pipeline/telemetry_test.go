package pipeline_test

import (
	"io"
	"net/http"
	"slices"
	"testing"
	"time"

	"landfall.build/events/processortest"
)

// BenchmarkTelemetry is what measuring and tracing cost: the processor's time for each event from outside, and the time to decide, of the
// pipeline between enumerator and lander with its load and its broker: without either, with metrics that are scraped every second, and with
// traces of all changes.
// Compare the two with several -count, since the machine is never quiet.
func BenchmarkTelemetry(b *testing.B) {
	for _, name := range []string{"without", "with", "traced"} {
		b.Run(name, func(b *testing.B) {
			r := openLog(b, b.TempDir(), shapes()[0])
			r.measured, r.traced = name == "with", name == "traced"
			r.serve()
			r.fill()
			before := 0
			r.pace(func(n int) bool { before = len(r.deciding()); return n < warmUp })
			events, began := 0, processortest.Used(b)
			for b.Loop() {
				want := before + samplesPerOperation
				last := 0
				r.pace(func(n int) bool { last = n; return len(r.deciding()) < want })
				events, before = events+last, want
			}
			spent := processortest.Used(b) - began
			took := r.deciding()[before-samplesPerOperation*b.N : before]
			slices.Sort(took)
			b.ReportMetric(float64(spent.Microseconds())/float64(max(1, events)), "cpu-us/event")
			b.ReportMetric(milliseconds(took[quantile(len(took), 50)]), "p50-ms")
			b.ReportMetric(milliseconds(took[quantile(len(took), 99)]), "p99-ms")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// scrape reads the metrics every second.
func (r *running) scrape(url string) {
	for {
		select {
		case <-r.ctx.Done():
			return
		case <-time.After(time.Second):
		}
		answer, err := http.Get(url + "/metrics")
		if err != nil {
			r.check(err)
			continue
		}
		io.Copy(io.Discard, answer.Body)
		answer.Body.Close()
	}
}
