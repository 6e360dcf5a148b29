package ranking

import "landfall.build/services/memberset"

// none is the path of a change that has nothing ahead.
var none = memberset.New(0)

// partial is a path whose members before depth are decided.
type partial struct {
	c       *change
	set     memberset.Set
	depth   int
	rejects int
	needed  float64
	// value is benefit · needed; bound is the most that a path which begins like this can be worth.
	value, bound float64
}

func (p *partial) complete() bool { return p.depth == len(p.c.members) }

// frontier is a heap of partial paths by their bound, and of complete ones as M17 says: theirs is their
// value. Of equal bound, partial ones come first: one of them may still complete to something that M17
// puts before the complete one.
type frontier []partial

func (f frontier) before(x, y int) bool {
	a, b := &f[x], &f[y]
	if a.bound != b.bound {
		return a.bound > b.bound
	}
	if a.complete() != b.complete() {
		return !a.complete()
	}
	if a.c.place != b.c.place {
		return a.c.place < b.c.place
	}
	if a.rejects != b.rejects {
		return a.rejects < b.rejects
	}
	for j := range min(a.depth, b.depth) {
		if a.set.Has(j) != b.set.Has(j) {
			return a.set.Has(j)
		}
	}
	return a.depth > b.depth
}

func (f *frontier) push(p partial) {
	h := append(*f, p)
	for i := len(h) - 1; i > 0; {
		up := (i - 1) / 2
		if !h.before(i, up) {
			break
		}
		h[i], h[up] = h[up], h[i]
		i = up
	}
	*f = h
}

func (f *frontier) pop() partial {
	h := *f
	top, last := h[0], len(h)-1
	h[0] = h[last]
	h[last] = partial{}
	h = h[:last]
	for i := 0; ; {
		first := i
		for _, down := range [2]int{2*i + 1, 2*i + 2} {
			if down < last && h.before(down, first) {
				first = down
			}
		}
		if first == i {
			break
		}
		h[i], h[first] = h[first], h[i]
		i = first
	}
	*f = h
	return top
}
