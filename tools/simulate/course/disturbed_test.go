package course

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	eventsv1 "landfall.build/events/v1"
	"landfall.build/tools/simulate/forecast"
	"landfall.build/tools/simulate/policy"
	"landfall.build/tools/simulate/trace"
)

// disturbed runs a workload in which things go wrong beside the changes.
func disturbed(t *testing.T, p trace.Paper, d trace.Disturbances, name string, workers int, record func(*eventsv1.Speculation)) *Result {
	t.Helper()
	k, err := policy.Named(name)
	if err != nil {
		t.Fatal(err)
	}
	d.Seed = p.Seed
	start := func() trace.Trace { return d.Cancelling(p.Start()) }
	f, err := forecast.New(forecast.Calibrated, p.Seed, start)
	if err != nil {
		t.Fatal(err)
	}
	r, err := Run(context.Background(), Options{
		Trace: start(), Forecast: f, Kind: k, Workers: workers, Threshold: k.Threshold, Bypass: k.Bypass, Round: 10 * time.Second,
		Disturbed: d, Record: record,
	})
	if err != nil {
		t.Fatalf("seed %d, %s, %d workers: %v", p.Seed, name, workers, err)
	}
	return r
}

// changesOf are the changes of a trace, and which of them land by the rule alone, worked out one after the other.
func changesOf(t *testing.T, tr trace.Trace) (list []*trace.Change, lands []bool) {
	t.Helper()
	for {
		c, err := tr.Next()
		if err != nil {
			return list, lands
		}
		list = append(list, c)
		lands = append(lands, c.Green && c.Cancelled == 0 && !slices.ContainsFunc(c.Breaks, func(b int) bool { return lands[b] }))
	}
}

// Run fails where a change is decided in another way than the trace has it. So each policy lands the same, with targets
// and without, whatever goes wrong.
func TestWhateverGoesWrongEveryPolicyLandsWhatTheTraceSays(t *testing.T) {
	everything := trace.Disturbances{Flakes: 0.2, Losses: 0.5, Cancelled: 0.15}
	for _, x := range []struct {
		byTarget  bool
		disturbed trace.Disturbances
		workers   int
	}{
		{true, trace.Disturbances{}, 60},
		{true, everything, 8},
		{false, everything, 60},
	} {
		p := small(11)
		p.Changes, p.ByTarget = 60, x.byTarget
		x.disturbed.Seed = p.Seed
		changes, lands := changesOf(t, x.disturbed.Cancelling(p.Start()))
		landing, cancelled := 0, 0
		for i, c := range changes {
			if lands[i] {
				landing++
			}
			if c.Cancelled > 0 {
				cancelled++
			}
		}
		if cancelled == 0 != (x.disturbed.Cancelled == 0) || landing+cancelled == len(changes) {
			t.Fatalf("%d land and %d are cancelled of %d; the workload shows nothing", landing, cancelled, len(changes))
		}
		for _, name := range policy.Names() {
			r := disturbed(t, p, x.disturbed, name, x.workers, nil)
			if r.Landed != landing || r.Cancelled != cancelled || r.Decided() != len(changes)-cancelled || r.RedCommits != 0 {
				t.Errorf("targets %v, %s: %d landed, %d rejected, %d cancelled, %d red; in the trace %d land and %d are cancelled",
					x.byTarget, name, r.Landed, r.Rejected, r.Cancelled, r.RedCommits, landing, cancelled)
			}
			if r.WorkerHours > float64(x.workers)*r.Hours {
				t.Errorf("%s: %.1f worker hours in %.1f hours of %d workers", name, r.WorkerHours, r.Hours, x.workers)
			}
		}
	}
}

// twin knows of each version which changes its tree holds of those that affect the target, and says from these alone how
// it ends.
type twin struct {
	changes map[string]*trace.Change
	landed  map[int]bool
	holders map[string]string // by target@hash
	versus  map[string]string // the other way round
	red     map[string]bool
}

func (w *twin) prepared(t *testing.T, b *eventsv1.BuildPrepared) {
	t.Helper()
	tree := map[int]bool{w.changes[b.Change.Change].Number: true}
	for n := range w.landed {
		tree[n] = true
	}
	for _, a := range b.Assumed {
		tree[w.changes[a.Change].Number] = true
	}
	for _, v := range b.Versions {
		var held []int
		red := false
		for _, c := range w.changes {
			if !tree[c.Number] || !slices.ContainsFunc(c.Targets, func(x int) bool { return targetName(x) == v.Target }) {
				continue
			}
			held = append(held, c.Number)
			red = red || !c.Green && targetName(c.Fails) == v.Target
			for i, k := range c.Breaks {
				red = red || tree[k] && targetName(c.BreaksAt[i]) == v.Target
			}
		}
		slices.Sort(held)
		key, set := versionKey(v), v.Target+fmt.Sprint(held)
		if w.holders[key] != "" && w.holders[key] != set || w.versus[set] != "" && w.versus[set] != key {
			t.Fatalf("%s holds %s, and was %s, %s", key, set, w.holders[key], w.versus[set])
		}
		w.holders[key], w.versus[set], w.red[key] = set, key, red
	}
}

// What a version is, and how it ends, is a matter of the changes that its target holds: whoever builds it, on whatever path,
// the same. And it runs once, unless its first run flaked, or its worker was taken away.
func TestAVersionEndsAsTheChangesThatItHoldsSay(t *testing.T) {
	for _, flakes := range []float64{0, 0.3} {
		for _, name := range []string{"oracle", "landfall", "submitqueue-2019"} {
			p := small(12)
			p.ByTarget, p.True = true, 0.1
			w := &twin{map[string]*trace.Change{}, map[int]bool{}, map[string]string{}, map[string]string{}, map[string]bool{}}
			changes, _ := changesOf(t, p.Start())
			for _, c := range changes {
				w.changes[c.ID] = c
			}
			ran, again, reds := 0, 0, 0
			attempts := map[string][]bool{}
			disturbed(t, p, trace.Disturbances{Flakes: flakes}, name, 40, func(s *eventsv1.Speculation) {
				for _, f := range s.Facts {
					switch x := f.Fact.(type) {
					case *eventsv1.Fact_BuildPrepared:
						w.prepared(t, x.BuildPrepared)
					case *eventsv1.Fact_ChangeLanded:
						w.landed[w.changes[x.ChangeLanded.Change.Change].Number] = true
					case *eventsv1.Fact_StepFinished:
						key := x.StepFinished.Target + "@" + x.StepFinished.Hash
						ran++
						attempts[key] = append(attempts[key], x.StepFinished.Outcome == eventsv1.StepOutcome_STEP_OUTCOME_PASSED)
					}
				}
			})
			for key, passed := range attempts {
				// The second run of a version whose first one failed may have lost its worker for good.
				red, last := w.red[key], passed[len(passed)-1]
				if w.holders[key] == "" || last && red || !last && !red && len(passed) > 1 || len(passed) > 2 || flakes == 0 && (len(passed) > 1 || last == red) {
					t.Fatalf("flakes %v, %s: %s ended %v, red is %v", flakes, name, key, passed, red)
				}
				if red {
					reds++
				} else if len(passed) == 2 {
					again++
				}
			}
			if ran < 300 || reds < 5 || (again == 0) != (flakes == 0) {
				t.Errorf("flakes %v, %s: %d runs, %d red, %d flaked; that shows nothing", flakes, name, ran, reds, again)
			}
		}
	}
}

// With ten targets each change costs the oracle what its build costs, less what one that fails need not run any more.
func TestMinimalStepsCostTheOracleOneBuildForEachChange(t *testing.T) {
	p := small(13)
	p.ByTarget, p.Failure, p.True = true, 0, 0
	changes, _ := changesOf(t, p.Start())
	var hours float64
	for _, c := range changes {
		hours += float64(c.Duration) / 3.6e9
	}
	r := disturbed(t, p, trace.Disturbances{}, "oracle", 60, nil)
	if r.Builds != p.Changes || r.WorkerHours > hours || r.WorkerHours < 0.999*hours {
		t.Errorf("%d builds, %.2f worker hours of %.2f", r.Builds, r.WorkerHours, hours)
	}
	p.ByTarget = false // whole builds have more to lose
	if lossy := disturbed(t, p, trace.Disturbances{Losses: 0.5}, "oracle", 60, nil); lossy.WorkerHours < 1.1*hours {
		t.Errorf("with workers that are lost every other hour it takes %.2f worker hours instead of %.2f", lossy.WorkerHours, hours)
	}
	// What is known by target is worth something: less is built again after a miscall.
	p = small(13)
	whole := disturbed(t, p, trace.Disturbances{}, "landfall", 30, nil)
	p.ByTarget = true
	if parts := disturbed(t, p, trace.Disturbances{}, "landfall", 30, nil); parts.WorkerHours >= whole.WorkerHours {
		t.Errorf("by target %.1f worker hours, by whole builds %.1f", parts.WorkerHours, whole.WorkerHours)
	}
}
