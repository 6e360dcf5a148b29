package logistic

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"landfall.build/events/seedtest"
)

// drawn has outcomes by a logistic model of the given weights, the rest idle.
func drawn(rows, features int, weights []float64, seed uint64) Data {
	random := rand.New(rand.NewPCG(seed, 0))
	d := Data{Rows: make([][]float64, rows), Outcomes: make([]bool, rows)}
	for i := range d.Rows {
		row, odds := make([]float64, features), -0.5
		for f := range row {
			row[f] = random.NormFloat64()
			if f < len(weights) {
				odds += weights[f] * row[f]
			}
		}
		d.Rows[i], d.Outcomes[i] = row, random.Float64() < probability(odds)
	}
	return d
}

func fit(t testing.TB, d Data, c Config) *Model {
	t.Helper()
	m, err := Fit(d, c)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// reweighted is the same fit by Newton's method with a dense solver.
func reweighted(d design, outcomes []bool, l2 float64) []float64 {
	width := len(d.columns) + 1
	weights := make([]float64, width)
	for range 50 {
		system := make([][]float64, width)
		for k := range system {
			system[k] = make([]float64, width+1)
			if k < width-1 {
				system[k][k], system[k][width] = l2, l2*weights[k]
			}
		}
		for i := range d.rows {
			x := append(slices.Clone(d.values[i*(width-1):(i+1)*(width-1)]), 1)
			odds, y := 0.0, 0.0
			for k, v := range x {
				odds += weights[k] * v
			}
			if outcomes[i] {
				y = 1
			}
			p := probability(odds)
			for k := range x {
				system[k][width] += (p - y) * x[k]
				for j := range x {
					system[k][j] += p * (1 - p) * x[k] * x[j]
				}
			}
		}
		for k, step := range eliminate(system) {
			weights[k] -= step
		}
	}
	return weights
}

// eliminate solves a system by Gauss and Jordan with pivots.
func eliminate(system [][]float64) []float64 {
	n := len(system)
	for k := range n {
		pivot := k
		for r := k; r < n; r++ {
			if math.Abs(system[r][k]) > math.Abs(system[pivot][k]) {
				pivot = r
			}
		}
		system[k], system[pivot] = system[pivot], system[k]
		for r := range n {
			if r != k {
				factor := system[r][k] / system[k][k]
				for c := k; c <= n; c++ {
					system[r][c] -= factor * system[k][c]
				}
			}
		}
	}
	out := make([]float64, n)
	for k := range out {
		out[k] = system[k][n] / system[k][k]
	}
	return out
}

func TestFitEqualsNewtonsMethod(t *testing.T) {
	seed := seedtest.Or(t, 41)
	random := rand.New(rand.NewPCG(seed, 0))
	for trial := range 20 {
		d := drawn(50+random.IntN(200), 1+random.IntN(6), []float64{2, -1}, uint64(trial))
		for _, row := range d.Rows {
			if random.IntN(8) == 0 {
				row[0] = math.NaN()
			}
		}
		l2 := math.Exp(2 * random.NormFloat64())
		m := fit(t, d, Config{L2: l2, Gradient: 1e-9})
		table, _, err := standardise(d)
		if err != nil {
			t.Fatal(err)
		}
		want := reweighted(table, d.Outcomes, l2)
		for i, row := range d.Rows {
			odds := want[len(table.columns)]
			for k := range table.columns {
				odds += want[k] * table.values[i*len(table.columns)+k]
			}
			got, err := m.Predict(row)
			if err != nil || math.Abs(got-probability(odds)) > 1e-6 {
				t.Fatalf("seed %d, trial %d, row %d: %g, Newton %g (%v)", seed, trial, i, got, probability(odds), err)
			}
		}
	}
}

func TestGradientIsTheDifferenceOfTheLoss(t *testing.T) {
	seed := seedtest.Or(t, 42)
	random := rand.New(rand.NewPCG(seed, 0))
	d := drawn(80, 4, []float64{1, -2}, seed)
	table, _, err := standardise(d)
	if err != nil {
		t.Fatal(err)
	}
	o := newObjective(table, d.Outcomes, 3)
	point := make([]float64, 5)
	for k := range point {
		point[k] = random.NormFloat64()
	}
	o.evaluate(point)
	gradient := slices.Clone(o.gradient)
	for k := range point {
		const h = 1e-5
		at := func(step float64) float64 {
			moved := slices.Clone(point)
			moved[k] += step
			o.evaluate(moved)
			return o.value
		}
		if want := (at(h) - at(-h)) / (2 * h); math.Abs(gradient[k]-want) > 1e-7 {
			t.Errorf("seed %d: component %d is %g, difference gives %g", seed, k, gradient[k], want)
		}
	}
}

func TestMissingTellsSomethingOfItsOwn(t *testing.T) {
	d := drawn(2000, 3, []float64{1}, 43)
	random := rand.New(rand.NewPCG(seedtest.Or(t, 44), 0))
	for i, row := range d.Rows {
		if random.IntN(3) == 0 {
			row[1], d.Outcomes[i] = math.NaN(), random.IntN(10) > 0
		}
	}
	m := fit(t, d, Config{})
	if weights := m.MissingWeights(); weights[1] < 1.5 || weights[0] != 0 {
		t.Errorf("weights of missing values %v: the second should be about 2.6, the first zero", weights)
	}
	whole, err1 := m.Predict([]float64{0, 0, 0})
	without, err2 := m.Predict([]float64{0, math.NaN(), 0})
	if err1 != nil || err2 != nil || without < whole+0.2 {
		t.Errorf("%g with the feature, %g without (%v, %v)", whole, without, err1, err2)
	}
}

func TestEliminationKeepsWhatMatters(t *testing.T) {
	d := drawn(3000, 40, []float64{1.5, -1, 0.8}, 45)
	train := Data{Rows: d.Rows[:2000], Outcomes: d.Outcomes[:2000]}
	check := Data{Rows: d.Rows[2000:], Outcomes: d.Outcomes[2000:]}
	m, steps, err := Eliminate(t.Context(), train, check, Config{}, Elimination{Tolerance: 0.002})
	if err != nil {
		t.Fatal(err)
	}
	kept := m.Features()
	for _, name := range []string{"x0", "x1", "x2"} {
		if !slices.Contains(kept, name) {
			t.Errorf("%s is gone, kept %v", name, kept)
		}
	}
	if len(kept) > 12 {
		t.Errorf("%d of 40 features kept, 3 matter: %v", len(kept), kept)
	}
	if len(steps[0].Features) != 40 || len(steps[len(steps)-1].Features) != 1 {
		t.Errorf("steps go from %d to %d features", len(steps[0].Features), len(steps[len(steps)-1].Features))
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if m, _, err := Eliminate(ended, train, check, Config{}, Elimination{}); m != nil || !errors.Is(err, context.Canceled) {
		t.Errorf("an elimination that was ended: %v", err)
	}
}

func TestSeparableOutcomesStayFinite(t *testing.T) {
	d := drawn(200, 2, nil, 46)
	for i, row := range d.Rows {
		d.Outcomes[i] = row[0] > 0
	}
	m := fit(t, d, Config{L2: 1e-3})
	for _, row := range [][]float64{{math.Inf(1), 0}, {math.Inf(-1), 0}, {1e300, 1e300}, {math.NaN(), math.NaN()}} {
		if p, err := m.Predict(row); err != nil || !(p >= 0 && p <= 1) {
			t.Errorf("%v: %g, %v", row, p, err)
		}
	}
}

func TestBadDataIsRefusedByName(t *testing.T) {
	change := func(f func(*Data)) Data {
		d := drawn(50, 3, []float64{1}, 47)
		f(&d)
		return d
	}
	for name, c := range map[string]struct {
		data Data
		want error
		says string
	}{
		"ten rows":     {drawn(10, 3, nil, 1), ErrTooFewRows, "10, at least 20"},
		"one class":    {change(func(d *Data) { clear(d.Outcomes) }), ErrOneClass, "0 of 50"},
		"constant":     {change(func(d *Data) { clearRows(d) }), ErrConstantFeatures, "50 rows, 3 features"},
		"infinite":     {change(func(d *Data) { d.Rows[7][2] = math.Inf(-1) }), ErrFeature, `row 7, "x2"`},
		"ragged":       {change(func(d *Data) { d.Rows[7] = nil }), ErrShape, "row 7"},
		"outcomes":     {change(func(d *Data) { d.Outcomes = nil }), ErrShape, "0 outcomes"},
		"many columns": {drawn(20, 100_000, nil, 1), ErrShape, "100000 features"},
		"no columns":   {drawn(20, 0, nil, 1), ErrShape, "0 features"},
	} {
		if _, err := Fit(c.data, Config{}); !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %v saying %q", name, err, c.want, c.says)
		}
	}
	_, err := Fit(drawn(50, 3, nil, 1), Config{L2: -1, Iterations: -1, Gradient: 1})
	for _, field := range []string{"L2", "iterations", "gradient"} {
		if err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("the error does not name %s: %v", field, err)
		}
	}
}

func clearRows(d *Data) {
	for _, row := range d.Rows {
		clear(row)
	}
}

func TestAModelComesBackEqualAndDamageIsRefused(t *testing.T) {
	d := drawn(100, 4, []float64{1}, 48)
	d.Rows[3][2] = math.NaN()
	m := fit(t, d, Config{})
	sealed, err := m.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	back, err := Unmarshal(sealed)
	if err != nil || !reflect.DeepEqual(m, back) {
		t.Fatalf("got %+v (%v), want %+v", back, err, m)
	}
	for k := range sealed {
		damaged := slices.Clone(sealed)
		damaged[k] ^= 1
		if _, err := Unmarshal(damaged); err == nil {
			t.Errorf("byte %d changed: accepted", k)
		}
		if _, err := Unmarshal(sealed[:k]); !errors.Is(err, ErrTruncated) {
			t.Errorf("the first %d bytes: %v", k, err)
		}
	}
	for says, change := range map[string]func(*Model){
		"weights is NaN": func(m *Model) { m.weights[1] = math.NaN() },
		"deviation 1":    func(m *Model) { m.deviation[1] = -1 },
		"a weight is":    func(m *Model) { m.weights[0] = 1e200 },
		"3 means":        func(m *Model) { m.mean = m.mean[:3] },
	} {
		absurd := fit(t, d, Config{})
		change(absurd)
		sealed, err := absurd.MarshalBinary()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Unmarshal(sealed); !errors.Is(err, ErrAbsurd) || !strings.Contains(err.Error(), says) {
			t.Errorf("want an error saying %q, got %v", says, err)
		}
	}
}

func TestPredictionAllocatesNothing(t *testing.T) {
	d := drawn(100, 100, nil, 49)
	m := fit(t, d, Config{})
	if n := testing.AllocsPerRun(100, func() { _, _ = m.Predict(d.Rows[0]) }); n != 0 {
		t.Errorf("%g allocations", n)
	}
}

func BenchmarkFit(b *testing.B) {
	d := drawn(20_000, 100, []float64{1, -1, 0.5, 0.5, -2}, 50)
	b.Run("20000x100", func(b *testing.B) {
		for b.Loop() {
			fit(b, d, Config{})
		}
	})
}

func BenchmarkPredict(b *testing.B) {
	d := drawn(1000, 100, []float64{1}, 51)
	m := fit(b, d, Config{})
	b.ReportAllocs()
	for b.Loop() {
		if _, err := m.Predict(d.Rows[0]); err != nil {
			b.Fatal(err)
		}
	}
}

func ExampleFit() {
	// A build fails more often the more files it touches.
	data := Data{Features: []string{"files"}}
	for i := range 100 {
		files := float64(i % 10)
		data.Rows = append(data.Rows, []float64{files})
		data.Outcomes = append(data.Outcomes, i/10 < 10-int(files))
	}
	m, err := Fit(data, Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, files := range []float64{1, 8, math.NaN()} {
		p, err := m.Predict([]float64{files})
		fmt.Printf("%.0f files: passes with %.2f %v\n", files, p, err)
	}
	// Output:
	// 1 files: passes with 0.88 <nil>
	// 8 files: passes with 0.20 <nil>
	// NaN files: passes with 0.57 <nil>
}
