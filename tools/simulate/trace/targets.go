package trace

import "math"

// bundles are how many targets a change has of each bundle that it affects: ten in all. Each bundle is drawn for itself,
// and two changes meet in the bundles that both affect: in one to three targets, or in more where they share two
// bundles, which at 5 % potential conflicts two in a hundred of those that meet do. Meeting in a target is a matter of the
// target, so three that affect one all meet: no target graph could yield pairs that are drawn one by one.
var bundles = [...]int{1, 2, 3, 1, 3}

// shares draws bundles such that two changes share one as often as they are to be in potential conflict.
type shares struct {
	// each bundle is one of so many; the last one is drawn with probability last, the others are equally likely.
	of   int
	last float64
	// alone: nobody shares anything.
	alone bool
}

// newShares finds the number of bundles. If two draw the same one of a kind with probability s, they share none of the five
// kinds with (1−s)^5.
func newShares(potential float64) *shares {
	s := 1 - math.Pow(1-potential, 1/float64(len(bundles)))
	if s <= 0 {
		return &shares{alone: true}
	}
	// One of n is rarer, so that last² + (1−last)²/(n−1) = s.
	n := math.Ceil(1/s - 1e-9)
	return &shares{of: int(n), last: (1 - math.Sqrt(max(0, (n-1)*(s*n-1)))) / n}
}

// targets are those of the n-th change of a trace: bundle after bundle.
func (s *shares) targets(seed uint64, n int) (list []int) {
	for kind, size := range bundles {
		number := n
		if !s.alone {
			number = s.draw(Draw(seed, streamBundle+kind, n, 0))
		}
		for i := range size {
			list = append(list, (number*len(bundles)+kind)*len(bundles)+i)
		}
	}
	return list
}

func (s *shares) draw(u float64) int {
	if u < s.last || s.of == 1 {
		return s.of - 1
	}
	return min(int((u-s.last)/(1-s.last)*float64(s.of-1)), s.of-2)
}

// share reports whether two changes have a target in common: a bundle of the same place.
func share(a, b *Change) bool {
	at := 0
	for _, size := range bundles {
		if a.Targets[at] == b.Targets[at] {
			return true
		}
		at += size
	}
	return false
}

// breaksAt is the target in which two that truly conflict do so: one of those that they share.
func breaksAt(seed uint64, ahead, behind *Change) int {
	var common []int
	for i, t := range behind.Targets {
		if ahead.Targets[i] == t {
			common = append(common, t)
		}
	}
	return common[int(Draw(seed, streamBreaksAt, ahead.Number, behind.Number)*float64(len(common)))]
}
