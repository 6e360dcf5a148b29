package course

import (
	"context"
	"testing"
	"time"

	"landfall.build/tools/simulate/forecast"
	"landfall.build/tools/simulate/policy"
	"landfall.build/tools/simulate/trace"
)

// repository is a drawn one in which everything happens, on a pool.
func repository(seed uint64) trace.Monorepo {
	p := trace.PinnedPaper()
	p.Seed, p.Changes, p.Rate, p.Failure, p.True = seed, 60, 300, 0.15, 0.05
	p.Median, p.P95, p.Shortest, p.Longest = 15*time.Second, time.Minute, time.Second, 10*time.Minute
	m := trace.PinnedMonorepo(p)
	m.Targets, m.Affected, m.Affected975 = 300, 8, 60
	return m
}

func onPool(t *testing.T, m trace.Monorepo, k policy.Kind, d trace.Disturbances, workers int) *Result {
	t.Helper()
	d.Seed = m.Seed
	start := func() trace.Trace { return d.Cancelling(m.Start()) }
	f, err := forecast.New(forecast.Calibrated, m.Seed, start)
	if err != nil {
		t.Fatal(err)
	}
	r, err := Run(context.Background(), Options{
		Trace: start(), Forecast: f, Kind: k, Workers: workers, Threshold: k.Threshold, Bypass: k.Bypass, Round: time.Second,
		Pool: &Pool{Checkout: 200 * time.Millisecond}, Disturbed: d,
	})
	if err != nil {
		t.Fatalf("seed %d, %s, %d workers: %v", m.Seed, k.Name, workers, err)
	}
	return r
}

func TestOnAPoolEveryPolicyLandsWhatTheTraceSays(t *testing.T) {
	for _, d := range []trace.Disturbances{{}, {Flakes: 0.02, Losses: 0.5, Cancelled: 0.15}} {
		m := repository(11)
		d.Seed = m.Seed
		changes, lands := changesOf(t, d.Cancelling(m.Start()))
		landing, cancelled := 0, 0
		for i, c := range changes {
			if lands[i] {
				landing++
			}
			if c.Cancelled > 0 {
				cancelled++
			}
		}
		if landing+cancelled == len(changes) {
			t.Fatalf("%d land and %d are cancelled of %d; the workload shows nothing", landing, cancelled, len(changes))
		}
		for _, name := range policy.PoolNames() {
			k, err := policy.Named(name)
			if err != nil {
				t.Fatal(err)
			}
			r := onPool(t, m, k, d, 12)
			t.Logf("%-20s P50 %.0f P95 %.0f slow %.2f util %.3f worker h %.2f builds %.2f", name, Percentile(r.Turnaround, 50), Percentile(r.Turnaround, 95), mean(r.Slowdown), r.Utilisation, r.WorkerHours, r.BuildsPerChange())
			if r.Landed != landing || r.Cancelled != cancelled || r.Decided() != len(changes)-cancelled || r.RedCommits != 0 {
				t.Errorf("%s: %d landed, %d rejected, %d cancelled, %d red; in the trace %d land and %d are cancelled",
					name, r.Landed, r.Rejected, r.Cancelled, r.RedCommits, landing, cancelled)
			}
			if r.WorkerHours > 12*r.Hours {
				t.Errorf("%s: %.1f worker hours in %.1f hours of 12 workers", name, r.WorkerHours, r.Hours)
			}
		}
	}
}

func mean(list []float64) (m float64) {
	for _, x := range list {
		m += x / float64(len(list))
	}
	return m
}

// BenchmarkMonorepo takes changes of a drawn repository through the queue; it reports what a step costs.
func BenchmarkMonorepo(b *testing.B) {
	for _, name := range []string{"oracle", "landfall", "landfall-by-build"} {
		b.Run(name, func(b *testing.B) {
			p := trace.PinnedPaper()
			p.Changes, p.Rate = 300, 120
			p.Median, p.P95, p.Shortest, p.Longest = 15*time.Second, time.Minute, time.Second, 10*time.Minute
			m := trace.PinnedMonorepo(p)
			k, err := policy.Named(name)
			if err != nil {
				b.Fatal(err)
			}
			f, err := forecast.New(forecast.Calibrated, m.Seed, m.Start)
			if err != nil {
				b.Fatal(err)
			}
			steps := 0
			for b.Loop() {
				r, err := Run(b.Context(), Options{
					Trace: m.Start(), Forecast: f, Kind: k, Workers: 64, Threshold: k.Threshold, Bypass: k.Bypass, Round: time.Second,
					Pool: &Pool{Checkout: 200 * time.Millisecond},
				})
				if err != nil {
					b.Fatal(err)
				}
				steps = r.Steps
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*steps), "µs/step")
			b.ReportMetric(float64(steps), "steps")
		})
	}
}
