package ngboost_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"landfall.build/learning/ngboost"
)

func withMissing(d ngboost.Data, share float64, seed uint64) ngboost.Data {
	random := rand.New(rand.NewPCG(seed, 3))
	for _, row := range d.Rows {
		for f := range row {
			if random.Float64() < share {
				row[f] = math.NaN()
			}
		}
	}
	return d
}

func TestAModelPredictsWhatTrainingSaw(t *testing.T) {
	for name, c := range map[string]ngboost.Config{
		"exact":      {Method: ngboost.Exact, Rounds: 30},
		"histogram":  {Method: ngboost.Histogram, Rounds: 30},
		"depth 5":    {Method: ngboost.Histogram, Rounds: 30, Depth: 5},
		"depth 1":    {Method: ngboost.Exact, Rounds: 30, Depth: 1},
		"few bins":   {Method: ngboost.Histogram, Rounds: 30, Bins: 8},
		"all bigger": {Method: ngboost.Histogram, Rounds: 30, MinLeaf: 20},
	} {
		for _, features := range []int{5, 600} {
			data := withMissing(synthetic(400, features, 5), 0.2, 6)
			shorter, _ := train(t, data, nil, c)
			c.Rounds++
			_, report := train(t, data, nil, c)
			c.Rounds--
			got := evaluate(t, shorter, data).NLL
			if want := report.TrainingLoss[c.Rounds]; math.Abs(got-want) > 1e-9 {
				t.Errorf("%s, %d features: the model's NLL is %.12g, training had %.12g", name, features, got, want)
			}
		}
	}
}

func TestEqualSeedsGiveEqualModels(t *testing.T) {
	data := synthetic(300, 8, 7)
	hash := func(seed uint64) string {
		m, _ := train(t, data, nil, ngboost.Config{Rounds: 20, RowFraction: 0.5, ColumnFraction: 0.5, Seed: seed})
		h, err := m.Hash()
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	if first, second := hash(1), hash(1); first != second {
		t.Error("two trainings with seed 1 differ")
	}
	if hash(1) == hash(2) {
		t.Error("seeds 1 and 2 give the same model: rows and columns are not drawn")
	}
}

func TestValidationKeepsTheFirstBestRound(t *testing.T) {
	data, validation := synthetic(300, 10, 8), synthetic(150, 10, 9)
	m, report := train(t, data, &validation, ngboost.Config{Rounds: 2000, Patience: 30})
	best := slices.Index(report.ValidationNLL, slices.Min(report.ValidationNLL))
	if report.Rounds != best+1 || m.Rounds() != best+1 {
		t.Errorf("%d and %d rounds kept, the best validation loss is in round %d", report.Rounds, m.Rounds(), best)
	}
	if report.Stopped != ngboost.StoppedByValidation || len(report.ValidationNLL) != best+31 {
		t.Errorf("stopped by %q after %d rounds, want 30 after round %d", report.Stopped, len(report.ValidationNLL), best)
	}
	if got := evaluate(t, m, validation).NLL; math.Abs(got-report.ValidationNLL[best]) > 1e-9 {
		t.Errorf("the model's validation NLL is %g, training had %g", got, report.ValidationNLL[best])
	}
}

func TestIntervalsCoverWhatTheySay(t *testing.T) {
	data, fresh := synthetic(8000, 6, 10), synthetic(4000, 6, 11)
	m, _ := train(t, data, nil, ngboost.Config{Rounds: 300})
	got := evaluate(t, m, fresh)
	if got.Coverage90 < 0.87 || got.Coverage90 > 0.93 {
		t.Errorf("90 %% intervals cover %.3f", got.Coverage90)
	}
	mu, sigma := m.Importance()
	if top := slices.Index(mu, slices.Max(mu)); top != 0 {
		t.Errorf("the mean depends most on x%d, want x0", top)
	}
	if sigma[3] < 10*max(sigma[4], sigma[5]) {
		t.Errorf("the spread depends on x3 by %.3f, on the idle x4 and x5 by %.3f and %.3f", sigma[3], sigma[4], sigma[5])
	}
}

// censoredTimes are lognormal times of which those beyond a random cut are cut.
func censoredTimes(rows int, seed uint64) (cut ngboost.Data, truth []float64) {
	random := rand.New(rand.NewPCG(seed, 4))
	for range rows {
		x := random.NormFloat64()
		median := math.Exp(1 + x)
		time, limit := median*math.Exp(0.5*random.NormFloat64()), median*math.Exp(0.8*random.NormFloat64())
		cut.Rows, truth = append(cut.Rows, []float64{x}), append(truth, median)
		cut.Target, cut.Censored = append(cut.Target, min(time, limit)), append(cut.Censored, time > limit)
	}
	return cut, truth
}

func TestCensoredRowsAreNotTakenForShortOnes(t *testing.T) {
	data, truth := censoredTimes(3000, 12)
	bias := func(d ngboost.Data, rule ngboost.Rule) (sum float64) {
		m, _ := train(t, d, nil, ngboost.Config{Distribution: ngboost.LogNormal, Rule: rule, Rounds: 300})
		for i, row := range d.Rows {
			p, err := m.Predict(row)
			if err != nil {
				t.Fatal(err)
			}
			sum += math.Log(p.Median()/truth[i]) / float64(len(truth))
		}
		return sum
	}
	ignorant := data
	ignorant.Censored = nil
	without := bias(ignorant, ngboost.LogScore)
	for name, rule := range map[string]ngboost.Rule{"log score": ngboost.LogScore, "CRPS": ngboost.CRPS} {
		if with := bias(data, rule); math.Abs(with) > 0.1 || without > -0.2 {
			t.Errorf("%s: log median is off by %.3f with marks, by %.3f without", name, with, without)
		}
	}
}

func TestFitScaleFindsTheFactor(t *testing.T) {
	data := synthetic(3000, 5, 13)
	m, _ := train(t, data, nil, ngboost.Config{Rounds: 200})
	before, err := ngboost.FitScale(m, data)
	if err != nil {
		t.Fatal(err)
	}
	wide, err := m.Rescaled(3)
	if err != nil {
		t.Fatal(err)
	}
	after, err := ngboost.FitScale(wide, data)
	if err != nil || math.Abs(after*3/before-1) > 1e-9 {
		t.Errorf("factor %g, then %g of the model with 3 σ (%v)", before, after, err)
	}
	best, err := wide.Rescaled(after)
	if err != nil || evaluate(t, best, data).NLL > evaluate(t, wide, data).NLL {
		t.Errorf("rescaling made it worse (%v)", err)
	}
	if _, err := m.Rescaled(0); err == nil {
		t.Error("σ times zero is accepted")
	}
}

func TestBadDataIsRefusedByName(t *testing.T) {
	good := func() ngboost.Data { return synthetic(50, 4, 14) }
	change := func(f func(*ngboost.Data)) ngboost.Data {
		d := good()
		f(&d)
		return d
	}
	constant := change(func(d *ngboost.Data) {
		for _, row := range d.Rows {
			row[0], row[1], row[2], row[3] = 1, math.NaN(), 3, 4
		}
	})
	for name, c := range map[string]struct {
		data   ngboost.Data
		config ngboost.Config
		want   error
		says   string
	}{
		"no rows":           {ngboost.Data{}, ngboost.Config{}, ngboost.ErrTooFewRows, "none"},
		"ten rows":          {pick(good(), []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}), ngboost.Config{}, ngboost.ErrTooFewRows, "10, at least 20"},
		"constant target":   {change(func(d *ngboost.Data) { clear(d.Target) }), ngboost.Config{}, ngboost.ErrTarget, "equal"},
		"NaN target":        {change(func(d *ngboost.Data) { d.Target[7] = math.NaN() }), ngboost.Config{}, ngboost.ErrTarget, "row 7"},
		"huge target":       {change(func(d *ngboost.Data) { d.Target[7] = 1e300 }), ngboost.Config{}, ngboost.ErrTarget, "variance"},
		"negative time":     {good(), ngboost.Config{Distribution: ngboost.LogNormal}, ngboost.ErrTarget, "above zero"},
		"infinite feature":  {change(func(d *ngboost.Data) { d.Rows[3][1] = math.Inf(1) }), ngboost.Config{}, ngboost.ErrFeature, `row 3, "x1"`},
		"feature too large": {change(func(d *ngboost.Data) { d.Rows[3][1] = 1e39 }), ngboost.Config{}, ngboost.ErrFeature, "1e+39"},
		"constant features": {constant, ngboost.Config{}, ngboost.ErrConstantFeatures, "4 features"},
		"ragged":            {change(func(d *ngboost.Data) { d.Rows[9] = d.Rows[9][:2] }), ngboost.Config{}, ngboost.ErrShape, "row 9"},
		"fewer targets":     {change(func(d *ngboost.Data) { d.Target = d.Target[1:] }), ngboost.Config{}, ngboost.ErrShape, "49 targets"},
		"too many columns":  {ngboost.Data{Rows: [][]float64{make([]float64, 100_000)}, Target: []float64{1}}, ngboost.Config{}, ngboost.ErrShape, "100000 features"},
		"censored normal":   {change(func(d *ngboost.Data) { d.Censored = make([]bool, 50); d.Censored[4] = true }), ngboost.Config{}, ngboost.ErrTarget, "row 4"},
		"names":             {change(func(d *ngboost.Data) { d.Features = []string{"a"} }), ngboost.Config{}, ngboost.ErrShape, "1 names"},
		"patience":          {good(), ngboost.Config{Patience: 5}, ngboost.ErrShape, "validation"},
	} {
		_, _, err := ngboost.Train(context.Background(), c.data, nil, c.config)
		if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %v saying %q", name, err, c.want, c.says)
		}
	}
	wrong := ngboost.Config{Rounds: -1, LearningRate: 2, Depth: 9, Bins: 1000, RowFraction: -1, Distribution: 7}
	_, _, err := ngboost.Train(context.Background(), good(), nil, wrong)
	for _, field := range []string{"rounds", "learning rate", "depth", "bins", "row fraction", "distribution"} {
		if err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("the error does not name %s: %v", field, err)
		}
	}
}

func TestTrainingStopsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, _, err := ngboost.Train(ctx, synthetic(50, 4, 15), nil, ngboost.Config{}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestPredictionAllocatesNothing(t *testing.T) {
	data := synthetic(200, 100, 16)
	for _, depth := range []int{3, 4} {
		m, _ := train(t, data, nil, ngboost.Config{Rounds: 20, Depth: depth, Distribution: ngboost.Normal})
		var sink float64
		allocations := testing.AllocsPerRun(100, func() {
			p, err := m.Predict(data.Rows[0])
			if err != nil {
				t.Fatal(err)
			}
			low, high := p.Interval(0.9)
			sink += p.Mean() + p.Median() + p.StandardDeviation() + low + high
		})
		if allocations != 0 {
			t.Errorf("depth %d: %g allocations", depth, allocations)
		}
	}
}

func TestPredictionSurvivesAnyRow(t *testing.T) {
	m, _ := train(t, withMissing(synthetic(200, 4, 17), 0.1, 18), nil, ngboost.Config{Rounds: 50})
	nan, inf := math.NaN(), math.Inf(1)
	for _, row := range [][]float64{{nan, nan, nan, nan}, {inf, -inf, inf, -inf}, {1e300, -1e300, 0, 5e-324}} {
		p, err := m.Predict(row)
		if err != nil || math.IsNaN(p.Mu) || math.IsInf(p.Mu, 0) || !(p.Sigma > 0) || math.IsInf(p.Sigma, 0) {
			t.Errorf("%v: %+v, %v", row, p, err)
		}
	}
	if _, err := m.Predict(make([]float64, 3)); !errors.Is(err, ngboost.ErrShape) {
		t.Errorf("a row of the wrong width: %v", err)
	}
}
