package bytime

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"reflect"
	"testing"

	"landfall.build/events/seedtest"
	"landfall.build/learning/calibration"
	"landfall.build/learning/ngboost"
)

// TestWindowsLearnOnlyFromWhatHadEnded: windows are the newest rows, each once; the twin looks at all pairs.
func TestWindowsLearnOnlyFromWhatHadEnded(t *testing.T) {
	random := seedtest.Random(t)
	left := 0
	for range 200 {
		n := 40 + random.IntN(300)
		var times Times
		at := int64(0)
		for range n {
			at += random.Int64N(3)
			times.At, times.Ended = append(times.At, at), append(times.Ended, at+random.Int64N(50))
		}
		folds, err := times.folds(n)
		if err != nil {
			t.Fatal(err)
		}
		next := folds[0].window[0]
		if float64(next) < 0.55*float64(n) {
			t.Fatalf("of %d rows choices are made by those from %d on", n, next)
		}
		for _, f := range folds {
			known := map[int]bool{}
			for _, i := range f.known {
				known[i] = true
			}
			for i := range n {
				// Known, and asked before.
				want := i < f.window[0] && times.Ended[i] < times.At[f.window[0]]
				if known[i] != want {
					t.Fatalf("row %d of %d to %d, before a window from %d: %v", i, times.At[i], times.Ended[i], times.At[f.window[0]], known[i])
				}
				if i < f.window[0] && !known[i] {
					left++
				}
			}
			for _, i := range f.window {
				if i != next {
					t.Fatalf("row %d comes after row %d", i, next-1)
				}
				next++
			}
			if last := f.window[len(f.window)-1]; last+1 < n && times.At[last] == times.At[last+1] {
				t.Fatalf("rows %d and %d are of one moment, and in two windows", last, last+1)
			}
		}
		if next != n {
			t.Fatalf("the last %d rows are in no window", n-next)
		}
	}
	if left == 0 {
		t.Error("nothing was left out; the test shows nothing")
	}
	for _, bad := range []Times{{At: []int64{1}}, {At: make([]int64, 50), Ended: []int64{1}}, {Ended: make([]int64, 50)}, {At: append(make([]int64, 49), -1)}} {
		if _, err := bad.folds(50); !errors.Is(err, ErrShape) {
			t.Errorf("%v: %v", bad, err)
		}
	}
	if _, err := (Times{At: make([]int64, 50)}).folds(50); !errors.Is(err, ErrTooFewRows) {
		t.Errorf("all of one moment: %v", err)
	}
}

// outcomes hang on a line in one feature, and on a bend in another one.
func outcomes(random *rand.Rand, n int) (d OutcomeData, truth []float64) {
	d.Features = []string{"line", "bend", "noise", "more"}
	for i := range n {
		row := []float64{random.NormFloat64(), 4*random.Float64() - 2, random.NormFloat64(), random.NormFloat64()}
		p := 1 / (1 + math.Exp(-row[0]-3*(1-math.Abs(row[1]))))
		if random.IntN(20) == 0 {
			row[2] = math.NaN()
		}
		d.Rows, d.Outcomes, truth = append(d.Rows, row), append(d.Outcomes, random.Float64() < p), append(truth, p)
		d.At, d.Ended = append(d.At, int64(i)), append(d.Ended, int64(i)+random.Int64N(30))
	}
	return d, truth
}

func TestBothLearnersAreUsedWhereBothHaveSomethingToSay(t *testing.T) {
	random := rand.New(rand.NewPCG(seedtest.Or(t, 21), 0))
	d, _ := outcomes(random, 4000)
	m, report, err := Outcome(t.Context(), d)
	if err != nil {
		t.Fatal(err)
	}
	unseen, truth := outcomes(random, 3000)
	said := make([]float64, len(unseen.Rows))
	weighed := make([]float64, len(unseen.Rows))
	for i, row := range unseen.Rows {
		if said[i], err = m.Predict(row); err != nil {
			t.Fatal(err)
		}
		some := make([]float64, 0, 4)
		for _, k := range m.index {
			some = append(some, row[k])
		}
		if weighed[i], err = m.Regression().Predict(some); err != nil {
			t.Fatal(err)
		}
	}
	loss, best, line := logLossOf(said, unseen.Outcomes), logLossOf(truth, unseen.Outcomes), logLossOf(weighed, unseen.Outcomes)
	if trees, share := m.Trees(); trees == nil || share != report.Trees || loss > best+0.04 || loss > line-0.1 || report.Windows != 1600 {
		t.Errorf("log loss %.4f, the truth's %.4f, the regression's %.4f; %+v", loss, best, line, report)
	}
	figures, err := calibration.Measure(said, unseen.Outcomes)
	if err != nil || figures.ECE > 0.06 {
		t.Errorf("calibration error %v (%v)", figures.ECE, err)
	}
	row := unseen.Rows[0]
	if n := testing.AllocsPerRun(100, func() { m.Predict(row) }); n != 0 {
		t.Errorf("a prediction allocates %v times", n)
	}
}

func TestTheSameRowsGiveTheSameBytesAndTheyComeBack(t *testing.T) {
	d, _ := outcomes(rand.New(rand.NewPCG(seedtest.Or(t, 22), 0)), 500)
	var first []byte
	for range 2 {
		m, _, err := Outcome(t.Context(), d)
		if err != nil {
			t.Fatal(err)
		}
		sealed, err := m.MarshalBinary()
		if err != nil {
			t.Fatal(err)
		}
		back, err := Unmarshal(sealed)
		if err != nil || !reflect.DeepEqual(m, back) {
			t.Fatalf("%+v, want %+v (%v)", back, m, err)
		}
		if first != nil && string(first) != string(sealed) {
			t.Error("another model of the same rows")
		}
		first = sealed
	}
	for length := range first {
		if _, err := Unmarshal(first[:length]); err == nil {
			t.Fatalf("the first %d of %d bytes were taken", length, len(first))
		}
	}
	for i := 0; i < len(first); i += 7 {
		first[i] ^= 16
		if _, err := Unmarshal(first); err == nil {
			t.Fatalf("byte %d was changed", i)
		}
		first[i] ^= 16
	}
	m, err := Unmarshal(first)
	if err != nil {
		t.Fatal(err)
	}
	// Parts that do not belong together.
	m.features = []string{"line", "bend", "noise", "other"}
	sealed, err := m.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Unmarshal(sealed); err == nil {
		t.Error("trees of other features were taken")
	}
}

// TestACalibrationIsKeptOnlyIfItHelpsEachTime: what is twice too sure is mended; what is too high in one window and too low in the
// next is left as it is.
func TestACalibrationIsKeptOnlyIfItHelpsEachTime(t *testing.T) {
	random := rand.New(rand.NewPCG(seedtest.Or(t, 23), 0))
	folds, err := (Times{}).folds(8000)
	if err != nil {
		t.Fatal(err)
	}
	said := func(bend func(fold int, odds float64) float64) (p []float64, truth []bool) {
		for k, f := range folds {
			for range f.window {
				odds := 1.5 * random.NormFloat64()
				truth = append(truth, random.Float64() < 1/(1+math.Exp(-odds)))
				p = append(p, 1/(1+math.Exp(-bend(k, odds))))
			}
		}
		return p, truth
	}
	p, truth := said(func(_ int, odds float64) float64 { return 2 * odds })
	if c := calibrationOf(p, truth, folds); c == nil || math.Abs(c.Slope-0.5) > 0.1 {
		t.Errorf("twice too sure: %+v", c)
	}
	p, truth = said(func(k int, odds float64) float64 { return odds + []float64{0.7, -0.7, 0.7, -0.7}[k] })
	if c := calibrationOf(p, truth, folds); c != nil {
		t.Errorf("now too high and now too low: %+v", c)
	}
}

func TestADistributionHasTheSpreadOfItsErrorsOnNewerRows(t *testing.T) {
	random := rand.New(rand.NewPCG(seedtest.Or(t, 24), 0))
	draw := func(n int, censor bool) (d ngboost.Data, times Times) {
		d.Features = []string{"x", "noise"}
		for i := range n {
			x := random.Float64()
			y := math.Exp(2*x + 0.3*random.NormFloat64())
			cut := censor && random.IntN(10) == 0
			if cut {
				y *= random.Float64()
			}
			d.Rows, d.Target, d.Censored = append(d.Rows, []float64{x, random.NormFloat64()}), append(d.Target, y), append(d.Censored, cut)
			times.At, times.Ended = append(times.At, int64(i)), append(times.Ended, int64(i)+random.Int64N(20))
		}
		return d, times
	}
	for _, distribution := range []ngboost.Distribution{ngboost.LogNormal, ngboost.Normal} {
		d, times := draw(3000, true)
		m, report, err := Distribution(t.Context(), d, times, ngboost.Config{Distribution: distribution, Rounds: 200, LearningRate: 0.03, RowFraction: 0.5, MinLeaf: 10, Patience: 30})
		if err != nil {
			t.Fatal(err)
		}
		unseen, _ := draw(2000, false)
		predicted := make([]ngboost.Prediction, len(unseen.Rows))
		for i, row := range unseen.Rows {
			if predicted[i], err = m.Predict(row); err != nil {
				t.Fatal(err)
			}
		}
		figures := ngboost.Measure(predicted, unseen.Target)
		if figures.Coverage90 < 0.86 || figures.Coverage90 > 0.94 || m.Rounds() != report.Rounds || report.Rounds == 200 || !(report.Factor > 0.8 && report.Factor < 1.5) || report.Windows > 1200 || report.Windows < 1000 {
			t.Errorf("%v: %.3f covered, %+v", distribution, figures.Coverage90, *report)
		}
	}
}

// TestASingleWindowDoesNotDecideOnTheSpread: what is three times as wild as ever in the newest tenth, and was as calm as before in
// the windows before it, has intervals that are wider than the past asks for and narrower than that window does.
func TestASingleWindowDoesNotDecideOnTheSpread(t *testing.T) {
	random := rand.New(rand.NewPCG(seedtest.Or(t, 26), 0))
	d := ngboost.Data{Features: []string{"noise"}}
	for i := range 3000 {
		wild := 1.0
		if i >= 2700 {
			wild = 3
		}
		d.Rows, d.Target = append(d.Rows, []float64{random.Float64()}), append(d.Target, math.Exp(0.3*wild*random.NormFloat64()))
	}
	_, report, err := Distribution(t.Context(), d, Times{}, ngboost.Config{Distribution: ngboost.LogNormal, Rounds: 100, LearningRate: 0.05, RowFraction: 0.5, MinLeaf: 10, Patience: 20})
	if err != nil {
		t.Fatal(err)
	}
	// Three windows ask for about 1, one for about 3; the fourth root of 3 is 1.32.
	if report.Factor < 1.2 || report.Factor > 1.45 {
		t.Errorf("%+v", report)
	}
	short := ngboost.Data{Features: d.Features, Rows: d.Rows[:100], Target: d.Target[:100]}
	if _, _, err := Distribution(t.Context(), short, Times{}, ngboost.Config{Distribution: ngboost.LogNormal, Rounds: 5}); !errors.Is(err, ErrTooFewRows) {
		t.Errorf("windows of ten rows: %v", err)
	}
}

func TestTooLittleIsSaidAndATrainingCanBeEnded(t *testing.T) {
	random := rand.New(rand.NewPCG(seedtest.Or(t, 25), 0))
	d, _ := outcomes(random, 600)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := Outcome(ended, d); !errors.Is(err, context.Canceled) {
		t.Errorf("ended: %v", err)
	}
	d.Outcomes = d.Outcomes[:9]
	if _, _, err := Outcome(t.Context(), d); !errors.Is(err, ErrShape) {
		t.Errorf("nine outcomes: %v", err)
	}
	all := ngboost.Data{Rows: d.Rows, Target: make([]float64, 600), Censored: make([]bool, 600), Features: d.Features}
	for i := range all.Target {
		all.Target[i], all.Censored[i] = 1+random.Float64(), true
	}
	if _, _, err := Distribution(t.Context(), all, d.Times, ngboost.Config{Distribution: ngboost.LogNormal}); !errors.Is(err, ErrTooFewRows) {
		t.Errorf("everything is censored: %v", err)
	}
}
