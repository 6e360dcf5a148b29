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
	// most bounds the deviation that lateness shows, unless it is 0.
	most float64
}

// at returns the p-th of the remaining durations of a build that has run for some time and goes on (M12): a quantile of the normal
// truncated there. What has outrun its prediction by two deviations shows that these were too small: from there on the deviation grows
// with how late it is, so that a build is expected to take longer the later it is.
func (d distribution) at(p int, elapsed float64) float64 {
	late := elapsed - d.of.Mean
	if d.of.Std == 0 {
		return math.Max(0, -late)
	}
	shown := late - d.of.Std
	if d.most > 0 {
		shown = math.Min(shown, d.most)
	}
	std := math.Max(d.of.Std, shown)
	beyond := 0.5 * math.Erfc(late/std/math.Sqrt2) // of all durations
	u := (float64(p) + 0.5) / float64(d.samples)
	return math.Max(0, std*deviationOf((1-u)*beyond)-late)
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
