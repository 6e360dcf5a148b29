package client

import (
	"testing"
	"time"

	"landfall.build/services/gateway/view"
)

func TestAnEstimateIsToldInOneUnit(t *testing.T) {
	now := time.Date(2026, 1, 5, 10, 0, 0, 0, time.UTC)
	in := func(from90, from50, median, to50, to90 time.Duration) *view.ETA {
		return &view.ETA{From90: now.Add(from90), From50: now.Add(from50), Median: now.Add(median), To50: now.Add(to50), To90: now.Add(to90), Lands: 0.934}
	}
	m := time.Minute
	for _, c := range []struct {
		eta         *view.ETA
		brief, full string
	}{
		{nil, "-", ""},
		{&view.ETA{Unknown: "it is held"}, "unknown", "no estimate: it is held"},
		{in(8*m, 10*m, 12*m, 15*m, 25*m), "12 min (8-25)", "in about 12 min (50 %: 10 to 15, 90 %: 8 to 25); it lands with a probability of 0.93"},
		{in(-m, -m, 20*time.Second, 40*time.Second, 90*time.Second), "20 s (0-90)", "in about 20 s (50 %: 0 to 40, 90 %: 0 to 90); it lands with a probability of 0.93"},
		{in(100*m, 150*m, 200*m, 300*m, 400*m), "3 h (2-7)", "in about 3 h (50 %: 3 to 5, 90 %: 2 to 7); it lands with a probability of 0.93"},
		{in(-5*m, -4*m, -3*m, -2*m, -m), "any moment", "at any moment"},
	} {
		if got := briefETA(c.eta, now); got != c.brief {
			t.Errorf("got %q, want %q", got, c.brief)
		}
		if got := fullETA(c.eta, now); got != c.full {
			t.Errorf("got %q, want %q", got, c.full)
		}
	}
}
