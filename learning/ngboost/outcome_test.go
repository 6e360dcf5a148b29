package ngboost

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"landfall.build/events/seedtest"
	"landfall.build/learning/internal/seal"
)

// outcomesOf makes rows of which the outcome hangs on two features that only matter together, some of them missing. truth is the
// probability that each had.
func outcomesOf(random *rand.Rand, n int) (d Data, truth []float64) {
	d.Features = []string{"a", "b", "noise"}
	for range n {
		a, b := float64(random.IntN(6)), random.NormFloat64()
		odds := 1.5
		if (a > 2.5) != (b > 0) {
			odds = -1.5
		}
		row := []float64{a, b, random.Float64()}
		if random.IntN(10) == 0 {
			row[0], odds = math.NaN(), 3
		}
		p, y := chance(odds), 0.0
		if random.Float64() < p {
			y = 1
		}
		d.Rows, d.Target, truth = append(d.Rows, row), append(d.Target, y), append(truth, p)
	}
	return d, truth
}

func TestTreesFollowWhatOnlyMattersTogether(t *testing.T) {
	random := rand.New(rand.NewPCG(seedtest.Or(t, 11), 0))
	known, _ := outcomesOf(random, 4000)
	newer, _ := outcomesOf(random, 1000)
	unseen, truth := outcomesOf(random, 2000)
	for _, method := range []Method{Histogram, Exact} {
		m, report, err := TrainOutcome(t.Context(), known, &newer, Config{Rounds: 300, LearningRate: 0.05, Patience: 40, MinLeaf: 10, Method: method})
		if err != nil {
			t.Fatal(err)
		}
		loss, best := 0.0, 0.0
		for i, row := range unseen.Rows {
			p, err := m.Predict(row)
			if err != nil {
				t.Fatal(err)
			}
			of := func(p float64) float64 { return -math.Log(unseen.Target[i]*p+(1-unseen.Target[i])*(1-p)) / 2000 }
			loss, best = loss+of(p), best+of(truth[i])
		}
		if loss > best+0.04 {
			t.Errorf("method %d: log loss %.4f after %d rounds, the truth's is %.4f", method, loss, m.Rounds(), best)
		}
		if m.Rounds() != report.Rounds || report.Rounds > len(report.ValidationNLL) || len(report.TrainingLoss) != len(report.ValidationNLL) {
			t.Errorf("%d rounds, the report has %d of %d", m.Rounds(), report.Rounds, len(report.ValidationNLL))
		}
		if importance := m.Importance(); importance[2] > 0.1 {
			t.Errorf("noise explains %v", importance)
		}
	}
}

// TestEveryRoundMakesTheTrainingRowsLikelier: all rows are in each round, and a leaf's step is a tenth of the one that is best for
// it.
func TestEveryRoundMakesTheTrainingRowsLikelier(t *testing.T) {
	d, _ := outcomesOf(seedtest.Random(t), 300)
	_, report, err := TrainOutcome(t.Context(), d, nil, Config{Rounds: 100, LearningRate: 0.1})
	if err != nil {
		t.Fatal(err)
	}
	for k := 1; k < len(report.TrainingLoss); k++ {
		if report.TrainingLoss[k] > report.TrainingLoss[k-1]+1e-12 {
			t.Fatalf("round %d: %v after %v", k, report.TrainingLoss[k], report.TrainingLoss[k-1])
		}
	}
	if fall := report.TrainingLoss[0] - report.TrainingLoss[99]; fall < 0.05 {
		t.Errorf("in 100 rounds the loss fell by %v", fall)
	}
}

// TestASplitByMissingValuesAloneIsOne: its sides may begin with equal leaves.
func TestASplitByMissingValuesAloneIsOne(t *testing.T) {
	tr := newTree(2)
	copy(tr.leaves, []float64{1, 0, 1, 1}) // the node on the left splits the second feature
	tr.nodes[0], tr.nodes[1], tr.nodes[2] = noSplit, node{threshold: 3, slot: 1}, noSplit
	regions := make([]int, 4)
	tr.fillRegions(regions, 0)
	if want := []int{0, 1, 2, 2}; !slices.Equal(regions, want) {
		t.Errorf("regions %v, want %v", regions, want)
	}
}

// TestALeafMovesByTheNewtonStepOfItsRows: the twin fits one tree with one split by hand.
func TestALeafMovesByTheNewtonStepOfItsRows(t *testing.T) {
	d := Data{Features: []string{"x"}}
	yes := [2]float64{}
	for i := range 200 {
		x, y := float64(i%2), 0.0
		if i%10 == 1 || i%20 == 0 {
			y = 1
		}
		yes[i%2] += y
		d.Rows, d.Target = append(d.Rows, []float64{x}), append(d.Target, y)
	}
	m, _, err := TrainOutcome(t.Context(), d, nil, Config{Rounds: 1, LearningRate: 0.3, Depth: 1})
	if err != nil {
		t.Fatal(err)
	}
	share := (yes[0] + yes[1]) / 200
	for side := range 2 {
		want := chance(math.Log(share/(1-share)) + 0.3*(yes[side]-100*share)/(100*share*(1-share)+leafPrior))
		if got, err := m.Predict([]float64{float64(side)}); err != nil || math.Abs(got-want) > 1e-12 {
			t.Errorf("x = %d: %v, by hand %v (%v)", side, got, want, err)
		}
	}
}

func TestAnOutcomeModelComesBackEqualAndADamagedOneIsRefused(t *testing.T) {
	random := rand.New(rand.NewPCG(seedtest.Or(t, 12), 0))
	d, _ := outcomesOf(random, 200)
	for depth := 1; depth <= 4; depth++ {
		m, _, err := TrainOutcome(t.Context(), d, nil, Config{Rounds: 4, Depth: depth, RowFraction: 0.5, ColumnFraction: 0.7})
		if err != nil {
			t.Fatal(err)
		}
		sealed, err := m.MarshalBinary()
		if err != nil {
			t.Fatal(err)
		}
		back, err := UnmarshalOutcome(sealed)
		if err != nil || !reflect.DeepEqual(m, back) {
			t.Fatalf("depth %d: %+v, want %+v (%v)", depth, back, m, err)
		}
		for length := range sealed {
			if _, err := UnmarshalOutcome(sealed[:length]); !errors.Is(err, ErrTruncated) {
				t.Fatalf("the first %d of %d bytes: %v", length, len(sealed), err)
			}
		}
		for i := range sealed {
			sealed[i] ^= 1
			if _, err := UnmarshalOutcome(sealed); err == nil {
				t.Fatalf("byte %d was changed", i)
			}
			sealed[i] ^= 1
		}
		// Intact bytes with an absurd content: every payload byte is set to 255, and sealed again.
		_, payload, err := seal.Open(outcomeMagic, outcomeVersion, sealed)
		if err != nil {
			t.Fatal(err)
		}
		for i := range payload {
			spoilt := append([]byte(nil), payload...)
			spoilt[i] = 255
			again, err := seal.Close(outcomeMagic, outcomeVersion, spoilt)
			if err != nil {
				t.Fatal(err)
			}
			if m, err := UnmarshalOutcome(again); err == nil {
				if p, err := m.Predict(make([]float64, len(m.features))); err != nil || !(p > 0 && p < 1) {
					t.Fatalf("byte %d as 255: a probability of %v (%v)", i, p, err)
				}
			}
		}
	}
	if _, err := UnmarshalOutcome(marshal(t, smallModel(t, 3))); !errors.Is(err, ErrNotAModel) {
		t.Errorf("a model of durations: %v", err)
	}
}

func TestWhatIsNoOutcomeIsRefused(t *testing.T) {
	good, _ := outcomesOf(rand.New(rand.NewPCG(seedtest.Or(t, 13), 0)), 100)
	for name, x := range map[string]struct {
		spoil func(d *Data)
		want  error
	}{
		"a half":    {func(d *Data) { d.Target[3] = 0.5 }, ErrTarget},
		"one class": {func(d *Data) { clear(d.Target) }, ErrTarget},
		"censored":  {func(d *Data) { d.Censored = make([]bool, 100); d.Censored[1] = true }, ErrTarget},
		"ten rows":  {func(d *Data) { d.Rows, d.Target = d.Rows[:10], d.Target[:10] }, ErrTooFewRows},
		"ragged":    {func(d *Data) { d.Rows[5] = d.Rows[5][:1] }, ErrShape},
		"infinite":  {func(d *Data) { d.Rows[5] = []float64{1, math.Inf(1), 2} }, ErrFeature},
		"all the same": {func(d *Data) {
			for i := range d.Rows {
				d.Rows[i] = []float64{1, 2, 3}
			}
		}, ErrConstantFeatures},
	} {
		d := Data{Rows: append([][]float64(nil), good.Rows...), Target: append([]float64(nil), good.Target...), Features: good.Features}
		x.spoil(&d)
		if _, _, err := TrainOutcome(t.Context(), d, nil, Config{Rounds: 3}); !errors.Is(err, x.want) {
			t.Errorf("%s: %v, want %v", name, err, x.want)
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := TrainOutcome(ended, good, nil, Config{}); !errors.Is(err, context.Canceled) {
		t.Errorf("a training that is ended: %v", err)
	}
	m, _, err := TrainOutcome(t.Context(), good, nil, Config{Rounds: 3})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.Predict([]float64{1}); !errors.Is(err, ErrShape) {
		t.Errorf("a row of one: %v", err)
	}
	row := good.Rows[0]
	if n := testing.AllocsPerRun(100, func() { m.Predict(row) }); n != 0 {
		t.Errorf("a prediction allocates %v times", n)
	}
}

// BenchmarkTrainOutcome is a queue's history: 20,000 rows of 100 features.
func BenchmarkTrainOutcome(b *testing.B) {
	random := rand.New(rand.NewPCG(14, 0))
	var d Data
	for range 20_000 {
		row := make([]float64, 100)
		for k := range row {
			row[k] = random.NormFloat64()
		}
		y := 0.0
		if row[0]*row[1]+random.NormFloat64() > 0 {
			y = 1
		}
		d.Rows, d.Target = append(d.Rows, row), append(d.Target, y)
	}
	for b.Loop() {
		if _, _, err := TrainOutcome(b.Context(), d, nil, Config{Rounds: 200, Method: Histogram, RowFraction: 0.5, ColumnFraction: 0.4}); err != nil {
			b.Fatal(err)
		}
	}
}
