// Package profile predicts: for each pending change the probability that it passes (p) and that it breaks with each change ahead of it
// (r) (M6, M10), how long its builds take, and from that which of two changes finishes first (M11, M12). Predictions choose what is
// built first. What lands and what is rejected rests on evidence alone.
package profile

import "math"

// Duration is a predicted duration: Normal(Mean, Std²), in seconds.
type Duration struct{ Mean, Std float64 }

// FinishesBefore returns F(i,j) of M11: the probability that i, started at ti, finishes before j, started at tj. Times are in seconds.
func FinishesBefore(ti float64, i Duration, tj float64, j Duration) float64 {
	d := (tj + j.Mean) - (ti + i.Mean)
	s := math.Hypot(i.Std, j.Std)
	if s == 0 {
		switch {
		case d > 0:
			return 1
		case d < 0:
			return 0
		}
		return 0.5
	}
	return cumulative(d / s)
}

// FinishesAfter reports whether i is likely to finish after j: F(i,j) is below one half by more than a rounding error.
func FinishesAfter(ti float64, i Duration, tj float64, j Duration) bool {
	return (tj+j.Mean)-(ti+i.Mean) < -1e-9*(i.Std+j.Std)
}

// Beyond returns the duration of something that has run for e seconds and still runs: the normal truncated at e (M12). Its mean is
// never below e.
func (d Duration) Beyond(e float64) Duration {
	if d.Std == 0 {
		return Duration{Mean: math.Max(d.Mean, e)}
	}
	a := (e - d.Mean) / d.Std
	h := hazard(a)
	variance := d.Std * d.Std * (1 + a*h - h*h)
	if a > farOut {
		// There the three terms nearly cancel; this is the asymptotic series of their sum.
		variance = d.Std * d.Std / (a * a) * (1 - 6/(a*a) + 50/(a*a*a*a))
	}
	return Duration{Mean: math.Max(e, d.Mean+d.Std*h), Std: math.Sqrt(math.Max(0, variance))}
}

// cumulative is the distribution function of the standard normal, Φ.
func cumulative(x float64) float64 { return 0.5 * math.Erfc(-x/math.Sqrt2) }

// farOut is the number of deviations beyond which asymptotic series are used.
const farOut = 10

// hazard is φ(a)/(1−Φ(a)). Beyond farOut, where both vanish, it is the asymptotic series, which is exact to 1e-6 there.
func hazard(a float64) float64 {
	if a > farOut {
		return a + 1/a - 2/(a*a*a)
	}
	return math.Exp(-a*a/2) / math.Sqrt(2*math.Pi) / (0.5 * math.Erfc(a/math.Sqrt2))
}
