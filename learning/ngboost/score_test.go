package ngboost

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"landfall.build/events/seedtest"
)

func TestGradientsAreTheDifferencesOfTheLoss(t *testing.T) {
	seed := seedtest.Or(t, 11)
	random := rand.New(rand.NewPCG(seed, 0))
	for _, rule := range []score{normalLog{}, logNormalLog{}, crps{}} {
		for _, censored := range []bool{false, true} {
			if _, normal := rule.(normalLog); normal && censored {
				continue
			}
			t.Run(fmt.Sprintf("%T censored %v", rule, censored), func(t *testing.T) {
				for range 2000 {
					mu, s := random.NormFloat64()*2, random.NormFloat64()
					target := mu + math.Exp(s)*3*random.NormFloat64()
					dMu, dS := rule.gradient(mu, s, target, censored)
					const h = 1e-5
					wantMu := (rule.loss(mu+h, s, target, censored) - rule.loss(mu-h, s, target, censored)) / (2 * h)
					wantS := (rule.loss(mu, s+h, target, censored) - rule.loss(mu, s-h, target, censored)) / (2 * h)
					for name, pair := range map[string][2]float64{"mu": {dMu, wantMu}, "s": {dS, wantS}} {
						if math.Abs(pair[0]-pair[1]) > 1e-5*(1+math.Abs(pair[1])) {
							t.Fatalf("seed %d: d/d%s at mu %g, s %g, target %g: %g, difference gives %g", seed, name, mu, s, target, pair[0], pair[1])
						}
					}
				}
			})
		}
	}
}

// The metric is the expectation, under the predicted distribution, of the outer
// product of log-likelihood gradients.
func TestNaturalGradientDividesByTheFisherInformation(t *testing.T) {
	seed := seedtest.Or(t, 12)
	const draws = 400_000
	random := rand.New(rand.NewPCG(seed, 0))
	mu, s := 0.7, -0.4
	var muMu, ss, muS float64
	for range draws {
		dMu, dS := normalLog{}.gradient(mu, s, mu+math.Exp(s)*random.NormFloat64(), false)
		muMu += dMu * dMu / draws
		ss += dS * dS / draws
		muS += dMu * dS / draws
	}
	for _, rule := range []score{normalLog{}, logNormalLog{}} {
		dMu, dS := rule.gradient(mu, s, 1.9, false)
		nMu, nS := rule.natural(mu, s, 1.9, false)
		if math.Abs(dMu/nMu/muMu-1) > 0.02 || math.Abs(dS/nS/ss-1) > 0.02 || math.Abs(muS) > 0.05 {
			t.Errorf("%T: metric %g and %g, sampled %g, %g and off the diagonal %g", rule, dMu/nMu, dS/nS, muMu, ss, muS)
		}
	}
}

// The integral of (F(x) − 1{x ≥ t})² over all x, or up to the cut for a
// censored row, by the trapezoid rule.
func TestCRPSIsTheIntegralOfSquaredDifference(t *testing.T) {
	for _, z := range []float64{-2.5, -0.3, 0, 1.1, 3} {
		for _, censored := range []bool{false, true} {
			mu, s := 0.4, 0.3
			target := mu + z*math.Exp(s)
			var integral float64
			const h = 1e-4
			low, high := mu-12*math.Exp(s), mu+12*math.Exp(s)
			if censored {
				high = target
			}
			for x := low + h/2; x < high; x += h {
				f := cumulative((x - mu) / math.Exp(s))
				if x >= target {
					f = 1 - f
				}
				integral += f * f * h
			}
			if got := (crps{}).loss(mu, s, target, censored); math.Abs(got-integral) > 1e-4 {
				t.Errorf("z %g, censored %v: %g, integral %g", z, censored, got, integral)
			}
		}
	}
}

func TestLineSearchEndsOnHopelessLosses(t *testing.T) {
	losses := map[string]func(float64) float64{
		"never lower":      func(float64) float64 { return 1 },
		"always NaN":       func(float64) float64 { return math.NaN() },
		"infinite":         func(float64) float64 { return math.Inf(1) },
		"always lower":     func(scale float64) float64 { return -scale },
		"lower below 1e-3": func(scale float64) float64 { return scale - 1e-3 },
	}
	for name, loss := range losses {
		for _, tolerance := range []float64{0, 1e-4} {
			if scale := searchStep(0, 1, tolerance, loss); !(scale > 0) || scale > 512 {
				t.Errorf("%s, tolerance %g: step %g", name, tolerance, scale)
			}
		}
	}
	if got := searchStep(0, 1, 1e-4, losses["lower below 1e-3"]); got != 1.0/1024 {
		t.Errorf("step %g, the largest power of two below 1e-3 is 1/1024", got)
	}
}
