package ngboost

import (
	"math"
	"testing"
)

func TestQuantilesInvertBelow(t *testing.T) {
	for _, p := range []Prediction{{Normal, 3, 2}, {LogNormal, 1, 0.7}} {
		for _, share := range []float64{1e-9, 0.01, 0.3, 0.5, 0.95, 1 - 1e-9} {
			if got := p.Below(p.Quantile(share)); math.Abs(got-share) > 1e-9*share+1e-15 {
				t.Errorf("%v: below its %g quantile lies %g", p, share, got)
			}
		}
		if p.Quantile(0.5) != p.Median() {
			t.Errorf("%v: median %g, quantile %g", p, p.Median(), p.Quantile(0.5))
		}
	}
}

// Integrates over quantiles of equal probability.
func TestMomentsAreThoseOfTheDistribution(t *testing.T) {
	const steps = 200_000
	for _, p := range []Prediction{{Normal, 3, 2}, {LogNormal, 1, 0.4}} {
		var mean, squares float64
		for k := range steps {
			y := p.Quantile((float64(k) + 0.5) / steps)
			mean += y / steps
			squares += y * y / steps
		}
		if math.Abs(mean-p.Mean()) > 1e-3 || math.Abs(math.Sqrt(squares-mean*mean)-p.StandardDeviation()) > 2e-3 {
			t.Errorf("%v: mean %g and deviation %g, integrals %g and %g", p, p.Mean(), p.StandardDeviation(), mean, math.Sqrt(squares-mean*mean))
		}
	}
}

func TestRelativePointHasTheSmallestRelativeError(t *testing.T) {
	p := Prediction{LogNormal, 1, 0.6}
	cost := func(guess float64) (sum float64) {
		for k := range 20_000 {
			y := p.Quantile((float64(k) + 0.5) / 20_000)
			sum += math.Abs(guess-y) / y
		}
		return sum
	}
	best := p.RelativePoint()
	if at := cost(best); at > cost(best*1.02) || at > cost(best/1.02) {
		t.Errorf("moving the guess %g lowers the relative error", best)
	}
}

func TestNLLIsTheDensityOfBelow(t *testing.T) {
	const h = 1e-5
	for _, p := range []Prediction{{Normal, 3, 2}, {LogNormal, 1, 0.7}} {
		for _, y := range []float64{0.5, 2, 7} {
			density := (p.Below(y+h) - p.Below(y-h)) / (2 * h)
			if math.Abs(math.Exp(-p.NLL(y))/density-1) > 1e-5 {
				t.Errorf("%v at %g: density %g, difference gives %g", p, y, math.Exp(-p.NLL(y)), density)
			}
		}
	}
	if nll := (Prediction{LogNormal, 1, 1}).NLL(-1); !math.IsInf(nll, 1) {
		t.Errorf("a negative time has NLL %g", nll)
	}
}
