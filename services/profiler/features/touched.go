package features

import (
	"math"
	"slices"
)

// eachFile calls f for the files of a change of which something is known.
func (x *asked) eachFile(f func(*file)) {
	if x.a == nil {
		return
	}
	for _, path := range x.a.files[:min(len(x.a.files), maxTouched)] {
		if known := x.h.files.Look(path); known != nil {
			f(known)
		}
	}
}

// fileRates are the largest, mean and sum of the failure rates of the change's files, as far as they are known.
func (x *asked) fileRates() (most, average, sum float64) {
	n := 0.0
	most = unknown
	overall := x.h.overall()
	x.eachFile(func(f *file) {
		r := f.rate(overall)
		n++
		sum += r
		if !(most >= r) {
			most = r
		}
	})
	if n == 0 {
		return unknown, unknown, unknown
	}
	return most, sum / n, sum
}

func recentChanges(x *asked) float64 {
	n, any := 0.0, false
	x.eachFile(func(f *file) {
		any = true
		n += x.h.within(&f.stamps, quarter)
	})
	return known(any, n)
}

// youngest is how long ago one of the change's files was last changed.
func youngest(x *asked) float64 {
	age := unknown
	x.eachFile(func(f *file) {
		if s := seconds(x.h.now - f.last); !(age <= s) {
			age = s
		}
	})
	return age
}

// owned is the share of the files that are known, that the author was the last to change.
func owned(x *asked) float64 {
	if x.c.admission.Author == "" {
		return unknown
	}
	n, own := 0.0, 0.0
	x.eachFile(func(f *file) {
		n++
		own += truth(f.author == x.c.admission.Author)
	})
	return own / n
}

// eachTarget calls f for the targets of a change of which something is known.
func (x *asked) eachTarget(f func(*target)) {
	if x.a == nil {
		return
	}
	for _, t := range x.a.targets[:min(len(x.a.targets), maxTouched)] {
		if known := x.h.targets.Look(t); known != nil {
			f(known)
		}
	}
}

// noisyOr is the probability that one of the targets fails, were each to fail by itself as often as it did.
func (x *asked) noisyOr(of func(*target) *tally) float64 {
	none, any := 1.0, false
	overall := x.h.overall()
	x.eachTarget(func(t *target) {
		if r := of(t).rate(overall); !math.IsNaN(r) {
			none, any = none*(1-r), true
		}
	})
	return known(any, 1-none)
}

func flaky(x *asked) float64 {
	n, any := 0.0, false
	x.eachTarget(func(t *target) {
		if t.steps.n > 0 {
			n, any = n+t.flakes, true
		}
	})
	return known(any, n)
}

// sumOf adds what f makes of values, in an order that is always the same.
func sumOf(values []float64, f func(float64) float64) float64 {
	slices.Sort(values)
	sum := 0.0
	for _, x := range values {
		sum += f(x)
	}
	return sum
}
