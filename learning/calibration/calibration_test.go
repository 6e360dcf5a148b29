package calibration

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"landfall.build/events/seedtest"
)

// overconfident has outcomes whose log-odds are half of what is predicted.
func overconfident(rows int, seed uint64) (probabilities []float64, outcomes []bool) {
	random := rand.New(rand.NewPCG(seed, 0))
	for range rows {
		odds := 3 * random.NormFloat64()
		probabilities = append(probabilities, probability(odds))
		outcomes = append(outcomes, random.Float64() < probability(odds/2+0.3))
	}
	return probabilities, outcomes
}

func measure(t testing.TB, p []float64, y []bool) Metrics {
	t.Helper()
	m, err := Measure(p, y)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func apply(m Map, probabilities []float64) []float64 {
	out := make([]float64, len(probabilities))
	for i, p := range probabilities {
		out[i] = m.Calibrate(p)
	}
	return out
}

func both(t testing.TB, p []float64, y []bool) map[string]Map {
	t.Helper()
	isotonic, err := FitIsotonic(p, y)
	if err != nil {
		t.Fatal(err)
	}
	platt, err := FitPlatt(p, y)
	if err != nil {
		t.Fatal(err)
	}
	return map[string]Map{"isotonic": isotonic, "platt": platt}
}

func TestCalibrationMendsOverconfidenceOnFreshRows(t *testing.T) {
	p, y := overconfident(4000, 1)
	freshP, freshY := overconfident(4000, 2)
	before := measure(t, freshP, freshY)
	for name, m := range both(t, p, y) {
		after := measure(t, apply(m, freshP), freshY)
		if before.ECE < 0.1 || after.ECE > 0.03 || after.LogLoss > before.LogLoss-0.05 || after.Brier > before.Brier {
			t.Errorf("%s: before %+v, after %+v", name, before, after)
		}
		if math.Abs(after.AUC-before.AUC) > 0.005 {
			t.Errorf("%s changes the order: AUC %.4f, before %.4f", name, after.AUC, before.AUC)
		}
	}
	platt, err := FitPlatt(p, y)
	if err != nil || math.Abs(platt.Slope-0.5) > 0.05 || math.Abs(platt.Shift-0.3) > 0.1 {
		t.Errorf("slope and shift %+v (%v), drawn with 0.5 and 0.3", platt, err)
	}
}

func TestMapsNeverFallNorReachTheEnds(t *testing.T) {
	first := seedtest.Or(t, 0)
	for seed := first; seed < first+30; seed++ {
		random := rand.New(rand.NewPCG(seed, 1))
		p, y := make([]float64, 20+random.IntN(200)), []bool(nil)
		for i := range p {
			p[i] = float64(random.IntN(30)) / 29
			y = append(y, i == 0 || i != 1 && random.Float64() < 1-p[i]/2) // wrong way round
		}
		for name, m := range both(t, p, y) {
			last := 0.0
			for k := -5; k <= 1005; k++ {
				v := m.Calibrate(float64(k) / 1000)
				if !(v > 0 && v < 1) || v < last {
					t.Fatalf("seed %d, %s: %g maps to %g after %g", seed, name, float64(k)/1000, v, last)
				}
				last = v
			}
			if v := m.Calibrate(math.NaN()); !(v > 0 && v < 1) {
				t.Errorf("%s: NaN maps to %g", name, v)
			}
		}
	}
}

// The isotonic fit at i is the largest, over starts up to i, of the smallest,
// over ends from i, mean of the outcomes between.
func TestIsotonicIsTheMinimaxMean(t *testing.T) {
	first := seedtest.Or(t, 0)
	for seed := first; seed < first+30; seed++ {
		random := rand.New(rand.NewPCG(seed, 2))
		n := 20 + random.IntN(60)
		p, y := make([]float64, n), make([]bool, n)
		for i := range p {
			p[i], y[i] = (float64(i)+0.5)/float64(n), random.Float64() < 0.2+0.6*float64(i)/float64(n)
		}
		y[0], y[n-1] = false, true
		var blocks []block
		for i := range p {
			b := block{weight: 1, at: p[i]}
			if y[i] {
				b.yes = 1
			}
			blocks = append(blocks, b)
		}
		pooled := poolViolators(blocks)
		k, used := 0, 0.0
		for i := range n {
			best := math.Inf(-1)
			for start := 0; start <= i; start++ {
				least, sum := math.Inf(1), 0.0
				for end := start; end < n; end++ {
					sum += blocks[end].yes
					if end >= i {
						least = min(least, sum/float64(end-start+1))
					}
				}
				best = max(best, least)
			}
			if used >= pooled[k].weight {
				k, used = k+1, 0
			}
			used++
			if math.Abs(pooled[k].share()-best) > 1e-12 {
				t.Fatalf("seed %d, row %d: %g, minimax %g", seed, i, pooled[k].share(), best)
			}
		}
	}
}

func TestAUCCountsPairs(t *testing.T) {
	first := seedtest.Or(t, 0)
	for seed := first; seed < first+30; seed++ {
		random := rand.New(rand.NewPCG(seed, 3))
		var p []float64
		var y []bool
		for i := range 20 + random.IntN(50) {
			p, y = append(p, float64(random.IntN(12))/11), append(y, i == 0 || i != 1 && random.IntN(2) == 0)
		}
		var wins, pairs float64
		for i := range p {
			for j := range p {
				if y[i] && !y[j] {
					pairs++
					if p[i] > p[j] {
						wins++
					} else if p[i] == p[j] {
						wins += 0.5
					}
				}
			}
		}
		if got := measure(t, p, y).AUC; math.Abs(got-wins/pairs) > 1e-12 {
			t.Fatalf("seed %d: %g, pairs give %g", seed, got, wins/pairs)
		}
	}
}

func TestMeasuresByHand(t *testing.T) {
	got := measure(t, []float64{0.95, 0.85, 0.25, 0.25}, []bool{true, false, false, true})
	want := Metrics{
		Rows:     4,
		LogLoss:  -(math.Log(0.95) + math.Log(0.15) + math.Log(0.75) + math.Log(0.25)) / 4,
		Brier:    (0.05*0.05 + 0.85*0.85 + 0.25*0.25 + 0.75*0.75) / 4,
		AUC:      0.625, // 1, 1, 0, 0.5 of four pairs
		Accuracy: 0.5,
		ECE:      (0.05 + 0.85 + 2*0.25) / 4,
	}
	for name, pair := range map[string][2]float64{
		"log loss": {got.LogLoss, want.LogLoss}, "Brier": {got.Brier, want.Brier}, "AUC": {got.AUC, want.AUC},
		"accuracy": {got.Accuracy, want.Accuracy}, "ECE": {got.ECE, want.ECE},
	} {
		if math.Abs(pair[0]-pair[1]) > 1e-12 {
			t.Errorf("%s: %g, by hand %g", name, pair[0], pair[1])
		}
	}
	bins, err := Reliability([]float64{0, 0.2, 1}, []bool{false, true, true}, 5)
	want2 := []Bin{{0, 0.2, 1, 0, 0}, {0.2, 0.4, 1, 0.2, 1}, {0.4, 0.6, 0, 0, 0}, {0.6, 0.8, 0, 0, 0}, {0.8, 1, 1, 1, 1}}
	if err != nil || !reflect.DeepEqual(bins, want2) {
		t.Errorf("bins %v (%v), want %v", bins, err, want2)
	}
}

func TestBadRowsAreRefused(t *testing.T) {
	p, y := overconfident(30, 4)
	bad := slices.Clone(p)
	bad[3] = math.NaN()
	for name, c := range map[string]struct {
		p    []float64
		y    []bool
		want error
	}{
		"shape": {p, y[1:], ErrShape}, "few": {p[:10], y[:10], ErrTooFewRows},
		"one class": {p, make([]bool, 30), ErrOneClass}, "NaN": {bad, y, ErrProbability}, "none": {nil, nil, ErrTooFewRows},
	} {
		if _, err := FitIsotonic(c.p, c.y); !errors.Is(err, c.want) {
			t.Errorf("isotonic, %s: %v", name, err)
		}
		if _, err := FitPlatt(c.p, c.y); !errors.Is(err, c.want) {
			t.Errorf("platt, %s: %v", name, err)
		}
	}
	if _, err := Reliability(p, y, 0); !errors.Is(err, ErrShape) {
		t.Errorf("no bins: %v", err)
	}
}

func TestMapsComeBackEqualAndDamageIsRefused(t *testing.T) {
	p, y := overconfident(200, 5)
	for name, m := range both(t, p, y) {
		sealed, err := m.(interface{ MarshalBinary() ([]byte, error) }).MarshalBinary()
		if err != nil {
			t.Fatal(err)
		}
		back, err := Unmarshal(sealed)
		if err != nil || !reflect.DeepEqual(m, back) {
			t.Fatalf("%s: got %+v (%v), want %+v", name, back, err, m)
		}
		for k := range sealed {
			damaged := slices.Clone(sealed)
			damaged[k] ^= 4
			if _, err := Unmarshal(damaged); err == nil {
				t.Errorf("%s: byte %d changed: accepted", name, k)
			}
		}
	}
	for name, m := range map[string]interface{ MarshalBinary() ([]byte, error) }{
		"falling slope": &Platt{Slope: -1}, "NaN": &Platt{Slope: math.NaN()},
		"falling": &Isotonic{at: []float64{0.1, 0.2}, value: []float64{0.5, 0.4}},
		"above 1": &Isotonic{at: []float64{0.1}, value: []float64{1.5}}, "empty": &Isotonic{},
		"unequal": &Isotonic{at: []float64{0.1, 0.2}, value: []float64{0.5}},
	} {
		sealed, err := m.MarshalBinary()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Unmarshal(sealed); !errors.Is(err, ErrAbsurd) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func ExampleFitPlatt() {
	// A model says 90 % and 10 %, and is right in four of five cases.
	var said []float64
	var came []bool
	for i := range 200 {
		said = append(said, []float64{0.9, 0.1}[i%2])
		came = append(came, (i%2 == 0) == (i/2%5 > 0))
	}
	m, err := FitPlatt(said, came)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("0.9 becomes %.2f, 0.1 becomes %.2f\n", m.Calibrate(0.9), m.Calibrate(0.1))
	// Output: 0.9 becomes 0.79, 0.1 becomes 0.21
}
