package prediction_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"google.golang.org/protobuf/proto"

	"landfall.build/engine/features"
	"landfall.build/engine/prediction"
	"landfall.build/engine/prediction/predictiontest"
	"landfall.build/events"
	"landfall.build/events/seedtest"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/learning/bytime"
	"landfall.build/learning/logistic"
)

// TestAModelPredictsWhatItsTableSays: the twin looks each feature up by its name and straightens it by hand. A model of an older
// landfall is a regression alone.
func TestAModelPredictsWhatItsTableSays(t *testing.T) {
	seed := seedtest.Of(t)
	old, withTrees := predictiontest.Success(t, seed), predictiontest.SuccessWithTrees(t, seed)
	alone, err := logistic.Unmarshal(old.Predictor)
	if err != nil {
		t.Fatal(err)
	}
	both, err := bytime.Unmarshal(withTrees.Predictor)
	if err != nil {
		t.Fatal(err)
	}
	predictsAs(t, seed, old, alone)
	predictsAs(t, seed, withTrees, both)
}

func predictsAs(t *testing.T, seed uint64, m *eventsv1.Model, plain interface {
	Predict(row []float64) (float64, error)
}) {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 0))
	opened, err := prediction.Open(m)
	if err != nil {
		t.Fatal(err)
	}
	for range 100 {
		v := make([]float32, len(features.OfChange()))
		for i := range v {
			v[i] = float32(r.IntN(6))
		}
		targets, ahead := v[features.IndexOfChange("targets")], v[features.IndexOfChange("ahead")]
		want, err := plain.Predict([]float64{math.Log1p(float64(targets)), math.Log1p(float64(ahead))})
		if err != nil {
			t.Fatal(err)
		}
		if got, err := opened.Probability(v); err != nil || got != max(0.001, min(0.999, want)) {
			t.Fatalf("%v, want %v (%v)", got, want, err)
		}
	}
	if _, err := opened.Probability(make([]float32, 3)); !errors.Is(err, prediction.ErrSchema) {
		t.Errorf("a vector of another schema: %v", err)
	}
}

func TestWhatIsWrongWithAModelIsSaid(t *testing.T) {
	good := predictiontest.Success(t, 1)
	if _, err := prediction.Open(good); err != nil {
		t.Fatal(err)
	}
	for name, x := range map[string]struct {
		spoil  func(m *eventsv1.Model)
		sealed bool // its version is that of the spoilt content
		want   error
	}{
		"truncated":                {func(m *eventsv1.Model) { m.Predictor = m.Predictor[:len(m.Predictor)-9] }, true, prediction.ErrCorrupt},
		"empty":                    {func(m *eventsv1.Model) { m.Predictor = nil }, true, prediction.ErrCorrupt},
		"one bit":                  {func(m *eventsv1.Model) { m.Predictor[len(m.Predictor)/2] ^= 4 }, true, prediction.ErrCorrupt},
		"other content":            {func(m *eventsv1.Model) { m.Predictor[len(m.Predictor)/2] ^= 4 }, false, prediction.ErrCorrupt},
		"a date forged":            {func(m *eventsv1.Model) { m.Card.DataUntilUs++ }, false, prediction.ErrCorrupt},
		"a bad calibration":        {func(m *eventsv1.Model) { m.Calibration = []byte("logScale") }, true, prediction.ErrCorrupt},
		"no features":              {func(m *eventsv1.Model) { m.Features = nil }, true, prediction.ErrCorrupt},
		"features in other order":  {func(m *eventsv1.Model) { m.Features[0], m.Features[1] = m.Features[1], m.Features[0] }, true, prediction.ErrCorrupt},
		"a feature that is not":    {func(m *eventsv1.Model) { m.Features[0] = "horoscope" }, true, prediction.ErrSchema},
		"of another kind":          {func(m *eventsv1.Model) { m.Kind = eventsv1.ModelKind_MODEL_KIND_CONFLICT }, true, prediction.ErrSchema},
		"of an unknown kind":       {func(m *eventsv1.Model) { m.Kind = 9 }, true, prediction.ErrSchema},
		"a duration that is none":  {func(m *eventsv1.Model) { m.Kind = eventsv1.ModelKind_MODEL_KIND_DURATION }, true, prediction.ErrCorrupt},
		"of a later schema":        {func(m *eventsv1.Model) { m.Schema++ }, false, prediction.ErrCorrupt},
		"too large":                {func(m *eventsv1.Model) { m.Predictor = make([]byte, events.MaxModelBytes) }, true, prediction.ErrTooLarge},
		"too large for its card":   {func(m *eventsv1.Model) { m.Card.Verdict = string(make([]byte, events.MaxModelBytes)) }, true, prediction.ErrTooLarge},
		"a version that is no sum": {func(m *eventsv1.Model) { m.Version = "7" }, false, prediction.ErrCorrupt},
	} {
		m := proto.CloneOf(good)
		x.spoil(m)
		if x.sealed {
			m.Version = prediction.VersionOf(m)
		}
		if _, err := prediction.Open(m); !errors.Is(err, x.want) {
			t.Errorf("%s: %v, want %v", name, err, x.want)
		}
	}
	later := proto.CloneOf(good)
	later.Schema++
	later.Version = prediction.VersionOf(later)
	if _, err := prediction.Open(later); !errors.Is(err, prediction.ErrSchema) {
		t.Errorf("of a later schema: %v", err)
	}
	if _, err := prediction.Open(nil); err == nil {
		t.Error("no model at all was opened")
	}
	opened, _ := prediction.Open(good)
	if err := opened.CheckAge(predictiontest.Until + prediction.MaxAge); err != nil {
		t.Error(err)
	}
	if err := opened.CheckAge(predictiontest.Until + prediction.MaxAge + 1); !errors.Is(err, prediction.ErrOld) {
		t.Errorf("after 180 days: %v", err)
	}
}

func TestADurationIsTimesTheMedianAndAnAbsurdOneIsRefused(t *testing.T) {
	vector := func(targets, median float32) []float32 {
		v := make([]float32, len(features.OfChange()))
		v[features.IndexOfChange("targets")], v[features.IndexOfChange(features.MedianSeconds)] = targets, median
		return v
	}
	m, err := prediction.Open(predictiontest.Duration(t, 3, 1))
	if err != nil {
		t.Fatal(err)
	}
	few, _, known, err := m.Duration(vector(1, 30))
	many, std, knownToo, errToo := m.Duration(vector(8, 30))
	if err != nil || errToo != nil || !known || !knownToo || !(few > 10 && few < 35 && many > 45 && many < 80 && std > 0) {
		t.Errorf("1 target %v s, 8 targets %v s ± %v (%v, %v)", few, many, std, err, errToo)
	}
	if _, _, known, err := m.Duration(vector(1, float32(math.NaN()))); known || err != nil {
		t.Errorf("without a median: %v, %v", known, err)
	}
	if m, err = prediction.Open(predictiontest.Duration(t, 3, 1e9)); err != nil {
		t.Fatal(err)
	}
	if _, _, _, err := m.Duration(vector(1, 30)); !errors.Is(err, prediction.ErrAbsurd) {
		t.Errorf("a thousand years: %v", err)
	}
}

// FuzzOpen: whatever bytes stand in a model, it is refused, or predicts probabilities.
func FuzzOpen(f *testing.F) {
	good := predictiontest.Success(f, 1)
	f.Add(good.Predictor, []byte(nil), int32(1), "targets")
	f.Add(predictiontest.SuccessWithTrees(f, 1).Predictor, []byte(nil), int32(1), "targets")
	f.Add(predictiontest.Duration(f, 1, 1).Predictor, []byte(nil), int32(3), "targets")
	f.Fuzz(func(t *testing.T, predictor, mapped []byte, kind int32, name string) {
		m := &eventsv1.Model{Kind: eventsv1.ModelKind(kind), Features: []string{name, "ahead"}, Predictor: predictor, Calibration: mapped}
		opened, err := prediction.Open(prediction.Seal(m))
		if err != nil {
			return
		}
		if kind == int32(eventsv1.ModelKind_MODEL_KIND_DURATION) {
			if mean, std, known, err := opened.Duration(make([]float32, len(features.OfChange()))); err == nil && known && !(mean > 0 && std >= 0) {
				t.Errorf("%v ± %v", mean, std)
			}
			return
		}
		if p, err := opened.Probability(make([]float32, len(prediction.SchemaOf(m.Kind)))); err == nil && !(p > 0 && p < 1) {
			t.Errorf("%v", p)
		}
	})
}
