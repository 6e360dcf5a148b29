package eta

import (
	"slices"

	"landfall.build/services/memberset"
)

// shareSlots plays who gets a slot when: what runs holds its slot until it is over, and what waits takes the next that
// becomes free, in the order in which it is ranked.
func (x *sampler) shareSlots() {
	for _, w := range x.q.Waiting {
		x.of[w.Of] = append(x.of[w.Of], w)
	}
	running := 0
	for i := range x.q.Changes {
		running += len(x.q.Changes[i].Builds)
	}
	x.slot = make([][]float64, len(x.q.Changes))
	slots := max(1, x.q.Slots)
	if running+len(x.q.Waiting) <= slots {
		return // nobody waits for a slot
	}
	runs, waits := make([]held, 0, running), make([]held, 0, len(x.q.Waiting))
	for i := range x.q.Changes {
		for k, b := range x.q.Changes[i].Builds {
			runs = append(runs, held{i, x.left(i, k), x.comes(i, b.Lands)})
		}
	}
	for _, w := range x.q.Waiting {
		if x.slot[w.Of] == nil {
			x.slot[w.Of] = make([]float64, x.plays)
		}
		waits = append(waits, held{w.Of, x.takes[w.Of], x.comes(w.Of, w.Lands)})
	}
	var ends []float64
	first := make([]bool, len(x.q.Changes))
	for s := range x.plays {
		ends = ends[:0]
		for _, b := range runs {
			ends = append(ends, b.goesOn[s]*b.part(s))
		}
		if len(ends) > slots {
			// More run than there are slots, where the budget was lowered: those that end first leave none.
			slices.Sort(ends)
			ends = append(ends[:0], ends[len(ends)-slots:]...)
		}
		for len(ends) < slots {
			ends = append(ends, 0)
		}
		free := minHeap(ends)
		for i := len(free)/2 - 1; i >= 0; i-- {
			free.sink(i, free[i])
		}
		clear(first)
		for _, b := range waits {
			at := free[0]
			if !first[b.of] {
				first[b.of], x.slot[b.of][s] = true, at
			}
			free.sink(0, at+b.goesOn[s]*b.part(s))
		}
	}
}

// held is a slot that a build has, or is to have.
type held struct {
	of     int
	goesOn []float64 // by play
	comes  []uint64  // a bit for each play in which its path comes about
}

// part of its time for which a build holds its slot: one whose path does not come about is ended when the first of
// its members turns out otherwise. When that is, is not played: half way, as a guess.
func (h *held) part(s int) float64 {
	if h.comes[s/64]&(1<<(s%64)) != 0 {
		return 1
	}
	return 0.5
}

// comes says in which plays a path comes about.
func (x *sampler) comes(i int, lands memberset.Set) []uint64 {
	comes := make([]uint64, x.plays/64)
	for w := range comes {
		comes[w] = ^uint64(0)
		for j, a := range x.q.Changes[i].Ahead {
			switch {
			case a.At < 0:
			case lands.Has(j):
				comes[w] &= x.lands[a.At][w]
			default:
				comes[w] &^= x.lands[a.At][w]
			}
		}
	}
	return comes
}

// left is how long a build that runs goes on, by play.
func (x *sampler) left(i, k int) []float64 {
	c := &x.q.Changes[i]
	if x.lefts[i] == nil {
		x.lefts[i] = make([][]float64, len(c.Builds))
	}
	if x.lefts[i][k] == nil {
		left, d := make([]float64, x.plays), durations{c.Duration, x.plays}
		for s, p := range x.place[i] {
			if left[s] = d.at(int(p), c.Builds[k].Elapsed); !x.landsIn(i, s) {
				left[s] += float64(x.q.Retries) * c.Duration.Mean
			}
		}
		x.lefts[i][k] = left
	}
	return x.lefts[i][k]
}

// minHeap has the least first.
type minHeap []float64

// sink puts a value where it belongs, from place i down.
func (h minHeap) sink(i int, value float64) {
	for {
		down := 2*i + 1
		if down >= len(h) {
			break
		}
		if down+1 < len(h) && h[down+1] < h[down] {
			down++
		}
		if h[down] >= value {
			break
		}
		h[i] = h[down]
		i = down
	}
	h[i] = value
}
