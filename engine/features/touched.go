package features

import (
	"math"
	"slices"
)

// eachFile calls f for those of the change's files that the history knows.
func (x *changeQuery) eachFile(f func(*file)) {
	if x.a == nil {
		return
	}
	for _, path := range x.a.files[:min(len(x.a.files), maxTouched)] {
		if known := x.h.files.Peek(path); known != nil {
			f(known)
		}
	}
}

// fileRates returns the largest, the mean and the sum of the failure rates of those of the change's files that are known.
func (x *changeQuery) fileRates() (largest, average, sum float64) {
	n := 0.0
	largest = missing
	overall := x.h.overall()
	x.eachFile(func(f *file) {
		r := f.rate(overall)
		n++
		sum += r
		if !(largest >= r) {
			largest = r
		}
	})
	if n == 0 {
		return missing, missing, missing
	}
	return largest, sum / n, sum
}

// fileChanges counts the changes of the change's files in the last 90 days.
func fileChanges(x *changeQuery) float64 {
	n, any := 0.0, false
	x.eachFile(func(f *file) {
		any = true
		n += x.h.countWithin(&f.changes, quarter)
	})
	return knownIf(any, n)
}

// fileAge is the time since the last change of one of the change's files.
func fileAge(x *changeQuery) float64 {
	age := missing
	x.eachFile(func(f *file) {
		if s := seconds(x.h.now - f.lastChanged); !(age <= s) {
			age = s
		}
	})
	return age
}

// ownedShare is the share of the known files whose last change was by the same author.
func ownedShare(x *changeQuery) float64 {
	if x.c.admission.Author == "" {
		return missing
	}
	n, own := 0.0, 0.0
	x.eachFile(func(f *file) {
		n++
		own += indicator(f.lastAuthor == x.c.admission.Author)
	})
	return own / n
}

// eachTarget calls f for those of the change's targets that the history knows.
func (x *changeQuery) eachTarget(f func(*target)) {
	if x.a == nil {
		return
	}
	for _, t := range x.a.targets[:min(len(x.a.targets), maxTouched)] {
		if known := x.h.targets.Peek(t); known != nil {
			f(known)
		}
	}
}

// noisyOr is the probability that one of the targets fails, if each fails independently at its own rate.
func (x *changeQuery) noisyOr(of func(*target) *tally) float64 {
	none, any := 1.0, false
	overall := x.h.overall()
	x.eachTarget(func(t *target) {
		if r := of(t).rate(overall); !math.IsNaN(r) {
			none, any = none*(1-r), true
		}
	})
	return knownIf(any, 1-none)
}

// targetFlakes counts the flakes of the change's targets.
func targetFlakes(x *changeQuery) float64 {
	n, any := 0.0, false
	x.eachTarget(func(t *target) {
		if t.runs.n > 0 {
			n, any = n+t.flakes, true
		}
	})
	return knownIf(any, n)
}

// sortedSum returns the sum of f over the values, in ascending order. It sorts the values.
func sortedSum(values []float64, f func(float64) float64) float64 {
	slices.Sort(values)
	sum := 0.0
	for _, x := range values {
		sum += f(x)
	}
	return sum
}
