package simulate

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"landfall.build/tools/simulate/course"
	"landfall.build/tools/simulate/forecast"
	"landfall.build/tools/simulate/history"
	"landfall.build/tools/simulate/policy"
	"landfall.build/tools/simulate/trace"
)

func execute(t *testing.T, args ...string) (out string, err error) {
	t.Helper()
	var b, progress bytes.Buffer
	c := Command(nil, slog.New(slog.DiscardHandler))
	c.SilenceErrors = true
	c.SetOut(&b)
	c.SetErr(&progress)
	c.SetArgs(args)
	err = c.ExecuteContext(context.Background())
	return b.String(), err
}

func TestTheJSONHasTheDocumentedShape(t *testing.T) {
	out, err := execute(t, "--changes", "40", "--workers", "10", "--policies", "single-queue,landfall", "--seeds", "2", "--json")
	if err != nil {
		t.Fatal(err)
	}
	var value struct {
		Workload map[string]any   `json:"workload"`
		Results  []map[string]any `json:"results"`
	}
	if err := json.Unmarshal([]byte(out), &value); err != nil {
		t.Fatalf("%v in %s", err, out)
	}
	if value.Workload["name"] != "paper" || value.Workload["changes"] != 40.0 || len(value.Results) != 3 {
		t.Fatalf("%s", out)
	}
	for i, name := range []string{"oracle", "single-queue", "landfall"} {
		r := value.Results[i]
		if r["policy"] != name || r["red_commits"] != 0.0 || r["landed"].(float64)+r["rejected"].(float64) != 40 {
			t.Errorf("%v", r)
		}
		for _, of := range []string{"turnaround_s", "wait_s", "over_oracle"} {
			p, _ := r[of].(map[string]any)
			for _, q := range []string{"p50", "p95", "p99"} {
				if x, ok := p[q].(float64); !ok || math.IsNaN(x) {
					t.Errorf("%s has no %s of %s", name, q, of)
				}
			}
		}
		for _, field := range []string{"throughput_per_h", "builds_per_change", "aborted_share", "worker_hours", "bypass_rate", "confidence_95"} {
			if _, has := r[field]; !has {
				t.Errorf("%s has no %s", name, field)
			}
		}
	}
	if o := value.Results[0]["over_oracle"].(map[string]any); o["p95"] != 1.0 {
		t.Errorf("the oracle over itself is %v", o)
	}
}

func TestWhatIsSwitchedOnIsSaidAndCounted(t *testing.T) {
	args := []string{"--changes", "40", "--workers", "20", "--policies", "landfall", "--json"}
	plain, err := execute(t, args...)
	if err != nil || strings.Contains(plain, "cancel") || strings.Contains(plain, "minimal_steps") {
		t.Fatalf("%v; without the flags nothing is said of them: %s", err, plain)
	}
	out, err := execute(t, append(args, "--minimal-steps", "--flakes", "0.1", "--worker-loss", "0.2", "--cancellations", "0.2")...)
	if err != nil {
		t.Fatal(err)
	}
	var value struct {
		Workload map[string]any
		Results  []struct{ Landed, Rejected, Cancelled float64 }
	}
	if err := json.Unmarshal([]byte(out), &value); err != nil {
		t.Fatal(err)
	}
	w := value.Workload
	if w["minimal_steps"] != true || w["flakes"] != 0.1 || w["worker_loss_per_h"] != 0.2 || w["cancellations"] != 0.2 {
		t.Errorf("%v", w)
	}
	for _, r := range value.Results {
		if r.Cancelled == 0 || r.Landed+r.Rejected+r.Cancelled != 40 || r != value.Results[0] {
			t.Errorf("%+v, the oracle %+v", r, value.Results[0])
		}
	}
}

func TestASweepHasATableForEachSetting(t *testing.T) {
	out, err := execute(t, "--changes", "30", "--workers", "5,10", "--potential-conflicts", "0.05,0.5", "--policies", "landfall", "--threshold", "0.1,0.5", "--bypass-threshold", "0.9,2")
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(out, "turnaround P50"); n != 4 {
		t.Errorf("%d tables:\n%s", n, out)
	}
	if n := strings.Count(out, "no bypass"); n != 8 {
		t.Errorf("%d rows without bypass:\n%s", n, out)
	}
}

func TestASlowQueueHasMoreThanOneDigit(t *testing.T) {
	for x, want := range map[float64]string{1.1574: "1.16", 0.05: "0.05", 10: "10", 387.6: "388"} {
		if got := figure(x); got != want {
			t.Errorf("%v is written as %s", x, got)
		}
	}
}

func TestTheSameCommandPrintsTheSame(t *testing.T) {
	args := []string{"--changes", "40", "--workers", "10", "--seeds", "2", "--policies", "ci-at-scale-2025,batch-bisect", "--parallel"}
	one, err := execute(t, append(slices.Clone(args), "1")...)
	if err != nil {
		t.Fatal(err)
	}
	if four, err := execute(t, append(slices.Clone(args), "4")...); err != nil || one != four {
		t.Errorf("one at a time and four at a time differ: %v\n%s\n%s", err, one, four)
	}
}

func TestWhatCannotBeSimulatedIsRefused(t *testing.T) {
	for want, args := range map[string][]string{
		`no policy "bors"`:                     {"--policies", "bors"},
		"--predictor is":                       {"--predictor", "prophetic"},
		"--workers is 0":                       {"--workers", "0"},
		"--seeds is 0":                         {"--seeds", "0"},
		"a rate of 0":                          {"--rate", "0"},
		"neither a workload":                   {"no-such-file"},
		"name it with --data":                  {"lrts"},
		"has no CSV file":                      {"lrts", "--data", t.TempDir()},
		"--newest is 0":                        {"lrts", "--newest", "0"},
		"--newest is NaN":                      {"lrts", "--newest", "NaN"},
		"it goes with lrts":                    {"--predictor", "trained"},
		"--newest does not apply":              {"--newest", "0.5"},
		"--rate does not apply to t":           {"t.jsonl", "--rate", "300"},
		"--against does not apply":             {"--against", "current"},
		"--median does not apply":              {"log", "--queue", "main", "--median", "20m"},
		"--queue does not apply":               {"lrts", "--data", "elsewhere", "--queue", "main"},
		"--potential-conflicts does not apply": {"git", "--potential-conflicts", "0.2"},
		"--report: mkdir":                      {"--changes", "40", "--report", filepath.Join(os.Args[0], "report")},
		"not [+Inf]":                           {"--bypass-threshold", "inf"},
		"go with --predictor":                  {"lrts", "--success-model", "m"},
		"sweep fewer values":                   {"--seeds", "1000", "--workers", "1,2,3,4"},
		"name it with --queue":                 {"log"},
		"holds no log":                         {"log", "--queue", "main", "--data", t.TempDir()},
		"--against is":                         {"log", "--queue", "main", "--against", "others"},
		"--threshold is a":                     {"--threshold", "-1"},
		"probability, not [0.1 2]":             {"--threshold", "0.1,2"},
		"above 1 for none":                     {"--bypass-threshold", "NaN"},
		"potential conflict of 20":             {"--potential-conflicts", "20"},
		"flakes of 1.2":                        {"--flakes", "1.2"},
		"worker loss of -1":                    {"--worker-loss", "-1"},
		"cancellations of NaN":                 {"--cancellations", "NaN"},
		"-5 changes":                           {"git", "--changes", "-5", "--data", "commits.csv", "--repository", "r", "--sources", "folder"},
		"0 changes":                            {"lrts", "--changes", "0", "--data", "elsewhere"},
		"300 changes at 1e-09":                 {"--changes", "300", "--rate", "1e-9"},
		"nothing to compare":                   {"--changes", "3", "--policies", "landfall", "--cancellations", "1", "--json"},
		"only whole builds":                    {"lrts", "--minimal-steps", "--data", "elsewhere"},
	} {
		if out, err := execute(t, args...); err == nil || !strings.Contains(err.Error(), want) || out != "" {
			t.Errorf("%v: %v (%q), should say %q", args, err, out, want)
		}
	}
}

func TestAFileIsSimulated(t *testing.T) {
	name := filepath.Join(t.TempDir(), "trace.jsonl")
	var b strings.Builder
	b.WriteString(`{"id":"a","arrival_s":0,"duration_s":1800,"green":true}` + "\n")
	b.WriteString(`{"id":"b","arrival_s":60,"duration_s":600,"green":true,"meets":["a"]}` + "\n")
	b.WriteString(`{"id":"c","arrival_s":120,"duration_s":600,"green":true,"meets":["a","b"],"breaks":["a"]}` + "\n")
	if err := os.WriteFile(name, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := execute(t, name, "--workers", "8", "--round", "1s", "--predictor", "perfect", "--json")
	if err != nil {
		t.Fatal(err)
	}
	var value struct{ Results []Row }
	if err := json.Unmarshal([]byte(out), &value); err != nil || len(value.Results) != len(policy.Names()) {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, r := range value.Results {
		if r.Landed != 2 || r.Rejected != 1 {
			t.Errorf("%s: %v landed, %v rejected", r.Policy, r.Landed, r.Rejected)
		}
		// b can pass a, whose build takes until 1800: only who funds both of its paths sees that at 660.
		if passed := r.Turnaround.P50 < 1000; passed && r.BypassRate == 0 {
			t.Errorf("%s: half of the changes took %v s, and nothing passed anything", r.Policy, r.Turnaround.P50)
		}
	}
	if err := os.WriteFile(name, []byte(b.String()+"{}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := execute(t, name); err == nil || !strings.Contains(err.Error(), "line 4: arrival_s is missing") {
		t.Errorf("a bad line: %v", err)
	}
}

// A trace is read once for each course, so a pipe is refused, and not waited for.
func TestWhatIsNoFileIsNoWorkload(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{pipe, os.DevNull, t.TempDir()} {
		if out, err := execute(t, name); err == nil || !strings.Contains(err.Error(), "no file that can be read from its beginning") || out != "" {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestReadingALongFileCanBeInterrupted(t *testing.T) {
	name := filepath.Join(t.TempDir(), "trace.jsonl")
	if err := os.WriteFile(name, []byte(`{"id":"a","arrival_s":0,"duration_s":1800,"green":true}`+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if _, err := (&flags{}).file(ctx, name); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

func TestRecordedBuildsAreSimulated(t *testing.T) {
	folder := t.TempDir()
	rows := `project,pr_name,build_id,build_duration,build_timestamp,build_result,stage_id,pr_base_branch,build_head_sha
p,PR-1,1,100,1000,SUCCESS,a,m,1
p,PR-1,1,100,1000,SUCCESS,b,m,1
p,PR-2,1,200,1100,FAILURE,a,m,2
p,PR-3,1,50,1200,ABORTED,a,m,3
p,PR-4,1,300,900,SUCCESS,a,m,4
`
	if err := os.WriteFile(filepath.Join(folder, "p.training.csv"), []byte(rows), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := execute(t, "lrts", "--data", folder, "--policies", "landfall", "--workers", "4", "--json")
	if err != nil || !strings.Contains(out, `"landed": 2`) || !strings.Contains(out, `"rejected": 1`) {
		t.Errorf("%v\n%s", err, out)
	}
}

// A queue's own settings are what is tried, and what others are held against.
func TestAHistoryIsSimulatedWithItsOwnSettings(t *testing.T) {
	h := history.New()
	f, err := forecast.New(forecast.Flat, 1, func() trace.Trace { p := trace.PinnedPaper(); p.Changes = 25; return p.Start() })
	if err != nil {
		t.Fatal(err)
	}
	k, _ := policy.Named("landfall")
	p := trace.PinnedPaper()
	p.Changes = 25
	if _, err := course.Run(t.Context(), course.Options{Trace: p.Start(), Forecast: f, Kind: k, Workers: 7, Threshold: 0.25, Bypass: 2, Record: h.Fold}); err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		args       []string
		workers    []int
		thresholds []float64
	}{
		{nil, []int{7}, []float64{0.25}},
		{[]string{"--threshold", "0.1,0.5", "--workers", "9"}, []int{9}, []float64{0.1, 0.5}},
		{[]string{"--threshold", "0.1,0.5", "--against", "current"}, []int{7}, []float64{0.25, 0.1, 0.5}},
	} {
		f := &flags{queue: "main"}
		c := f.command(nil, nil)
		if err := c.ParseFlags(x.args); err != nil {
			t.Fatal(err)
		}
		settings, err := f.past(h)
		if err != nil {
			t.Fatal(err)
		}
		var workers []int
		for _, s := range settings {
			workers = append(workers, s.Workers)
			if s.Workload["changes"] != 25 {
				t.Errorf("%v", s.Workload)
			}
		}
		if !slices.Equal(workers, x.workers) || !slices.Equal(f.thresholds, x.thresholds) || !slices.Equal(f.bypasses, []float64{2}) {
			t.Errorf("%v: %v workers, thresholds %v, bypasses %v", x.args, workers, f.thresholds, f.bypasses)
		}
	}
}

// The margin is Student's.
func TestTheConfidenceIntervalIsStudents(t *testing.T) {
	values := []float64{1, 2, 3, 4, 5}
	mean, margin := meanAndMargin(len(values), func(i int) float64 { return values[i] })
	if mean != 3 || math.Abs(margin-2.776*math.Sqrt(2.5/5)) > 1e-9 {
		t.Errorf("%v ± %v", mean, margin)
	}
	if _, margin := meanAndMargin(1, func(int) float64 { return 7 }); margin != 0 {
		t.Errorf("one value has a margin of %v", margin)
	}
}

func TestEveryPolicyNamesItsSource(t *testing.T) {
	out, err := execute(t, "--list")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range policy.Names() {
		k, _ := policy.Named(name)
		if k.Source == "" || k.Says == "" || !strings.Contains(out, k.Source) {
			t.Errorf("%s: %q, %q", name, k.Source, k.Says)
		}
	}
}
