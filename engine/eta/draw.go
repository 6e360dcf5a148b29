package eta

import (
	"math"

	"landfall.build/engine/profile"
)

// splitmix is the generator splitmix64: what it draws depends on the seed alone.
type splitmix struct{ state uint64 }

func (d *splitmix) next() uint64 {
	d.state += 0x9e3779b97f4a7c15
	z := d.state
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

func (d *splitmix) uniform() float64 { return float64(d.next()>>11) / (1 << 53) }

// spread fills a list with the numbers from 0 on, in a random order. Sample s takes the s-th part of a distribution, so
// that all samples together take each part once: a few samples tell as much as many independent ones.
func (d *splitmix) spread(list []uint16) {
	for i := range list {
		j := int(d.next() % uint64(i+1))
		list[i], list[j] = list[j], uint16(i)
	}
}

// distribution is one of durations, as equally likely values, one for each sample.
type distribution struct {
	of      profile.Duration
	samples int
}

// at returns the p-th of the remaining durations of a build that has run for some time and goes on (M12): a quantile of
// the normal truncated there.
func (d distribution) at(p int, elapsed float64) float64 {
	u := (float64(p) + 0.5) / float64(d.samples)
	if d.of.Std == 0 {
		return math.Max(0, d.of.Mean-elapsed)
	}
	a := (elapsed - d.of.Mean) / d.of.Std
	if a > farOut {
		// The tail of a normal is nearly exponential there, with the mean that Beyond expects.
		return (d.of.Beyond(elapsed).Mean - elapsed) * -math.Log1p(-u)
	}
	beyond := 0.5 * math.Erfc(a/math.Sqrt2) // of all durations
	return math.Max(0, d.of.Mean+d.of.Std*deviationOf((1-u)*beyond)-elapsed)
}

// deviation returns the p-th of as many equally likely values of a standard normal.
func (d distribution) deviation(p int) float64 {
	return deviationOf(1 - (float64(p)+0.5)/float64(d.samples))
}

// deviationsOf holds the deviations of a normal, each part once, by the number of samples.
var deviationsOf = func() map[int][]float64 {
	of := map[int][]float64{}
	for _, samples := range []int{64, 128, 256} { // those of samplesFor
		for p := range samples {
			of[samples] = append(of[samples], distribution{samples: samples}.deviation(p))
		}
	}
	return of
}()

// deviationOf returns what a standard normal exceeds with that probability.
func deviationOf(beyond float64) float64 { return math.Sqrt2 * math.Erfcinv(2*beyond) }

// farOut is how many deviations beyond the mean the truncated normal is taken to be an exponential.
const farOut = 6
