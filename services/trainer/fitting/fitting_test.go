package fitting

import (
	"bytes"
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"landfall.build/engine/features"
	"landfall.build/engine/prediction"
	"landfall.build/events/seedtest"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/services/trainer/dataset"
)

const start = 1_700_000_000_000_000

// outcomes are rows in which changes of many targets fail more often, and so do those of some hours of nothing.
func outcomes(r *rand.Rand, kind eventsv1.ModelKind, n int, strength float64) *dataset.Set {
	set := &dataset.Set{Queue: "main", Kind: kind}
	width := len(prediction.SchemaOf(kind))
	tells := features.IndexOfChange("targets")
	if kind == eventsv1.ModelKind_MODEL_KIND_CONFLICT {
		tells = features.IndexOfPair("shared_targets")
	}
	for i := range n {
		v := make([]float32, width)
		for k := range v {
			v[k] = float32(r.NormFloat64())
			if k%7 == 0 && r.IntN(3) == 0 {
				v[k] = float32(math.NaN())
			}
		}
		v[tells] = float32(r.IntN(30))
		odds := strength * (2 - math.Log1p(float64(v[tells])))
		at := int64(start + i*60_000_000)
		row := dataset.Row{At: at, Ended: at + r.Int64N(300_000_000), Vector: v, Predicted: 0.9, Source: "prior"}
		if r.Float64() < 1/(1+math.Exp(-odds)) {
			row.Target = 1
		}
		set.Rows = append(set.Rows, row)
	}
	// The rolling share is a good one.
	for _, row := range set.Rows {
		if kind == eventsv1.ModelKind_MODEL_KIND_SUCCESS {
			row.Vector[features.IndexOfChange("queue_failure_rate_50")] = float32(1 - shareOfYes(set.Rows))
		} else {
			row.Vector[features.IndexOfPair(features.PairRate)] = float32(shareOfYes(set.Rows))
		}
	}
	return set
}

// builds are rows in which builds of many targets take longer than the rolling median.
func builds(r *rand.Rand, n int, strength float64) *dataset.Set {
	set := &dataset.Set{Queue: "main", Kind: eventsv1.ModelKind_MODEL_KIND_DURATION}
	for i := range n {
		v := make([]float32, len(features.OfChange()))
		v[features.IndexOfChange("targets")] = float32(r.IntN(20))
		v[medianAt] = float32(30 + 20*r.Float64())
		at := int64(start + i*60_000_000)
		row := dataset.Row{At: at, Ended: at + r.Int64N(300_000_000), Vector: v, Predicted: 60, Std: 30,
			Target: float64(v[medianAt]) * math.Exp(strength*(float64(v[features.IndexOfChange("targets")])/10-1)+0.1*r.NormFloat64())}
		if r.IntN(10) == 0 {
			row.Censored, row.Target = true, row.Target*r.Float64()
		}
		set.Rows = append(set.Rows, row)
	}
	return set
}

func train(t *testing.T, set *dataset.Set, inUse *eventsv1.Model) *Report {
	t.Helper()
	r, err := Train(t.Context(), set, Options{Now: start + 1_000_000_000_000, Version: "test", InUse: inUse})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestM31OnlyWhatIsBetterIsBetter: a model of what there is to learn beats the rolling baseline and is put into use; one of noise
// is not, and neither is the same one again, against itself.
func TestM31OnlyWhatIsBetterIsBetter(t *testing.T) {
	r := rand.New(rand.NewPCG(seedtest.Or(t, 31), 0)) // pinned: chance is right once in twenty times
	for name, of := range map[string]func(strength float64) *dataset.Set{
		"success":  func(s float64) *dataset.Set { return outcomes(r, eventsv1.ModelKind_MODEL_KIND_SUCCESS, 1200, 2*s) },
		"conflict": func(s float64) *dataset.Set { return outcomes(r, eventsv1.ModelKind_MODEL_KIND_CONFLICT, 1200, 2*s) },
		"duration": func(s float64) *dataset.Set { return builds(r, 1200, s) },
	} {
		set := of(1)
		learned := train(t, set, nil)
		if !learned.Better || learned.Weights[0].Feature != map[string]string{"success": "targets", "conflict": "shared_targets", "duration": "targets"}[name] {
			t.Errorf("%s: %s; %v", name, learned.Model.Card.Verdict, learned.Weights)
		}
		if again := train(t, set, learned.Model); again.Better || again.Figures[map[bool]string{true: "nll", false: "log_loss"}[name == "duration"]][OfInUse] == 0 {
			t.Errorf("%s against itself: %s", name, again.Model.Card.Verdict)
		}
		if noise := train(t, of(0), nil); noise.Better {
			t.Errorf("%s of noise: %s", name, noise.Model.Card.Verdict)
		}
		card := learned.Model.Card
		if card.TrainingRows == 0 || card.NewestRows < 200 || card.DataUntilUs >= set.Rows[len(set.Rows)-1].Ended || len(card.Figures) == 0 || len(learned.LossOverTime) != intervals || len(learned.Calibration) < 3 {
			t.Errorf("%s: the card is %v", name, card)
		}
		if _, err := prediction.Open(learned.Model); err != nil {
			t.Errorf("%s: what is published cannot be used: %v", name, err)
		}
	}
}

// TestM30NoRowIsLearnedFromThatHadNotEnded: what ends after the next part began is in no part, and parts follow each other.
func TestM30NoRowIsLearnedFromThatHadNotEnded(t *testing.T) {
	r := seedtest.Random(t)
	left := 0
	for range 50 {
		var rows []dataset.Row
		at := int64(start)
		for range 50 + r.IntN(200) {
			at += r.Int64N(3) * 1_000_000
			rows = append(rows, dataset.Row{At: at, Ended: at + r.Int64N(40_000_000)})
		}
		p := split(rows)
		left += len(rows) - len(p.training) - len(p.test)
		for _, x := range []struct{ older, newer []dataset.Row }{{p.training, p.test}} {
			for _, o := range x.older {
				for _, n := range x.newer {
					if o.Ended >= n.At || o.At > n.At {
						t.Fatalf("a row that ended at %d is learned from before one of %d", o.Ended, n.At)
					}
				}
			}
		}
	}
	if left == 0 {
		t.Error("nothing was left out; the test shows nothing")
	}
}

// TestBetterIsWhatTheTextbookSays: the twin is the paired test written out, with the variance as mean of squares.
func TestBetterIsWhatTheTextbookSays(t *testing.T) {
	r := seedtest.Random(t)
	said := map[bool]int{}
	for range 2000 {
		n := 2 + r.IntN(30)
		a, b := make([]float64, n), make([]float64, n)
		var sum, squares float64
		for i := range a {
			a[i], b[i] = r.Float64(), r.Float64()+0.15
			sum += b[i] - a[i]
			squares += (b[i] - a[i]) * (b[i] - a[i])
		}
		mean := sum / float64(n)
		deviation := math.Sqrt((squares/float64(n) - mean*mean) * float64(n) / float64(n-1))
		want := mean > 1.645*deviation/math.Sqrt(float64(n))
		if math.Abs(mean-1.645*deviation/math.Sqrt(float64(n))) < 1e-9 {
			continue
		}
		if got := better(a, b); got != want {
			t.Fatalf("%v against %v: %v", a, b, got)
		}
		said[want]++
	}
	if said[true] < 100 || said[false] < 100 || better([]float64{1}, []float64{9}) || better(nil, nil) || better([]float64{1, 1}, []float64{1, 1}) {
		t.Errorf("%v", said)
	}
}

func TestTheSameRowsGiveTheSameBytes(t *testing.T) {
	r := rand.New(rand.NewPCG(seedtest.Or(t, 1), 1))
	for _, set := range []*dataset.Set{outcomes(r, eventsv1.ModelKind_MODEL_KIND_SUCCESS, 600, 2), builds(r, 600, 1)} {
		var first []byte
		for range 2 {
			b, err := proto.MarshalOptions{Deterministic: true}.Marshal(train(t, set, nil).Model)
			if err != nil {
				t.Fatal(err)
			}
			if first != nil && !bytes.Equal(first, b) {
				t.Errorf("%v: another model of the same rows", set.Kind)
			}
			first = b
		}
	}
}

func TestWhatCannotBeLearnedFromIsSaid(t *testing.T) {
	r := rand.New(rand.NewPCG(seedtest.Or(t, 3), 3))
	one := outcomes(r, eventsv1.ModelKind_MODEL_KIND_SUCCESS, 600, 2)
	for i := range one.Rows {
		one.Rows[i].Target = 1
	}
	blind := outcomes(r, eventsv1.ModelKind_MODEL_KIND_SUCCESS, 600, 2)
	for i := range blind.Rows {
		blind.Rows[i].Vector = make([]float32, len(features.OfChange()))
	}
	noMedian := builds(r, 600, 1)
	for i := range noMedian.Rows {
		noMedian.Rows[i].Vector[medianAt] = float32(math.NaN())
	}
	slow := outcomes(r, eventsv1.ModelKind_MODEL_KIND_SUCCESS, 600, 2)
	for i := range slow.Rows {
		slow.Rows[i].Ended = start + 1_000_000_000_000
	}
	for name, x := range map[string]struct {
		set  *dataset.Set
		says string
	}{
		"nothing": {&dataset.Set{Kind: eventsv1.ModelKind_MODEL_KIND_SUCCESS}, "0 rows"}, "ten rows": {outcomes(r, eventsv1.ModelKind_MODEL_KIND_SUCCESS, 10, 2), "10 rows"}, "one outcome": {one, "the same"},
		"nothing is known": {blind, "no feature"}, "no median": {noMedian, "usable"}, "nothing has ended": {slow, "ended"},
	} {
		if _, err := Train(t.Context(), x.set, Options{}); !errors.Is(err, ErrTooLittle) || !strings.Contains(err.Error(), x.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for _, set := range []*dataset.Set{builds(r, 600, 1), outcomes(r, eventsv1.ModelKind_MODEL_KIND_SUCCESS, 600, 2)} {
		if _, err := Train(ended, set, Options{}); !errors.Is(err, context.Canceled) {
			t.Errorf("a training that is ended: %v", err)
		}
	}
}
