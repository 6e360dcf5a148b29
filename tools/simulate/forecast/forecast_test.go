package forecast

import (
	"errors"
	"io"
	"math"
	"testing"

	"landfall.build/tools/simulate/trace"
)

// sample is a trace with the pairs that arrived near each other.
func sample(t *testing.T, p trace.Paper) (changes []*trace.Change, met [][]*trace.Change, lands []bool) {
	t.Helper()
	tr := p.Start()
	var truth trace.Truth
	for {
		c, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return changes, met, lands
		}
		if err != nil {
			t.Fatal(err)
		}
		var of []*trace.Change
		for _, k := range changes {
			if c.Arrival-k.Arrival <= p.Near.Microseconds() && tr.Meet(k, c) && truth.Lands(k.Number) {
				of = append(of, k)
			}
		}
		changes, met, lands = append(changes, c), append(met, of), append(lands, truth.Take(c))
	}
}

func TestTheCalibratedForecastIsRightAsOftenAsSaidAndMeansWhatItSays(t *testing.T) {
	p := trace.PinnedPaper()
	changes, met, lands := sample(t, p)
	f, err := New(Calibrated, 7, p.Start)
	if err != nil {
		t.Fatal(err)
	}
	right, relative := 0, 0.0
	var said, was [10]float64
	for i, c := range changes {
		own := f.Success(c)
		b := min(int(own*10), 9)
		said[b] += own
		if c.Green {
			was[b]++
		}
		for _, k := range met[i] {
			own *= 1 - f.Conflict(c, k)
		}
		if (own >= 0.5) == lands[i] {
			right++
		}
		mean, _ := f.Duration(c)
		relative += math.Abs(mean/float64(c.Duration)-1) / float64(len(changes))
	}
	if share := float64(right) / float64(len(changes)); math.Abs(share-Accuracy) > 0.003 {
		t.Errorf("it is right %.4f of the time", share)
	}
	if math.Abs(relative-DurationError) > 0.005 {
		t.Errorf("durations are off by %.3f", relative)
	}
	for b := range said {
		// As many passed as were said to, within three standard deviations.
		if spread := 3 * math.Sqrt(math.Max(said[b]*(1-float64(b)/10), 1)); math.Abs(said[b]-was[b]) > spread {
			t.Errorf("of those said to pass with %d0 %%, %.0f should have and %.0f did", b, said[b], was[b])
		}
	}
}

func TestPerfectAndFlatForecasts(t *testing.T) {
	p := trace.PinnedPaper()
	p.Changes, p.True = 300, 0.3
	changes, met, _ := sample(t, p)
	perfect, _ := New(Perfect, 1, p.Start)
	flat, _ := New(Flat, 1, p.Start)
	broken := 0
	for i, c := range changes {
		if (perfect.Success(c) == 1) != c.Green || flat.Success(c) != 0.94 {
			t.Fatalf("%s: %v, %v", c.ID, perfect.Success(c), flat.Success(c))
		}
		for _, k := range met[i] {
			if perfect.Conflict(c, k) == 1 {
				broken++
			}
			if flat.Conflict(c, k) != 0.3 {
				t.Fatalf("%s with %s: %v", c.ID, k.ID, flat.Conflict(c, k))
			}
		}
	}
	if broken == 0 {
		t.Error("no pair truly conflicts; the test shows nothing")
	}
	if _, err := New("prophetic", 1, p.Start); err == nil {
		t.Error("a predictor that there is not was made")
	}
}
