package profile

import (
	"math"
	"testing"

	"landfall.build/events/seedtest"
)

// TestM32APriorGivesWayAsEvidenceComesIn: the twins count the prior as so many changes and builds of their own.
func TestM32APriorGivesWayAsEvidenceComesIn(t *testing.T) {
	random := seedtest.Random(t)
	if got := betaMean(0.9, 0, 0); got != 0.9 {
		t.Errorf("nothing has ended: %v", got)
	}
	for range 200 {
		passed, failed := random.IntN(50), random.IntN(50)
		// A prior of 0.8 is eight changes that passed, and two that failed.
		if got, want := betaMean(0.8, passed, failed), float64(8+passed)/float64(10+passed+failed); math.Abs(got-want) > 1e-12 {
			t.Fatalf("%d passed and %d failed: %v, want %v", passed, failed, got, want)
		}
	}

	if mean, std, moved := pooled(60, 30, nil); mean != 60 || std != 30 || moved {
		t.Errorf("nothing was built: %v ± %v", mean, std)
	}
	if _, _, moved := pooled(0, 0, []float64{3}); moved {
		t.Error("what is not stated is moved")
	}
	square := math.Log1p(0.25)
	mu, sigma := math.Log(60)-square/2, math.Sqrt(square)
	for range 100 {
		// Five builds of the prior's mean and spread, written out: two a deviation above, two below by as much, one between.
		d := sigma * math.Sqrt(5.0/4)
		logs := []float64{mu + d, mu + d, mu - d, mu - d, mu}
		var seconds []float64
		for range 1 + random.IntN(50) {
			x := math.Log(20) + 0.4*random.NormFloat64()
			logs, seconds = append(logs, x), append(seconds, math.Exp(x))
		}
		n := float64(len(logs))
		m, v := 0.0, 0.0
		for _, x := range logs {
			m += x / n
		}
		for _, x := range logs {
			v += (x - m) * (x - m) / n
		}
		wantMean := math.Exp(m + v/2)
		wantStd := wantMean * math.Sqrt(math.Expm1(v))
		mean, std, moved := pooled(60, 30, seconds)
		if !moved || math.Abs(mean/wantMean-1) > 1e-9 || math.Abs(std/wantStd-1) > 1e-9 {
			t.Fatalf("%d builds: %v ± %v, written out %v ± %v", len(seconds), mean, std, wantMean, wantStd)
		}
	}
	if mean, std, _ := pooled(60, 30, make([]float64, 50)); !(mean > 0 && mean < 1) || !(std > 0) || math.IsInf(std, 0) {
		t.Errorf("builds of no time at all: %v ± %v", mean, std)
	}
}
