package stats

import "testing"

var sample = []float64{15, 20, 35, 40, 50}

func TestMean(t *testing.T) {
	if got := Mean(sample); got != 32 {
		t.Errorf("mean %v", got)
	}
}

func TestPercentilesAreElements(t *testing.T) {
	for p, want := range map[float64]float64{0: 15, 5: 15, 30: 20, 40: 20, 50: 35, 100: 50} {
		if got := Percentile(sample, p); got != want {
			t.Errorf("percentile %v is %v, not %v", p, got, want)
		}
	}
}

func TestMedianOfNothingIsZero(t *testing.T) {
	if Median(nil) != 0 {
		t.Error("it is not")
	}
}
