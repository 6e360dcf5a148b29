// Package predictiontest trains small models for tests.
package predictiontest

import (
	"math"
	"math/rand/v2"
	"testing"

	"landfall.build/engine/features"
	"landfall.build/engine/prediction"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/learning/bytime"
	"landfall.build/learning/logistic"
	"landfall.build/learning/ngboost"
)

// Until is when the data of the models ends, in microseconds since 1970: in November 2023.
const Until = 1_700_000_000_000_000

// Success returns a model of success: changes with many targets rarely pass.
func Success(t testing.TB, seed uint64) *eventsv1.Model {
	return linear(t, seed, eventsv1.ModelKind_MODEL_KIND_SUCCESS, "targets", "ahead")
}

// Conflict returns a model of conflict: pairs that share many targets break each other.
func Conflict(t testing.TB, seed uint64) *eventsv1.Model {
	return linear(t, seed, eventsv1.ModelKind_MODEL_KIND_CONFLICT, "shared_targets", "same_author")
}

func linear(t testing.TB, seed uint64, kind eventsv1.ModelKind, names ...string) *eventsv1.Model {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 0))
	d := logistic.Data{Features: names}
	for range 200 {
		x := []float64{r.Float64() * 3, math.NaN()}
		if r.IntN(2) == 0 {
			x[1] = r.Float64()
		}
		yes := r.Float64() < 1/(1+math.Exp(-(x[0]-1.5)))
		d.Rows, d.Outcomes = append(d.Rows, x), append(d.Outcomes, yes == (kind == eventsv1.ModelKind_MODEL_KIND_CONFLICT))
	}
	m, err := logistic.Fit(d, logistic.Config{})
	if err != nil {
		t.Fatal(err)
	}
	return seal(t, kind, names, m)
}

// SuccessWithTrees returns a model of success whose regression is joined by trees: changes with many targets rarely pass, and neither
// do those with few targets that have many changes ahead.
func SuccessWithTrees(t testing.TB, seed uint64) *eventsv1.Model {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 0))
	names := []string{"targets", "ahead"}
	d := bytime.OutcomeData{Features: names}
	for range 600 {
		x := []float64{r.Float64() * 3, r.Float64() * 2}
		odds := 3 * (1.5 - x[0])
		if x[0] < 1.5 && x[1] > 1 {
			odds = -odds
		}
		d.Rows, d.Outcomes = append(d.Rows, x), append(d.Outcomes, r.Float64() < 1/(1+math.Exp(-odds)))
	}
	m, _, err := bytime.Outcome(t.Context(), d)
	if err != nil {
		t.Fatal(err)
	}
	if trees, _ := m.Trees(); trees == nil {
		t.Fatal("the trees were left out")
	}
	return seal(t, eventsv1.ModelKind_MODEL_KIND_SUCCESS, names, m)
}

// Duration returns a model of durations: builds of many targets take longer than the median. All its durations are multiplied by factor.
func Duration(t testing.TB, seed uint64, factor float64) *eventsv1.Model {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 0))
	names := []string{"targets", features.MedianSeconds}
	d := ngboost.Data{Features: names}
	for range 100 {
		x := []float64{float64(r.IntN(9)), 10 + 50*r.Float64()}
		d.Rows, d.Target = append(d.Rows, x), append(d.Target, factor*(0.5+x[0]/5)*math.Exp(0.1*r.NormFloat64()))
	}
	m, _, err := ngboost.Train(t.Context(), d, nil, ngboost.Config{Distribution: ngboost.LogNormal, Rounds: 60, LearningRate: 0.1})
	if err != nil {
		t.Fatal(err)
	}
	return seal(t, eventsv1.ModelKind_MODEL_KIND_DURATION, names, m)
}

func seal(t testing.TB, kind eventsv1.ModelKind, names []string, m interface{ MarshalBinary() ([]byte, error) }) *eventsv1.Model {
	t.Helper()
	predictor, err := m.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	return prediction.Seal(&eventsv1.Model{Kind: kind, Features: names, Predictor: predictor, Card: &eventsv1.ModelCard{DataUntilUs: Until}})
}
