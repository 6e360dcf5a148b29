package simulate

import (
	"bytes"
	"cmp"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"landfall.build/learning/calibration"
	"landfall.build/tools/simulate/forecast"
	"landfall.build/tools/simulate/trace"
	"landfall.build/tools/train"
)

// build is one row of a recording, as its file has it.
type build struct {
	project, change, number, began int
	took                           float64
	result                         string
}

func (b build) ends() float64 { return float64(b.began) + b.took }

// apart leaves those that ended by themselves, whole builds all of them, and lets the older four fifths end before the newest.
func apart(list []build) []build {
	list = slices.DeleteFunc(list, func(b build) bool { return b.result != "SUCCESS" && b.result != "UNSTABLE" })
	for i := len(list) - int(math.Round(float64(len(list))/5)); i < len(list); i++ {
		list[i].began += 300_000
	}
	return list
}

// invented makes builds of changes that are good or bad, and take long or not: what they were tells what they will be.
func invented(random *rand.Rand, n int) []build {
	good, long := make([]float64, n/4), make([]float64, n/4)
	for i := range good {
		good[i], long[i] = random.Float64(), math.Exp(random.NormFloat64())
	}
	list := make([]build, n)
	at := 1_600_000_000
	for i := range list {
		at += 60 + random.IntN(1200)
		c := max(0, min(len(good)-1, i/4+random.IntN(9)-4))
		b := build{project: c % 2, change: c, number: i + 1, began: at, took: 10 + math.Round(1000*long[c]*math.Exp(0.2*random.NormFloat64())), result: "UNSTABLE"}
		switch x := random.Float64(); {
		case x < 0.05:
			b.result = "ABORTED"
		case x < 0.1+0.85*good[c]:
			b.result = "SUCCESS"
		case x > 0.97:
			b.result = "FAILURE"
		}
		list[i] = b
	}
	return list
}

// folder writes builds as recordings of Jenkins.
func folder(t *testing.T, list []build) string {
	t.Helper()
	var b bytes.Buffer
	w := csv.NewWriter(&b)
	w.Write(strings.Split("project,pr_name,build_id,build_duration,build_timestamp,build_result,pr_base_branch,build_head_sha", ","))
	for _, x := range list {
		w.Write([]string{fmt.Sprint("p", x.project), fmt.Sprint("PR-", x.change), fmt.Sprint(x.number), fmt.Sprint(x.took), fmt.Sprint(x.began), x.result, "main", fmt.Sprint(x.number / 2)})
	}
	w.Flush()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "p.csv"), b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

func saidOf(t *testing.T, dir, successFile, durationFile string) (*recording, []forecast.Said) {
	t.Helper()
	r, err := record(dir, 0.2, math.MaxInt32)
	if err != nil {
		t.Fatal(err)
	}
	m, err := r.models(t.Context(), successFile, durationFile)
	if err != nil {
		t.Fatal(err)
	}
	said, err := m.say(r)
	if err != nil {
		t.Fatal(err)
	}
	return r, said
}

// landfallTrain runs `landfall train`, and gives the figures on its test rows.
func landfallTrain(t *testing.T, args ...string) map[string]float64 {
	t.Helper()
	var out bytes.Buffer
	c := train.Command(nil, "test", slog.New(slog.DiscardHandler))
	c.SilenceErrors, c.SilenceUsage = true, true
	c.SetOut(&out)
	c.SetErr(io.Discard)
	c.SetArgs(args)
	if err := c.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	var report struct{ Test map[string]float64 }
	if args[0] != "recorded" {
		if err := json.Unmarshal(out.Bytes(), &report); err != nil {
			t.Fatalf("%v: %s", err, out.Bytes())
		}
	}
	return report.Test
}

// TestTheForecastsAreThoseOfLandfallTrain: where all older builds had ended, the models that the command trains by itself are
// those of `landfall train` on its own tables, and what is said of the changes has the figures that it reports.
func TestTheForecastsAreThoseOfLandfallTrain(t *testing.T) {
	dir := folder(t, apart(invented(rand.New(rand.NewPCG(8, 1)), 1000)))
	outcomes, durations := filepath.Join(dir, "o"), filepath.Join(dir, "d")
	success, duration := filepath.Join(dir, "s.model"), filepath.Join(dir, "d.model")
	landfallTrain(t, "recorded", dir, "--outcomes", outcomes, "--durations", durations)
	figures := landfallTrain(t, "outcome", "--csv", outcomes, "--target", "passed", "--time", "began", "--model", success, "--json")
	seconds := landfallTrain(t, "duration", "--csv", durations, "--target", "seconds", "--over", "typical_seconds", "--distribution", "lognormal", "--time", "began", "--tune", "--model", duration, "--json")
	r, own := saidOf(t, dir, "", "")
	if _, files := saidOf(t, dir, success, duration); !slices.Equal(files, own) {
		t.Error("the models of the files say something else than those that were trained here")
	}
	var p []float64
	var passed []bool
	squares, different := 0.0, map[float64]bool{}
	for i, b := range r.newest {
		p, passed = append(p, own[i].Success), append(passed, b.Result == "SUCCESS")
		squares += math.Pow(own[i].Mean/1e6-b.Took.Seconds(), 2) / float64(len(own))
		different[own[i].Success] = true
	}
	measured, err := calibration.Measure(p, passed)
	if err != nil {
		t.Fatal(err)
	}
	for name, x := range map[string][2]float64{
		"log loss": {measured.LogLoss, figures["log_loss"]}, "auc": {measured.AUC, figures["auc"]}, "rmse": {math.Sqrt(squares), seconds["rmse"]},
	} {
		if math.Abs(x[0]/x[1]-1) > 1e-9 {
			t.Errorf("%s: %v, landfall train has %v", name, x[0], x[1])
		}
	}
	if measured.AUC < 0.6 || len(different) < 50 {
		t.Errorf("the model learned nothing: AUC %v, %d probabilities", measured.AUC, len(different))
	}
}

// TestWhatEndedLaterChangesNoForecast: results and ends of all that had not ended when a change's build began are turned round.
func TestWhatEndedLaterChangesNoForecast(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	list := invented(random, 600)
	r, said := saidOf(t, folder(t, list), "", "")
	for _, at := range []int{0, len(said) / 2, len(said) - 1} {
		began, changed := float64(r.newest[at].Started.Unix()), 0
		other := slices.Clone(list)
		for i, b := range other {
			// What was aborted stays so: the trace has the same changes.
			if b.ends() < began || b.result == "ABORTED" {
				continue
			}
			changed++
			other[i].result = []string{"SUCCESS", "UNSTABLE", "FAILURE"}[random.IntN(3)]
			other[i].took = max(0, began-float64(b.began)) + 1 + float64(random.IntN(90_000))
		}
		if changed == 0 {
			t.Fatal("nothing had not ended")
		}
		if _, now := saidOf(t, folder(t, other), "", ""); now[at] != said[at] {
			t.Errorf("of change %d was said %+v, and with another future %+v", at, said[at], now[at])
		}
	}
	// And what had ended does change it.
	other := slices.Clone(list)
	for i := range other {
		if other[i].ends() < float64(r.newest[0].Started.Unix()) && other[i].result == "SUCCESS" {
			other[i].took *= 1 + random.Float64()
		}
	}
	if _, now := saidOf(t, folder(t, other), "", ""); slices.Equal(now, said) {
		t.Error("another past changed nothing")
	}
}

func TestTheNewestBuildsAreSimulatedByTrainedModels(t *testing.T) {
	list := invented(rand.New(rand.NewPCG(3, 1)), 600)
	dir := folder(t, list)
	args := []string{"lrts", "--data", dir, "--newest", "0.2", "--policies", "landfall", "--rate", "60", "--workers", "30", "--potential-conflicts", "0.2", "--json", "--predictor"}
	first, err := execute(t, append(args, "trained")...)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := execute(t, append(args, "trained")...); err != nil || again != first {
		t.Errorf("the same seed, and other bytes (%v)", err)
	}
	flat, err := execute(t, append(args, "flat")...)
	if err != nil {
		t.Fatal(err)
	}
	landed := func(out string) (of []float64, builds float64) {
		var value struct{ Results []Row }
		if err := json.Unmarshal([]byte(out), &value); err != nil {
			t.Fatal(err)
		}
		for _, r := range value.Results {
			of = append(of, r.Landed, r.Rejected)
			builds = r.BuildsPerChange
		}
		return of, builds
	}
	trained, builds := landed(first)
	if with, others := landed(flat); !slices.Equal(trained, with) || builds == others {
		t.Errorf("landed and rejected %v with %v builds a change, with the flat forecast %v with %v", trained, builds, with, others)
	}
	// The trace is the newest fifth of those that ended by themselves, in order.
	whole := slices.DeleteFunc(list, func(b build) bool { return b.result == "ABORTED" })
	slices.SortStableFunc(whole, func(a, b build) int { return cmp.Compare(a.began, b.began) })
	newest := whole[len(whole)-int(math.Round(float64(len(whole))/5)):]
	green := 0.0
	for _, b := range newest {
		if b.result == "SUCCESS" {
			green++
		}
	}
	if total := trained[0] + trained[1]; int(total) != len(newest) || trained[0] > green || trained[0] < green/2 {
		t.Errorf("%v of %v changes landed; %v of the newest %d builds passed", trained[0], total, green, len(newest))
	}
}

func TestAForecastOfWhatTheModelDoesNotKnowIsFlat(t *testing.T) {
	f := forecast.Trained([]forecast.Said{{Success: 0.7, Mean: 5, Std: 2}, {Success: 0.2}}, trace.Rates{Mean: 100, Std: 30, Conflict: 0.1, Near: 10})
	a, b := &trace.Change{Number: 0}, &trace.Change{Number: 1, Arrival: 3}
	if mean, std := f.Duration(a); f.Success(a) != 0.7 || mean != 5 || std != 2 {
		t.Error(f.Success(a), mean, std)
	}
	if mean, std := f.Duration(b); f.Success(b) != 0.2 || mean != 100 || std != 30 {
		t.Error(f.Success(b), mean, std)
	}
	if f.Conflict(b, a) != 0.1 {
		t.Error(f.Conflict(b, a))
	}
}

func TestBadModelFilesAreRefusedByName(t *testing.T) {
	dir := folder(t, apart(invented(rand.New(rand.NewPCG(4, 1)), 600)))
	at := func(name string) string { return filepath.Join(dir, name) }
	landfallTrain(t, "recorded", dir, "--outcomes", at("o"), "--durations", at("d"))
	landfallTrain(t, "outcome", "--csv", at("o"), "--target", "passed", "--time", "began", "--model", at("good"), "--json")
	landfallTrain(t, "outcome", "--csv", at("o"), "--target", "passed", "--time", "began", "--test-share", "0.05", "--model", at("newer"), "--json")
	landfallTrain(t, "duration", "--csv", at("d"), "--target", "seconds", "--rounds", "5", "--model", at("timeless"), "--json")
	landfallTrain(t, "duration", "--csv", at("d"), "--target", "seconds", "--rounds", "5", "--time", "began", "--model", at("seconds"), "--json")
	good, err := os.ReadFile(at("good"))
	if err != nil {
		t.Fatal(err)
	}
	table := "at,speed,passed\n"
	for i := range 400 {
		table += fmt.Sprintf("%d,%d,%d\n", i, i%17, i%3%2)
	}
	for name, content := range map[string]string{"short": string(good[:len(good)/2]), "altered": string(good[:len(good)/2]) + "x" + string(good[len(good)/2+1:]), "text": strings.Repeat("no model\n", 99), "empty": "", "table": table} {
		if err := os.WriteFile(at(name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	landfallTrain(t, "outcome", "--csv", at("table"), "--target", "passed", "--time", "at", "--model", at("elsewhere"), "--json")
	for _, x := range []struct{ flag, file, says string }{
		{"--success-model", "none", "no such file"},
		{"--success-model", "empty", "wrong length"},
		{"--success-model", "text", "not a model of this kind"},
		{"--success-model", "short", "wrong length"},
		{"--success-model", "altered", "hash mismatch"},
		{"--success-model", "seconds", "not a model of this kind"},
		{"--success-model", "elsewhere", `"speed"`},
		{"--success-model", "newer", "larger --test-share"},
		{"--duration-model", "good", "not a model of this kind"},
		{"--duration-model", "timeless", "train it with --time"},
	} {
		args := []string{"lrts", "--data", dir, "--newest", "0.2", "--policies", "landfall", "--predictor", "trained", "--success-model", at("good"), "--duration-model", at("seconds"), x.flag, at(x.file)}
		out, err := execute(t, args...)
		if err == nil || out != "" || strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), at(x.file)) || !strings.Contains(err.Error(), x.says) {
			t.Errorf("%s %s: %v (%q), should name it and say %q", x.flag, x.file, err, out, x.says)
		}
	}
	for says, args := range map[string][]string{
		"no build had ended":    {"--newest", "1"},
		"the model of success,": {"--newest", "0.97"}, // twenty builds to learn from
	} {
		if out, err := execute(t, append([]string{"lrts", "--data", dir, "--predictor", "trained"}, args...)...); err == nil || out != "" || !strings.Contains(err.Error(), says) {
			t.Errorf("%v: %v, should say %q", args, err, says)
		}
	}
}
