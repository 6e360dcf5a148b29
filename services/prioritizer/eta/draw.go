package eta

import (
	"math"

	"landfall.build/services/profiler/bypass"
)

// dice are splitmix64: what is thrown depends on the seed alone.
type dice struct{ state uint64 }

func (d *dice) next() uint64 {
	d.state += 0x9e3779b97f4a7c15
	z := d.state
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

func (d *dice) uniform() float64 { return float64(d.next()>>11) / (1 << 53) }

// spread fills a list with the numbers from 0 on, in a random order: play s takes the s-th part of a distribution, so
// that all plays together have each part once. A few plays then say as much as many that were thrown freely.
func (d *dice) spread(list []uint16) {
	for i := range list {
		j := int(d.next() % uint64(i+1))
		list[i], list[j] = list[j], uint16(i)
	}
}

// durations are as many equally likely durations as there are plays.
type durations struct {
	of    bypass.Duration
	plays int
}

// at is the p-th of them, of a build that has run for some time and goes on (M12): the quantile of the normal
// truncated there. It is what is still to come.
func (d durations) at(p int, elapsed float64) float64 {
	u := (float64(p) + 0.5) / float64(d.plays)
	if d.of.Std == 0 {
		return math.Max(0, d.of.Mean-elapsed)
	}
	a := (elapsed - d.of.Mean) / d.of.Std
	if a > farOut {
		// The tail of a normal is nearly exponential there, with what Beyond expects as its mean.
		return (d.of.Beyond(elapsed).Mean - elapsed) * -math.Log1p(-u)
	}
	beyond := 0.5 * math.Erfc(a/math.Sqrt2) // of all durations
	return math.Max(0, d.of.Mean+d.of.Std*deviationOf((1-u)*beyond)-elapsed)
}

// deviation is the p-th of as many equally likely values of a standard normal.
func (d durations) deviation(p int) float64 {
	return deviationOf(1 - (float64(p)+0.5)/float64(d.plays))
}

// deviationOf is what a standard normal exceeds with that probability.
func deviationOf(beyond float64) float64 { return math.Sqrt2 * math.Erfcinv(2*beyond) }

// farOut is how many deviations beyond the mean the truncated normal is taken for an exponential.
const farOut = 6
