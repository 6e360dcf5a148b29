package train_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"landfall.build/events/seedtest"
	"landfall.build/tools/train"
)

// command runs `landfall train …`.
func command(t *testing.T, args ...string) (out []byte, err error) {
	t.Helper()
	var stdout bytes.Buffer
	c := train.Command(nil, "test", nil)
	c.SilenceErrors, c.SilenceUsage = true, true
	c.SetOut(&stdout)
	c.SetErr(io.Discard)
	c.SetArgs(args)
	err = c.ExecuteContext(t.Context())
	return stdout.Bytes(), err
}

func file(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// reference is the part of the authors' runs that this test reads.
type reference struct {
	Train []int     `json:"train_idx"`
	Test  []int     `json:"test_idx"`
	Loss  []float64 `json:"loss"`
	NLL   float64   `json:"test_nll"`
	RMSE  float64   `json:"test_rmse"`
}

func TestADurationModelFromACSVIsTheAuthorsModel(t *testing.T) {
	const data = "../../learning/testdata/"
	for _, c := range []struct{ set, distribution string }{{"yacht", "normal"}, {"yacht", "lognormal"}} {
		text, err := os.ReadFile(data + "reference/ngb_" + c.set + "_" + c.distribution + "_log.json")
		if err != nil {
			t.Fatal(err)
		}
		var want reference
		if err := json.Unmarshal(text, &want); err != nil {
			t.Fatal(err)
		}
		set, err := os.ReadFile(data + "uci/" + c.set + ".txt")
		if err != nil {
			t.Fatal(err)
		}
		var csv strings.Builder
		for line := range strings.Lines(string(set)) {
			cells := strings.Fields(line)
			if len(cells) == 0 {
				continue
			}
			if csv.Len() == 0 {
				for i := range len(cells) - 1 {
					fmt.Fprintf(&csv, "x%d,", i)
				}
				csv.WriteString("y\n")
			}
			csv.WriteString(strings.Join(cells, ",") + "\n")
		}
		test := strings.Trim(fmt.Sprint(want.Test), "[]")
		out, err := command(t, "duration", "--csv", file(t, "set.csv", csv.String()), "--target", "y", "--distribution", c.distribution, "--exact", "--test-rows", file(t, "test", test), "--json")
		if err != nil {
			t.Fatal(err)
		}
		var got train.DurationReport
		if err := json.Unmarshal(out, &got); err != nil {
			t.Fatal(err)
		}
		if len(got.TrainLoss) != len(want.Loss) || got.Test == nil || got.TrainRows != len(want.Train) {
			t.Fatalf("%v: %d losses of %d, test %v", c, len(got.TrainLoss), len(want.Loss), got.Test)
		}
		for i, loss := range want.Loss {
			if math.Abs(got.TrainLoss[i]-loss) > 1e-6*max(1, math.Abs(loss)) {
				t.Fatalf("%v: loss of round %d is %v, the authors' %v", c, i, got.TrainLoss[i], loss)
			}
		}
		if math.Abs(*got.Test.NLL-want.NLL) > 0.005 || math.Abs(*got.Test.RMSE/want.RMSE-1) > 0.005 {
			t.Errorf("%v: NLL %v, RMSE %v; the authors' %v, %v", c, *got.Test.NLL, *got.Test.RMSE, want.NLL, want.RMSE)
		}
	}
}

// invented makes rows of which the outcome hangs on a curve of one column and on a text, with missing values and
// columns that say nothing. truth is the probability that each row had.
func invented(seed uint64, n int) (csv string, truth []float64) {
	random := rand.New(rand.NewPCG(seed, 0))
	var b strings.Builder
	b.WriteString("at,size,team,noise,constant,landed\n")
	for i := range n {
		size, team := math.Exp(3*random.NormFloat64()), random.IntN(4)
		odds := 1.5 - math.Abs(math.Log1p(size)-2) + []float64{-1, 0, 0.5, 1}[team]
		p := 1 / (1 + math.Exp(-odds))
		outcome := 0
		if random.Float64() < p {
			outcome = 1
		}
		truth = append(truth, p)
		shown := fmt.Sprintf("%.4f", size)
		if random.IntN(50) == 0 {
			shown = ""
		}
		fmt.Fprintf(&b, "%d,%s,team%d,%.3f,7,%d\n", 1_700_000_000+i*60, shown, team, random.NormFloat64(), outcome)
	}
	return b.String(), truth
}

func trainOutcome(t *testing.T, csv string) train.OutcomeReport {
	t.Helper()
	out, err := command(t, "outcome", "--csv", file(t, "rows.csv", csv), "--target", "landed", "--time", "at", "--json")
	if err != nil {
		t.Fatal(err)
	}
	var r train.OutcomeReport
	if err := json.Unmarshal(out, &r); err != nil {
		t.Fatal(err)
	}
	return r
}

func TestAnOutcomeModelIsNearlyAsGoodAsTheTruth(t *testing.T) {
	csv, truth := invented(5, 6000)
	r := trainOutcome(t, csv)
	lines := strings.Split(strings.TrimSpace(csv), "\n")[1:]
	best := 0.0
	for i := 4800; i < 6000; i++ {
		p := truth[i]
		if strings.HasSuffix(lines[i], ",0") {
			p = 1 - p
		}
		best -= math.Log(p) / 1200
	}
	if got := *r.Test.LogLoss; got > best+0.02 || *r.Test.ECE > 0.05 {
		t.Errorf("log loss %.4f, the truth's is %.4f; calibration error %.4f", got, best, *r.Test.ECE)
	}
	if r.Rows.Test != 1200 || r.Rows.Train != 4800 || r.Rows.Choose != 1920 || r.Chosen.Trees == 0 {
		t.Errorf("rows %+v, chosen %+v", r.Rows, r.Chosen)
	}
}

// TestTheTestPartChangesNothingThatIsChosen: with other outcomes in the newest fifth the same model comes out.
func TestTheTestPartChangesNothingThatIsChosen(t *testing.T) {
	csv, _ := invented(6, 2000)
	lines := strings.Split(strings.TrimSpace(csv), "\n")
	before := trainOutcome(t, csv)
	for i := 1601; i < len(lines); i++ {
		at := strings.LastIndexByte(lines[i], ',') + 1
		lines[i] = lines[i][:at] + map[string]string{"0": "1", "1": "0"}[lines[i][at:]]
	}
	after := trainOutcome(t, strings.Join(lines, "\n")+"\n")
	if !reflect.DeepEqual(before.Features, after.Features) || !reflect.DeepEqual(before.Weights, after.Weights) || before.Chosen != after.Chosen {
		t.Errorf("%+v and %+v", before.Chosen, after.Chosen)
	}
	if *after.Test.AUC >= 0.5 {
		t.Errorf("the outcomes were turned round, and the AUC is %v", *after.Test.AUC)
	}
}

// TestWhatHadNotEndedIsNotLearnedFrom: what older rows came to that had not ended when the first test row began may be turned
// round, and the same model comes out.
func TestWhatHadNotEndedIsNotLearnedFrom(t *testing.T) {
	random := rand.New(rand.NewPCG(seedtest.Or(t, 31), 0))
	var calm, turned strings.Builder
	calm.WriteString("at,ended,x,y,seconds,passed\n")
	turned.WriteString("at,ended,x,y,seconds,passed\n")
	late := 0
	for i := range 1500 {
		at, ended := 10*i, 10*i+random.IntN(2000)
		x, y := random.NormFloat64(), random.NormFloat64()
		seconds, passed := math.Exp(1+x/2+0.2*random.NormFloat64()), 0
		if random.Float64() < 1/(1+math.Exp(-x-y)) {
			passed = 1
		}
		fmt.Fprintf(&calm, "%d,%d,%.3f,%.3f,%.3f,%d\n", at, ended, x, y, seconds, passed)
		if i < 1200 && ended >= 12_000 { // the newest fifth begins at 12,000
			seconds, passed = 1000, 1-passed
			late++
		}
		fmt.Fprintf(&turned, "%d,%d,%.3f,%.3f,%.3f,%d\n", at, ended, x, y, seconds, passed)
	}
	of := func(csv string, args ...string) string {
		t.Helper()
		out, err := command(t, append(append(args[:len(args):len(args)], "--csv", file(t, "rows.csv", csv)), "--time", "at", "--json")...)
		if err != nil {
			t.Fatal(err)
		}
		var report map[string]any
		if err := json.Unmarshal(out, &report); err != nil {
			t.Fatal(err)
		}
		delete(report, "seconds")
		return fmt.Sprint(report)
	}
	for _, args := range [][]string{{"outcome", "--target", "passed"}, {"duration", "--target", "seconds", "--distribution", "lognormal", "--tune", "--rounds", "60", "--rate", "0.05"}} {
		known := append(args, "--ended", "ended")
		if a, b := of(calm.String(), known...), of(turned.String(), known...); a != b {
			t.Errorf("%v: of %d rows that had not ended something was learned:\n%s\n%s", args, late, a, b)
		}
		if a, b := of(calm.String(), args...), of(turned.String(), args...); a == b {
			t.Errorf("%v: it makes no difference what late rows came to; the test shows nothing", args)
		}
	}
	if _, err := command(t, "duration", "--csv", file(t, "rows.csv", calm.String()), "--target", "seconds", "--ended", "ended"); err == nil || !strings.Contains(err.Error(), "--time") {
		t.Errorf("--ended without --time: %v", err)
	}
	if _, err := command(t, "duration", "--csv", file(t, "rows.csv", calm.String()), "--target", "seconds", "--rate", "0"); err == nil || !strings.Contains(err.Error(), "--rate is 0") {
		t.Errorf("steps of no length: %v", err)
	}
	if _, err := command(t, "duration", "--csv", file(t, "rows.csv", calm.String()), "--target", "seconds", "--rounds", "0"); err == nil || !strings.Contains(err.Error(), "--rounds is 0") {
		t.Errorf("no round at all: %v", err)
	}
}

func TestBadTablesAreRefusedByName(t *testing.T) {
	good, _ := invented(1, 300)
	wide := strings.Repeat("c,", 100_000) + "landed\n" + strings.Repeat("1,", 100_000) + "1\n"
	oneClass := strings.NewReplacer(",7,0\n", ",7,1\n").Replace(good)
	ten := strings.Join(strings.SplitAfter(good, "\n")[:11], "")
	for _, c := range []struct{ name, csv, target, says string }{
		{"no such column", good, "lands", `unusable column: "lands"`},
		{"text as the outcome", good, "team", "text"},
		{"numbers as the outcome", good, "size", "row"},
		{"one class only", oneClass, "landed", "class"},
		{"ten rows", ten, "landed", "rows"},
		{"a hundred thousand columns", wide, "landed", "too many columns"},
		{"empty", "", "landed", "empty"},
		{"a header only", "at,landed\n", "landed", "no row"},
		{"ragged", "at,x,landed\n1,2\n", "landed", "CSV"},
		{"constant columns only", "at,x,landed\n" + strings.Repeat("1,5,0\n2,5,1\n", 100), "landed", "constant"},
	} {
		path := file(t, "rows.csv", c.csv)
		if _, err := command(t, "outcome", "--csv", path, "--target", c.target, "--time", "at"); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("outcome, %s: %v", c.name, err)
		}
	}
	path := file(t, "rows.csv", good)
	for _, c := range []struct {
		says string
		args []string
	}{
		{"row 300", []string{"--test-rows", file(t, "r", "1 300")}},
		{"twice", []string{"--test-rows", file(t, "r", "1 1")}},
		{"no number", []string{"--test-rows", file(t, "r", "1 x")}},
		{"0 of 300", []string{"--test-rows", file(t, "r", "")}},
		{"--test-share is 1", []string{"--time", "at", "--test-share", "1"}},
		{"distribution", []string{"--distribution", "poisson"}},
		{"text", []string{"--target", "team"}},
		{"missing", []string{"--target", "size"}},
		{"above zero", []string{"--target", "noise", "--distribution", "lognormal"}},
	} {
		if _, err := command(t, append([]string{"duration", "--csv", path, "--target", "noise"}, c.args...)...); err == nil || !strings.Contains(strings.ToLower(err.Error()), c.says) {
			t.Errorf("duration %v: %v", c.args, err)
		}
	}
	if out, err := command(t, "duration", "--csv", path, "--target", "noise", "--rounds", "20", "--time", "at"); err != nil || !strings.Contains(string(out), "60 test rows") {
		t.Errorf("%s %v", out, err)
	}
}

// TestATargetLearnedRelativeToAColumnIsJudgedInItsOwnUnit: durations that are a multiple of a median that drifts.
func TestATargetLearnedRelativeToAColumnIsJudgedInItsOwnUnit(t *testing.T) {
	random := rand.New(rand.NewPCG(seedtest.Or(t, 9), 0))
	var b strings.Builder
	b.WriteString("at,median,kind,seconds\n")
	for i := range 1500 {
		median, kind := math.Exp(float64(i)/400), random.IntN(2)
		shown := fmt.Sprintf("%.6g", median)
		if i%100 == 0 {
			shown = "" // left out
		}
		fmt.Fprintf(&b, "%d,%s,%d,%.6g\n", i, shown, kind, median*float64(1+kind)*math.Exp(0.1*random.NormFloat64()))
	}
	path := file(t, "rows.csv", b.String())
	figures := map[string]train.DurationReport{}
	for _, over := range []string{"", "median"} {
		args := []string{"duration", "--csv", path, "--target", "seconds", "--distribution", "lognormal", "--time", "at", "--tune", "--json"}
		if over != "" {
			args = append(args, "--over", over)
		}
		out, err := command(t, args...)
		if err != nil {
			t.Fatal(err)
		}
		var r train.DurationReport
		if err := json.Unmarshal(out, &r); err != nil {
			t.Fatal(err)
		}
		figures[over] = r
	}
	// What trees can know is the noise of 0.1: a mean relative error of 0.08. The medians of the test part lie beyond all that
	// was trained on: there the spread is that of a few rows.
	relative, plain := figures["median"].Test, figures[""].Test
	if *relative.MAPE > 0.1 || *relative.Coverage90 < 0.7 || *relative.NLL >= *plain.NLL || relative.Rows != 297 || plain.Rows != 300 {
		t.Errorf("relative: %d rows, MAPE %.3f, %.3f covered, NLL %.3f; plain: MAPE %.3f, NLL %.3f", relative.Rows, *relative.MAPE, *relative.Coverage90, *relative.NLL, *plain.MAPE, *plain.NLL)
	}
	if _, err := command(t, "duration", "--csv", path, "--target", "seconds", "--tune"); err == nil || !strings.Contains(err.Error(), "--time") {
		t.Errorf("--tune without --time: %v", err)
	}
}
