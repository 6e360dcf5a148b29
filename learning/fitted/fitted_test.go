package fitted

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"landfall.build/learning/ngboost"
	"landfall.build/learning/table"
)

// invented are rows whose outcome hangs on a count with a long tail and on a text, and whose seconds on both and on a median. A
// row has no median now and then.
func invented(t *testing.T, seed uint64, n int) *table.Table {
	t.Helper()
	random := rand.New(rand.NewPCG(seed, 0))
	var b strings.Builder
	b.WriteString("at,count,team,median,noise,passed,seconds\n")
	for i := range n {
		count, team, median := math.Floor(math.Exp(2*random.NormFloat64())), random.IntN(3), 50+100*random.Float64()
		passed := 0
		if random.Float64() < 1/(1+math.Exp(2-math.Log1p(count)-float64(team))) {
			passed = 1
		}
		shown := fmt.Sprintf("%.2f", median)
		if random.IntN(20) == 0 {
			shown = ""
		}
		fmt.Fprintf(&b, "%d,%v,t%d,%s,%.3f,%d,%.2f\n", 1000+i, count, team, shown, random.NormFloat64(), passed, median*math.Exp(float64(team)/2+0.3*random.NormFloat64()))
	}
	read, err := table.Read(strings.NewReader(b.String()), table.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return read
}

func trained(t *testing.T) (*Outcome, *Distribution) {
	t.Helper()
	rows := invented(t, 1, 800)
	o, _, err := TrainOutcome(t.Context(), rows.Without("seconds"), Columns{Target: "passed", Time: "at"})
	if err != nil {
		t.Fatal(err)
	}
	d, of, err := TrainDistribution(t.Context(), rows.Without("passed"), DistributionOptions{
		Columns: Columns{Target: "seconds", Time: "at"}, Over: "median", Tune: true,
		Config: ngboost.Config{Distribution: ngboost.LogNormal, Rounds: 60, LearningRate: 0.1, Method: ngboost.Histogram},
	})
	if err != nil {
		t.Fatal(err)
	}
	if of.Rows >= 800 || of.Rows < 700 || len(of.Losses) == 0 || o.Until() != 1799 || !(d.Until() >= 1790) {
		t.Fatalf("%+v; until %v, %v", of, o.Until(), d.Until())
	}
	return o, d
}

// TestPredictionsAreThoseOfTheModel: the dumb twin writes each row of features by hand.
func TestPredictionsAreThoseOfTheModel(t *testing.T) {
	o, d := trained(t)
	newer := invented(t, 2, 200)
	p, err := o.Predict(newer)
	if err != nil {
		t.Fatal(err)
	}
	said, known, err := d.Predict(newer)
	if err != nil {
		t.Fatal(err)
	}
	numbers := func(name string, i int) float64 {
		c, err := newer.Column(name)
		if err != nil {
			t.Fatal(err)
		}
		return c.Numbers[i]
	}
	teams, _ := newer.Column("team")
	unknown := 0
	for i := range newer.Rows {
		by := func(features []string, long map[string]bool) (row []float64) {
			for _, name := range features {
				var x float64
				if team, is := strings.CutPrefix(name, "team="); is {
					x = map[bool]float64{true: 1}[teams.Texts[i] == team]
				} else {
					x = numbers(name, i)
				}
				if long[name] {
					x = math.Log(1 + x)
				}
				row = append(row, x)
			}
			return row
		}
		want, err := o.Model().Predict(by(o.Model().Features(), map[string]bool{"count": true}))
		if err != nil {
			t.Fatal(err)
		}
		if o.calibration != nil {
			want = o.calibration.Calibrate(want)
		}
		if math.Abs(p[i]-want) > 1e-9 {
			t.Fatalf("row %d: %v, by hand %v", i, p[i], want)
		}
		ratio, err := d.Model().Predict(by(d.Model().Features(), nil))
		if err != nil {
			t.Fatal(err)
		}
		median := numbers("median", i)
		if known[i] != (median > 0) {
			t.Fatalf("row %d: known is %v, and the median %v", i, known[i], median)
		}
		if !known[i] {
			unknown++
			continue
		}
		if mean := ratio.Mean() * median; math.Abs(said[i].Mean()/mean-1) > 1e-9 || math.Abs(said[i].StandardDeviation()/(ratio.StandardDeviation()*median)-1) > 1e-9 {
			t.Fatalf("row %d: %v, by hand %v", i, said[i].Mean(), mean)
		}
	}
	if unknown == 0 {
		t.Error("every median is known; that shows less than it should")
	}
	for _, name := range []string{"count", "team", "median"} {
		if _, err := o.Predict(newer.Without(name)); !errors.Is(err, ErrUsing) {
			t.Errorf("without %s: %v", name, err)
		}
		if _, _, err := d.Predict(newer.Without(name)); !errors.Is(err, ErrUsing) {
			t.Errorf("a distribution without %s: %v", name, err)
		}
	}
}

func TestAModelComesBackAndNothingElseIsTaken(t *testing.T) {
	o, d := trained(t)
	timeless, _, err := TrainDistribution(t.Context(), invented(t, 3, 200).Without("passed", "team"), DistributionOptions{
		Columns: Columns{Target: "seconds"}, Config: ngboost.Config{Distribution: ngboost.Normal, Rounds: 5, LearningRate: 0.1, Method: ngboost.Exact},
	})
	if err != nil {
		t.Fatal(err)
	}
	newer := invented(t, 2, 100)
	sealed := map[string][]byte{}
	for name, m := range map[string]interface{ MarshalBinary() ([]byte, error) }{"outcome": o, "distribution": d, "timeless": timeless} {
		if sealed[name], err = m.MarshalBinary(); err != nil {
			t.Fatal(err)
		}
	}
	back, err := UnmarshalOutcome(sealed["outcome"])
	if err != nil || back.Until() != o.Until() {
		t.Fatal(err)
	}
	was, _ := o.Predict(newer)
	if is, err := back.Predict(newer); err != nil || !reflect.DeepEqual(was, is) {
		t.Errorf("%v, %v", err, is)
	}
	for name, m := range map[string]*Distribution{"distribution": d, "timeless": timeless} {
		back, err := UnmarshalDistribution(sealed[name])
		if err != nil || back.Until() != m.Until() && !(math.IsNaN(back.Until()) && math.IsNaN(m.Until())) {
			t.Fatal(name, err)
		}
		was, knew, _ := m.Predict(newer)
		if is, knows, err := back.Predict(newer); err != nil || !reflect.DeepEqual(was, is) || !reflect.DeepEqual(knew, knows) {
			t.Errorf("%s: %v, %v", name, err, is)
		}
	}
	if !math.IsNaN(timeless.Until()) {
		t.Errorf("until %v, without times", timeless.Until())
	}
	for name, unmarshal := range map[string]func([]byte) error{
		"outcome":      func(b []byte) error { _, err := UnmarshalOutcome(b); return err },
		"distribution": func(b []byte) error { _, err := UnmarshalDistribution(b); return err },
	} {
		of := sealed[name]
		for length := 0; length < len(of); length += 1 + length/20 {
			if err := unmarshal(of[:length]); !errors.Is(err, ErrTruncated) {
				t.Fatalf("%s: of the first %d of %d bytes: %v", name, length, len(of), err)
			}
		}
		for i := 10; i < len(of); i += 101 {
			of[i] ^= 16
			if err := unmarshal(of); !errors.Is(err, ErrCorrupt) {
				t.Fatalf("%s: byte %d was changed: %v", name, i, err)
			}
			of[i] ^= 16
		}
		for other := range sealed {
			if other[0] == name[0] || name == "distribution" && other == "timeless" {
				continue
			}
			if err := unmarshal(sealed[other]); !errors.Is(err, ErrNotAModel) {
				t.Errorf("%s from a %s: %v", name, other, err)
			}
		}
	}
	// Parts that do not belong together.
	o.encoder, d.encoder = timeless.encoder, timeless.encoder
	if torn, err := o.MarshalBinary(); err != nil {
		t.Error(err)
	} else if _, err := UnmarshalOutcome(torn); !errors.Is(err, ErrAbsurd) {
		t.Errorf("an encoder of other features: %v", err)
	}
	if torn, err := d.MarshalBinary(); err != nil {
		t.Error(err)
	} else if _, err := UnmarshalDistribution(torn); !errors.Is(err, ErrAbsurd) {
		t.Errorf("an encoder of other features: %v", err)
	}
}

func TestWhatCannotBeLearnedIsRefused(t *testing.T) {
	rows := invented(t, 1, 100)
	for of, want := range map[DistributionOptions]error{
		{Columns: Columns{Target: "seconds"}, Over: "team"}:    table.ErrColumn,
		{Columns: Columns{Target: "seconds"}, Over: "nowhere"}: table.ErrColumn,
		{Columns: Columns{Target: "seconds"}, Over: "never"}:   ErrUsing,
		{Columns: Columns{Target: "team"}}:                     table.ErrColumn,
	} {
		with := *rows
		with.Columns = append([]table.Column{{Name: "never", Kind: table.Number, Numbers: make([]float64, rows.Rows)}}, rows.Columns...)
		if _, _, err := TrainDistribution(t.Context(), &with, of); !errors.Is(err, want) {
			t.Errorf("%+v: %v, want %v", of, err, want)
		}
	}
	with := rows.Without("noise")
	with.Columns = append(with.Columns, table.Column{Name: "ended", Kind: table.Number, Numbers: make([]float64, rows.Rows)})
	for i := range rows.Rows {
		with.Columns[len(with.Columns)-1].Numbers[i] = float64(1000 + i)
	}
	if _, _, err := TrainOutcome(t.Context(), with, Columns{Target: "passed", Time: "at", Ended: "nowhere"}); !errors.Is(err, table.ErrColumn) {
		t.Errorf("when it ended is in no column: %v", err)
	}
	if m, _, err := TrainOutcome(t.Context(), with, Columns{Target: "passed", Time: "at", Ended: "ended"}); err != nil || slices.Contains(m.Model().Features(), "ended") {
		t.Errorf("when it ended is a feature: %v", err)
	}
	if _, _, err := TrainOutcome(t.Context(), rows, Columns{Target: "count"}); !errors.Is(err, table.ErrColumn) {
		t.Errorf("an outcome of counts: %v", err)
	}
}
