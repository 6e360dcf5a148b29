package course

import (
	"testing"
	"time"

	"landfall.build/tools/simulate/forecast"
	"landfall.build/tools/simulate/policy"
	"landfall.build/tools/simulate/trace"
)

// BenchmarkCourse takes 200 changes of the pinned workload through the queue; a change is what it counts.
func BenchmarkCourse(b *testing.B) {
	for _, name := range []string{"oracle", "submitqueue-2019", "landfall"} {
		b.Run(name, func(b *testing.B) {
			p := trace.PinnedPaper()
			p.Changes = 200
			k, err := policy.Named(name)
			if err != nil {
				b.Fatal(err)
			}
			f, err := forecast.New(forecast.Calibrated, p.Seed, p.Start)
			if err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				if _, err := Run(b.Context(), Options{
					Trace: p.Start(), Forecast: f, Kind: k, Workers: 500, Threshold: k.Threshold, Bypass: k.Bypass, Round: 10 * time.Second,
				}); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*p.Changes), "µs/change")
		})
	}
}
