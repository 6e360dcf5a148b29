// Package bypass is the profiler's core: what is expected of a change – whether it passes (p), whom it
// breaks with (r), how long it takes – and, from the latter, which changes another one would finish
// before (MODEL sections 3 and 4). Predictions choose what is built first; nothing that lands or is
// rejected rests on them.
package bypass

import "math"

// Duration is a predicted duration: Normal(Mean, Std²), in seconds.
type Duration struct{ Mean, Std float64 }

// FinishesBefore is F(i,j) of M11: the probability that i, started at ti, finishes before j, started at
// tj. Times are seconds on one clock.
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
	return phiCumulative(d / s)
}

// FinishesBehind says that i likely finishes behind j: that F(i,j) is below a half, and not for rounding alone.
func FinishesBehind(ti float64, i Duration, tj float64, j Duration) bool {
	return (tj+j.Mean)-(ti+i.Mean) < -1e-9*(i.Std+j.Std)
}

// Beyond is the duration of something that has run for e seconds and goes on: the normal truncated at e
// (M12). Its mean is never below e, and it moves on as e does.
func (d Duration) Beyond(e float64) Duration {
	if d.Std == 0 {
		return Duration{Mean: math.Max(d.Mean, e)}
	}
	a := (e - d.Mean) / d.Std
	h := hazard(a)
	variance := d.Std * d.Std * (1 + a*h - h*h)
	if a > farOut {
		// There the three terms nearly cancel; this is what is left of them.
		variance = d.Std * d.Std / (a * a) * (1 - 6/(a*a) + 50/(a*a*a*a))
	}
	return Duration{Mean: math.Max(e, d.Mean+d.Std*h), Std: math.Sqrt(math.Max(0, variance))}
}

func phiCumulative(x float64) float64 { return 0.5 * math.Erfc(-x/math.Sqrt2) }

// farOut is how many deviations beyond the mean the asymptotic series take over.
const farOut = 10

// hazard is φ(a)/(1−Φ(a)). Beyond farOut the quotient of two vanishing numbers is replaced by its asymptotic
// series, which is exact to 1e-6 there.
func hazard(a float64) float64 {
	if a > farOut {
		return a + 1/a - 2/(a*a*a)
	}
	return math.Exp(-a*a/2) / math.Sqrt(2*math.Pi) / (0.5 * math.Erfc(a/math.Sqrt2))
}
