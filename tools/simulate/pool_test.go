package simulate

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"landfall.build/tools/simulate/course"
	"landfall.build/tools/simulate/forecast"
	"landfall.build/tools/simulate/policy"
	"landfall.build/tools/simulate/trace"
)

// result is what a command printed as JSON.
type result struct {
	Workload map[string]any
	Results  []Row
}

func simulated(t *testing.T, args ...string) (r result) {
	t.Helper()
	out, err := execute(t, append(args, "--json")...)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		t.Fatalf("%v in %s", err, out)
	}
	return r
}

func TestARepositoryIsDrawnAndMeasuredBySize(t *testing.T) {
	r := simulated(t, "monorepo", "--changes", "50", "--load", "0.8", "--seeds", "2", "--policies", "landfall-by-build,landfall")
	w := r.Workload
	if w["name"] != "monorepo" || w["load"] != 0.8 || w["targets"] != 4000.0 || w["checkout_s"] != 0.2 || w["overhead_s"] != 0.1 || w["round_s"] != 1.0 || w["flakes"] != poolFlakes {
		t.Errorf("%v", w)
	}
	if len(r.Results) != 3 {
		t.Fatalf("%d rows", len(r.Results))
	}
	for _, row := range r.Results {
		s := row.Slowdown
		if row.Workers != 64 || s == nil || s.Mean <= 0 || s.Mean > s.Max || s.P95 > s.Max || row.Utilisation == nil || *row.Utilisation <= 0.5 || *row.Utilisation > 1 {
			t.Errorf("%s: %d workers, slowdown %+v, utilisation %v", row.Policy, row.Workers, s, row.Utilisation)
		}
		if row.Turnaround.Max < row.Turnaround.P99 || math.Abs(row.WorkerSeconds-3600*row.WorkerHours) > 1 {
			t.Errorf("%s: %+v, %v worker seconds", row.Policy, row.Turnaround, row.WorkerSeconds)
		}
		changes, seconds := 0.0, 0.0
		for _, size := range row.Sizes {
			changes, seconds = changes+size.Changes, seconds+size.WorkerSeconds
		}
		if changes != 50 || math.Abs(seconds-row.WorkerSeconds) > 1 {
			t.Errorf("%s: %v changes by size, with %v of %v worker seconds", row.Policy, changes, seconds, row.WorkerSeconds)
		}
	}
	out, err := execute(t, "monorepo", "--changes", "20", "--load", "0.5,0.9", "--policies", "landfall")
	if err != nil || strings.Count(out, "slowdown  P95") != 2 || strings.Count(out, "11–30 targets") != 2 {
		t.Errorf("%v\n%s", err, out)
	}
}

// needs are the worker seconds of an oracle that really runs.
func TestALoadIsTheShareOfTheWorkersThatTheOracleKeepsBusy(t *testing.T) {
	f := &flags{workload: workloadMono, checkout: 200 * time.Millisecond, overhead: 100 * time.Millisecond, disturbed: trace.Disturbances{Flakes: 0.01}}
	p := trace.PinnedPaper()
	p.Changes, p.Failure = 250, 0.1
	p.Median, p.P95, p.Shortest, p.Longest = poolMedian, poolP95, poolShortest, poolLongest
	m := trace.PinnedMonorepo(p)
	const load, workers = 0.6, 64
	start := f.loaded(func(rate float64, seed uint64) trace.Trace {
		with := m
		with.Rate, with.Seed = rate, seed
		return with.Start()
	}, load, workers)
	k, err := policy.Named("oracle")
	if err != nil {
		t.Fatal(err)
	}
	known, err := forecast.New(forecast.Flat, 3, func() trace.Trace { return start(3) })
	if err != nil {
		t.Fatal(err)
	}
	f.disturbed.Seed = 3
	r, err := course.Run(t.Context(), course.Options{
		Trace: start(3), Forecast: known, Kind: k, Workers: workers, Pool: &course.Pool{Checkout: f.checkout, Overhead: f.overhead}, Round: time.Second,
		Bypass: k.Bypass, Disturbed: f.disturbed,
	})
	if err != nil {
		t.Fatal(err)
	}
	last := int64(0)
	for tr := start(3); ; {
		c, err := tr.Next()
		if err != nil {
			break
		}
		last = c.Arrival
	}
	// The window is as long as the arrivals take on average; this trace's own take about as long.
	got := r.WorkerHours * 3600 / (workers * float64(last) / 1e6)
	if math.Abs(got-load) > 0.12*load {
		t.Errorf("the oracle keeps %.3f of the workers busy while changes arrive, not %v", got, load)
	}
	seconds, _ := needed(start(3), f.disturbed, f.checkout, f.overhead)
	if really := r.WorkerHours * 3600; math.Abs(really-seconds) > 0.03*really {
		t.Errorf("the oracle spends %.0f worker seconds; said to need %.0f", really, seconds)
	}
}

func TestAFileIsSimulatedInSteps(t *testing.T) {
	name := filepath.Join(t.TempDir(), "trace.jsonl")
	lines := []string{
		`{"id":"large","arrival_s":0,"green":true,"steps":{` + manySteps(41) + `}}`,
		`{"id":"small","arrival_s":1,"green":true,"steps":{"//small":1}}`,
		`{"id":"bad","arrival_s":1,"green":false,"steps":{"//x":1,"//y":3},"fails":"//y"}`,
		`{"id":"breaks","arrival_s":2,"green":true,"steps":{"//small":2,"//z":1},"breaks":["small"]}`,
	}
	write := func(lines ...string) {
		if err := os.WriteFile(name, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(lines...)
	r := simulated(t, name, "--pool", "--workers", "4", "--round", "1s", "--predictor", "perfect")
	if len(r.Results) != len(policy.PoolNames()) {
		t.Errorf("%d rows", len(r.Results))
	}
	for _, row := range r.Results {
		if row.Landed != 2 || row.Rejected != 2 || row.RedCommits != 0 || row.Slowdown == nil {
			t.Errorf("%s: %v landed, %v rejected", row.Policy, row.Landed, row.Rejected)
		}
	}
	for want, line := range map[string]string{
		"has no steps":            `{"id":"e","arrival_s":9,"duration_s":5,"green":true}`,
		"none of its steps":       `{"id":"e","arrival_s":9,"green":false,"steps":{"//a":1},"fails":"//b"}`,
		"takes -1 s":              `{"id":"e","arrival_s":9,"green":true,"steps":{"//a":-1}}`,
		"shares no target":        `{"id":"e","arrival_s":9,"green":true,"steps":{"//a":1},"breaks":["small"]}`,
		`its step "" takes`:       `{"id":"e","arrival_s":9,"green":true,"steps":{"":1}}`,
		"duration_s is missing":   `{"id":"e","arrival_s":9,"green":true,"steps":{}}`,
		"none of the changes bef": `{"id":"e","arrival_s":9,"green":true,"steps":{"//a":1},"breaks":["f"]}`,
	} {
		write(append(slices.Clone(lines), line)...)
		if _, err := execute(t, name, "--pool"); err == nil || !strings.Contains(err.Error(), "line 5: ") || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, should say %q", line, err, want)
		}
	}
}

func manySteps(n int) string {
	var list []string
	for i := range n {
		list = append(list, fmt.Sprintf(`"//large:%d":2`, i))
	}
	return strings.Join(list, ",")
}

func TestWhatHasNoPoolIsRefusedThere(t *testing.T) {
	for want, args := range map[string][]string{
		"--load gives the rate":        {"monorepo", "--load", "0.5", "--rate", "3"},
		"--load is 0":                  {"monorepo", "--load", "0"},
		"--load is NaN":                {"monorepo", "--load", "NaN"},
		"--load does not apply":        {"--load", "0.5"},
		"--load is about workers":      {"git", "--load", "0.5"},
		"--checkout is about":          {"--checkout", "1s"},
		"cannot be negative":           {"monorepo", "--overhead", "-1s"},
		"in the order of steps alone":  {"--policies", "landfall-by-build"},
		"a repository of 0 targets":    {"monorepo", "--targets", "0"},
		"not below the median":         {"monorepo", "--affected", "50", "--affected-p975", "40"},
		"--targets does not apply":     {"--targets", "7"},
		"--data does not apply to mon": {"monorepo", "--data", "x"},
	} {
		if out, err := execute(t, args...); err == nil || !strings.Contains(err.Error(), want) || out != "" {
			t.Errorf("%v: %v (%q), should say %q", args, err, out, want)
		}
	}
}

// A build of one step is what it was with a worker of its own, but for when workers are handed out.
func TestOnAPoolAWholeBuildIsOneStep(t *testing.T) {
	r := simulated(t, "--pool", "--changes", "60", "--workers", "30", "--checkout", "0s", "--overhead", "0s", "--policies", "landfall,landfall-by-build")
	whole := simulated(t, "--changes", "60", "--workers", "30", "--policies", "landfall")
	for i, row := range r.Results[:2] {
		if of := whole.Results[i]; math.Abs(row.Turnaround.P50-of.Turnaround.P50) > 0.02*of.Turnaround.P50 || row.Landed != of.Landed {
			t.Errorf("%s: P50 %.0f s on a pool, %.0f s with a worker for each build", row.Policy, row.Turnaround.P50, of.Turnaround.P50)
		}
	}
}
