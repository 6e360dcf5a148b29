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
	with := func(e *view.ETA, lands float64) *view.ETA { e.Lands = lands; return e }
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
		{in(-m, -m, -time.Second, 40*time.Second, 73*time.Second), "within 73 s", "within 73 s with a probability of 95 %; it lands with a probability of 0.93"},
		{with(in(8*m, 10*m, 12*m, 15*m, 25*m), 0), "12 min (8-25)", "in about 12 min (50 %: 10 to 15, 90 %: 8 to 25)"},
		{with(in(-m, -m, -time.Second, 40*time.Second, 73*time.Second), 0), "within 73 s", "within 73 s with a probability of 95 %"},
		{with(in(8*m, 10*m, 12*m, 15*m, 25*m), 0.004), "12 min (8-25)", "in about 12 min (50 %: 10 to 15, 90 %: 8 to 25); it is unlikely to land"},
		{in(-m, -m, 20*time.Second, 20*m, 39*m), "within 39 min", "within 39 min with a probability of 95 %; it lands with a probability of 0.93"},
		{in(-5*m, -4*m, -3*m, -2*m, -m), "any moment", "at any moment"},
		{in(-5*m, -4*m, -3*m, -2*m, -m-time.Second), "late", "later than expected"},
	} {
		if got := briefETA(c.eta, now); got != c.brief {
			t.Errorf("got %q, want %q", got, c.brief)
		}
		if got := fullETA(c.eta, now); got != c.full {
			t.Errorf("got %q, want %q", got, c.full)
		}
	}
}

func TestASentenceSaysWhenAChangeWillBeDecided(t *testing.T) {
	now := time.Date(2026, 1, 5, 10, 0, 0, 0, time.UTC)
	at := func(median, to time.Duration) *view.ETA {
		return &view.ETA{From90: now, From50: now, Median: now.Add(median), To50: now.Add(to), To90: now.Add(to)}
	}
	for _, c := range []struct {
		eta  *view.ETA
		want string
	}{
		{nil, ""},
		{&view.ETA{Unknown: "it is held"}, ""},
		{at(20*time.Second, 90*time.Second), " Decided in 20 s (0-90)."},
		{at(0, 10*time.Second), " Decided within 10 s."},
		{at(-2*time.Second, -time.Second), ""},
	} {
		if got := decided(c.eta, now); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}

func TestTheQueuesLineCountsBusyWorkersAndSaysWhatIsBuilt(t *testing.T) {
	at := time.Date(2026, 1, 5, 10, 42, 0, 0, time.Local)
	pool := &view.Pool{Workers: 2, Running: 3, Busy: 2, Open: 1}
	for _, c := range []struct {
		q    view.Overview
		want string
	}{
		{view.Overview{Queue: "q", Pending: 1, Waiting: 1, Running: 2, Pool: pool}, "queue q: 1 pending (1 waiting, 0 testing, 0 passed), 2 builds with 2 of 2 workers busy and 1 step open"},
		{view.Overview{Queue: "q", Running: 1, Pool: pool}, "queue q: 0 pending (0 waiting, 0 testing, 0 passed), 1 build of the mainline itself with 2 of 2 workers busy and 1 step open"},
		{view.Overview{Queue: "q", MainlineRed: []string{"//x"}, RedSince: &view.RedSince{Commit: "0123456789abcdef", Author: "Ada", Suspects: 1, At: at}},
			"queue q: 0 pending (0 waiting, 0 testing, 0 passed); mainline RED in //x since the direct push 0123456789ab by Ada; a step failed " + at.Format(time.DateTime)},
		{view.Overview{Queue: "q", MainlineRed: []string{"//x"}, RedSince: &view.RedSince{Commit: "0123456789abcdef", Suspects: 3}},
			"queue q: 0 pending (0 waiting, 0 testing, 0 passed); mainline RED in //x since the direct push 0123456789ab, or one after it (3 in all)"},
		{view.Overview{Queue: "q", MainlineRed: []string{"//x", "//y"}, RedSince: &view.RedSince{Commit: "0123456789abcdef", Suspects: 1}},
			"queue q: 0 pending (0 waiting, 0 testing, 0 passed); mainline RED in //x, //y, the first of them since the direct push 0123456789ab"},
	} {
		if got := queueLine(c.q, time.Time{}); got != c.want {
			t.Errorf("it says %q, want %q", got, c.want)
		}
	}
}

func TestTheTableSaysWhatTheMarkOfAChangeMeans(t *testing.T) {
	lines := table([]view.Summary{{Change: "a", Position: 1, Urgent: true}, {Change: "b", Position: 2}}, time.Now())
	if len(lines) != 4 || lines[3] != "!: moved to the front; landfall explain says by whom" {
		t.Errorf("it says %q", lines)
	}
	if lines := table([]view.Summary{{Change: "b", Position: 2}}, time.Now()); len(lines) != 2 {
		t.Errorf("without such a change it says %q", lines)
	}
}
