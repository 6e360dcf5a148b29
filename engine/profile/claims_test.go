package profile

import (
	"math"
	"testing"

	"landfall.build/events/seedtest"
)

// density of a normal distribution.
func (d Duration) density(x float64) float64 {
	z := (x - d.Mean) / d.Std
	return math.Exp(-z*z/2) / (d.Std * math.Sqrt(2*math.Pi))
}

// integral is Simpson's rule over n pairs of intervals.
func integral(from, to float64, n int, f func(x float64) float64) float64 {
	h := (to - from) / float64(2*n)
	sum := f(from) + f(to)
	for i := 1; i < 2*n; i++ {
		sum += f(from+float64(i)*h) * float64(2+2*(i%2))
	}
	return sum * h / 3
}

// TestM11TheThreeWorkedCasesOfThePaper of 2025: arrivals and means in minutes, deviations of 5.
func TestM11TheThreeWorkedCasesOfThePaper(t *testing.T) {
	for _, x := range []struct {
		what                     string
		ti, meanI, tj, meanJ     float64
		secondFirst, upToDecimal float64
	}{
		{"close arrivals, close durations", 0, 60, 5, 55, 0.50, 1e-12},
		{"arrivals far apart", 0, 60, 480, 60, 0, 1e-12},
		{"close arrivals, durations far apart", 0, 60, 1, 39, 0.9977, 0.00005},
	} {
		first, second := Duration{x.meanI, 5}, Duration{x.meanJ, 5}
		if f := FinishesBefore(x.tj, second, x.ti, first); math.Abs(f-x.secondFirst) > x.upToDecimal {
			t.Errorf("%s: the second finishes first with %.6f, want %v", x.what, f, x.secondFirst)
		}
	}
}

// TestM11IsTheProbabilityThatOneNormalIsBelowAnother, integrated over both densities.
func TestM11IsTheProbabilityThatOneNormalIsBelowAnother(t *testing.T) {
	r := seedtest.Random(t)
	for range 50 {
		ti, tj := 100*r.Float64(), 100*r.Float64()
		i, j := Duration{100 * r.Float64(), 1 + 30*r.Float64()}, Duration{100 * r.Float64(), 1 + 30*r.Float64()}
		// Where i ends at x, the probability that j ends later is what is left of j's density; both running
		// sums go over the same steps.
		a, b := Duration{ti + i.Mean, i.Std}, Duration{tj + j.Mean, j.Std}
		from, to := min(a.Mean-9*a.Std, b.Mean-9*b.Std), max(a.Mean+9*a.Std, b.Mean+9*b.Std)
		const steps = 20_000
		h, below, want := (to-from)/steps, 0.0, 0.0
		for s := range steps {
			x := from + (float64(s)+0.5)*h
			mass := b.density(x) * h
			want += a.density(x) * h * (1 - below - mass/2)
			below += mass
		}
		got := FinishesBefore(ti, i, tj, j)
		if math.Abs(got-want) > 1e-6 {
			t.Fatalf("%v at %g before %v at %g: %.9f, want %.9f", i, ti, j, tj, got, want)
		}
		if sum := got + FinishesBefore(tj, j, ti, i); math.Abs(sum-1) > 1e-12 {
			t.Fatalf("one of the two finishes first with %g", sum)
		}
	}
	for _, x := range []struct{ mean, want float64 }{{9, 1}, {10, 0.5}, {11, 0}} {
		if f := FinishesBefore(0, Duration{Mean: x.mean}, 0, Duration{Mean: 10}); f != x.want {
			t.Errorf("without deviations, %g before 10 is %g", x.mean, f)
		}
	}
}

// TestM12IsTheTruncatedNormalUpToTenDeviations, integrated over what is left of the density.
func TestM12IsTheTruncatedNormalUpToTenDeviations(t *testing.T) {
	d := Duration{Mean: 1800, Std: 300}
	for a := -6.0; a < 10; a += 0.5 {
		e := d.Mean + a*d.Std
		// The density relative to that at e, so that nothing vanishes; the tail is gone after a few 1/a.
		tail := func(x float64) float64 {
			z := (x - d.Mean) / d.Std
			return math.Exp((a*a - z*z) / 2)
		}
		if a < 0 {
			tail = d.density
		}
		to := d.Mean + 12*d.Std
		if a > 0 {
			to = e + 12*d.Std/max(1, a/2)
		}
		mass := integral(e, to, 2_000, tail)
		mean := integral(e, to, 2_000, func(x float64) float64 { return x * tail(x) }) / mass
		variance := integral(e, to, 2_000, func(x float64) float64 { return (x - mean) * (x - mean) * tail(x) }) / mass
		got := d.Beyond(e)
		if math.Abs(got.Mean/mean-1) > 1e-7 || math.Abs(got.Std*got.Std/variance-1) > 1e-6 {
			t.Errorf("beyond %g deviations: %+v, want a mean of %g and a deviation of %g", a, got, mean, math.Sqrt(variance))
		}
	}
}

// TestM12TheEstimateNeverStandsStillNorLiesBehind, however late a build is.
func TestM12TheEstimateNeverStandsStillNorLiesBehind(t *testing.T) {
	for _, d := range []Duration{{1800, 300}, {60, 1}, {5, 40}, {60, 0}} {
		before := d.Beyond(0)
		for e := 1.0; e < 20_000; e++ {
			now := d.Beyond(e)
			switch {
			case !(now.Mean >= e) || !(now.Std >= 0):
				t.Fatalf("%v beyond %g is %v", d, e, now)
			case d.Std > 0 && e > d.Mean && !(now.Mean > before.Mean), now.Mean < before.Mean-1e-9:
				t.Fatalf("%v: from %g to %g the estimate goes from %v to %v", d, e-1, e, before, now)
			}
			before = now
		}
	}
}
