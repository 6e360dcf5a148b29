package course

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	eventsv1 "landfall.build/events/v1"
	"landfall.build/tools/simulate/forecast"
	"landfall.build/tools/simulate/policy"
	"landfall.build/tools/simulate/trace"
)

// small is a workload in which everything happens: conflicts, failures, bypasses, contention.
func small(seed uint64) trace.Paper {
	p := trace.PinnedPaper()
	p.Seed, p.Changes, p.Failure, p.Potential, p.True = seed, 80, 0.15, 0.2, 0.05
	return p
}

func run(t *testing.T, p trace.Paper, name, predictor string, workers int) *Result {
	t.Helper()
	k, err := policy.Named(name)
	if err != nil {
		t.Fatal(err)
	}
	return runKind(t, p, k, predictor, workers)
}

func runKind(t *testing.T, p trace.Paper, k policy.Kind, predictor string, workers int) *Result {
	t.Helper()
	f, err := forecast.New(predictor, p.Seed, p.Start)
	if err != nil {
		t.Fatal(err)
	}
	r, err := Run(context.Background(), Options{
		Trace: p.Start(), Forecast: f, Kind: k, Workers: workers, Threshold: k.Threshold, Bypass: k.Bypass, Round: 10 * time.Second,
	})
	if err != nil {
		t.Fatalf("seed %d, %s, %d workers: %v", p.Seed, k.Name, workers, err)
	}
	return r
}

// Run itself fails when a change lands, or is rejected, that the trace has otherwise. So it is enough that
// it does not fail, that all were decided, and that the numbers are those of the truth.
func TestEveryPolicyLandsWhatTheTraceSays(t *testing.T) {
	for seed := uint64(1); seed <= 2; seed++ {
		p := small(seed)
		var truth trace.Truth
		landing := 0
		for tr := p.Start(); ; {
			c, err := tr.Next()
			if err != nil {
				break
			}
			if truth.Take(c) {
				landing++
			}
		}
		if landing == p.Changes || landing < p.Changes/2 {
			t.Fatalf("seed %d: %d of %d land; the workload shows nothing", seed, landing, p.Changes)
		}
		for _, name := range policy.Names() {
			workers := []int{1: 8, 2: 60}[seed]
			r := run(t, p, name, forecast.Calibrated, workers)
			if r.Landed != landing || r.Rejected != p.Changes-landing || r.RedCommits != 0 {
				t.Errorf("seed %d, %s, %d workers: %d landed, %d rejected, %d red; in the trace %d of %d land", seed, name, workers, r.Landed, r.Rejected, r.RedCommits, landing, p.Changes)
			}
			if r.WorkerHours > float64(workers)*r.Hours {
				t.Errorf("seed %d, %s: %.1f worker hours in %.1f hours of %d workers", seed, name, r.WorkerHours, r.Hours, workers)
			}
		}
	}
}

// lying has one change be red for the truth, green for who builds it, and red again where it has landed.
type lying struct {
	trace.Trace
	liar *trace.Change
}

func (l *lying) Next() (*trace.Change, error) {
	c, err := l.Trace.Next()
	if err == nil && l.liar == nil && c.Green && c.Number > 5 {
		c.Green = false
		l.liar = c
	}
	return c, err
}

func TestARedCommitIsCountedAndAnError(t *testing.T) {
	p := small(1)
	k, err := policy.Named("landfall")
	if err != nil {
		t.Fatal(err)
	}
	f, err := forecast.New(forecast.Calibrated, p.Seed, p.Start)
	if err != nil {
		t.Fatal(err)
	}
	l := &lying{Trace: p.Start()}
	r, err := Run(t.Context(), Options{
		Trace: l, Forecast: f, Kind: k, Workers: 60, Threshold: k.Threshold, Bypass: k.Bypass, Round: 10 * time.Second,
		Record: func(s *eventsv1.Speculation) {
			for _, x := range s.Facts {
				if a := x.GetChangeAdmitted().GetAdmission(); l.liar != nil && a.GetChange() == l.liar.ID {
					l.liar.Green = true
				}
				if b := x.GetStepFinished(); l.liar != nil && b.GetTarget() == l.liar.ID {
					l.liar.Green = false
				}
			}
		},
	})
	var difference *Difference
	if !errors.As(err, &difference) || difference.Changes < 1 || difference.RedCommits != 1 || !strings.HasPrefix(difference.First, l.liar.ID+" landed") {
		t.Fatalf("%v", err)
	}
	if r == nil || r.RedCommits != 1 || r.Decided() != p.Changes {
		t.Errorf("%+v", r)
	}
}

func TestTheSameSeedGivesTheSameBytes(t *testing.T) {
	for _, name := range policy.Names() {
		var was string
		for range 2 {
			b, err := json.Marshal(run(t, small(3), name, forecast.Calibrated, 20))
			if err != nil {
				t.Fatal(err)
			}
			if was != "" && was != string(b) {
				t.Errorf("%s: two runs of one seed differ", name)
			}
			was = string(b)
		}
	}
}

func TestTheOracleBuildsEachChangeOnce(t *testing.T) {
	r := run(t, small(4), "oracle", forecast.Flat, 60)
	if r.Builds != r.Decided() || r.Aborted != 0 {
		t.Errorf("%d builds, %d aborted, for %d changes", r.Builds, r.Aborted, r.Decided())
	}
	if again := run(t, small(4), "oracle", forecast.Perfect, 60); again.Turnaround[40] != r.Turnaround[40] {
		t.Error("the oracle's turnaround depends on the forecast")
	}
}

// With nothing in conflict and workers for all, a change waits for its own build alone.
func TestWithoutConflictsEveryPolicyTakesTheTimeOfTheBuild(t *testing.T) {
	p := small(5)
	p.Potential = 0
	for _, name := range policy.Names() {
		r := run(t, p, name, forecast.Calibrated, 100)
		if worst := r.Wait[len(r.Wait)-1]; worst > 30 || r.Builds != p.Changes {
			t.Errorf("%s: a change waited %.0f s beyond its build; %d builds for %d changes", name, worst, r.Builds, p.Changes)
		}
	}
}

// A policy with perfect knowledge and no bypass builds what the oracle builds.
func TestWithPerfectForecastsThe2019PolicyIsTheOracle(t *testing.T) {
	p := small(6)
	oracle, policy2019 := run(t, p, "oracle", forecast.Perfect, 80), run(t, p, "submitqueue-2019", forecast.Perfect, 80)
	for _, q := range []float64{50, 95, 99} {
		a, b := Percentile(oracle.Turnaround, q), Percentile(policy2019.Turnaround, q)
		if b > 1.02*a || b < 0.98*a {
			t.Errorf("P%.0f: the oracle takes %.0f s, the 2019 policy %.0f s", q, a, b)
		}
	}
}

func TestAPolicyWithoutBypassKeepsTheOrder(t *testing.T) {
	for _, name := range policy.Names() {
		k, _ := policy.Named(name)
		r := run(t, small(7), name, forecast.Calibrated, 60)
		if passes := r.Passed > 0; passes && !k.Traits.Passes {
			t.Errorf("%s: %d changes landed before one ahead of them", name, r.Passed)
		}
	}
	if r := run(t, small(7), "blrd-2023", forecast.Flat, 300); r.Passed == 0 {
		t.Error("blrd-2023: nothing passed anything; the test shows nothing")
	}
}

func TestBatchesAreHalvedUntilTheCulpritIsFound(t *testing.T) {
	p := small(8)
	r := run(t, p, "batch-bisect", forecast.Flat, 10)
	if r.Builds >= 2*p.Changes || r.Aborted == 0 {
		t.Errorf("%d builds for %d changes, of which %d failed as a batch", r.Builds, p.Changes, r.Aborted)
	}
}

// How the policies of the 2019 and 2025 papers compare there, on a workload that a test can afford: a single
// queue is the worst by far, speculating on everything is worse than on what is likely, a threshold saves
// most of the builds (where no bypass is funded: funding all of them undoes it, see docs/benchmark.md), and
// nobody who passes nothing is much faster than the oracle.
func TestThePoliciesCompareAsInThePapers(t *testing.T) {
	p := trace.PinnedPaper()
	p.Changes, p.Potential = 100, 0.1
	results := map[string]*Result{}
	for _, name := range []string{"oracle", "single-queue", "speculate-all", "submitqueue-2019"} {
		results[name] = run(t, p, name, forecast.Calibrated, 100)
	}
	k, err := policy.Named("ci-at-scale-2025")
	if err != nil {
		t.Fatal(err)
	}
	k.Bypass = 2
	lean := runKind(t, p, k, forecast.Calibrated, 100)
	at := func(name string, q float64) float64 { return Percentile(results[name].Turnaround, q) }
	if at("single-queue", 95) < 3*at("oracle", 95) {
		t.Errorf("P95 of the single queue is %.0f s, of the oracle %.0f s", at("single-queue", 95), at("oracle", 95))
	}
	if at("speculate-all", 95) < at("submitqueue-2019", 95) {
		t.Errorf("P95 of speculating on everything is %.0f s, on what is likely %.0f s", at("speculate-all", 95), at("submitqueue-2019", 95))
	}
	if with, without := lean.BuildsPerChange(), results["submitqueue-2019"].BuildsPerChange(); with > 0.6*without {
		t.Errorf("%.2f builds for each change with a threshold, %.2f without", with, without)
	}
	for name, r := range results {
		if at(name, 50) < 0.98*at("oracle", 50) && r.Passed == 0 {
			t.Errorf("P50 of %s is %.0f s, of the oracle %.0f s, and nothing passed anything", name, at(name, 50), at("oracle", 50))
		}
	}
}
