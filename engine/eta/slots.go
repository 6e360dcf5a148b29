package eta

import (
	"slices"

	"landfall.build/engine/memberset"
)

// assignSlots simulates who gets a slot when: a running build holds its slot until it ends, and waiting builds take the
// next one that becomes free, in the order of the ranking.
func (x *sampler) assignSlots() {
	for _, w := range x.q.Waiting {
		x.waiting[w.Of] = append(x.waiting[w.Of], w)
	}
	running := 0
	for i := range x.q.Changes {
		running += len(x.q.Changes[i].Builds)
	}
	x.slotFree = make([][]float64, len(x.q.Changes))
	slots := max(1, x.q.Slots)
	if running+len(x.q.Waiting) <= slots {
		return // every build has a slot
	}
	runs, waits := make([]slotUse, 0, running), make([]slotUse, 0, len(x.q.Waiting))
	for i := range x.q.Changes {
		for k, b := range x.q.Changes[i].Builds {
			runs = append(runs, slotUse{i, x.remainingOf(i, k), x.comesAbout(i, b.Lands)})
		}
	}
	for _, w := range x.q.Waiting {
		if x.slotFree[w.Of] == nil {
			x.slotFree[w.Of] = make([]float64, x.samples)
		}
		waits = append(waits, slotUse{w.Of, x.durations[w.Of], x.comesAbout(w.Of, w.Lands)})
	}
	var ends []float64
	first := make([]bool, len(x.q.Changes))
	for s := range x.samples {
		ends = ends[:0]
		for _, b := range runs {
			ends = append(ends, b.duration[s]*heldPart(b.comes, s))
		}
		if len(ends) > slots {
			// More builds run than there are slots, after the budget was lowered: those that end first leave none.
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
				first[b.of], x.slotFree[b.of][s] = true, at
			}
			free.sink(0, at+b.duration[s]*heldPart(b.comes, s))
		}
	}
}

// slotUse is the use of a slot by a build.
type slotUse struct {
	of       int
	duration []float64 // by sample
	comes    []uint64  // a bit for each sample in which its path comes about
}

// heldPart returns the part of a build's duration for which it holds its slot in a sample. comes has a bit for each sample in which its
// path comes about. In the others the build is aborted, and the simulation takes that to happen half way.
func heldPart(comes []uint64, s int) float64 {
	if comes[s/64]&(1<<(s%64)) != 0 {
		return 1
	}
	return 0.5
}

// comesAbout returns the samples in which a path comes about, a bit for each.
func (x *sampler) comesAbout(i int, lands memberset.Set) []uint64 {
	comes := make([]uint64, x.samples/64)
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

// remainingOf returns how long a running build goes on, by sample.
func (x *sampler) remainingOf(i, k int) []float64 {
	c := &x.q.Changes[i]
	if x.remaining[i] == nil {
		x.remaining[i] = make([][]float64, len(c.Builds))
	}
	if x.remaining[i][k] == nil {
		left, d := make([]float64, x.samples), distribution{of: c.Duration, samples: x.samples}
		for s, p := range x.part[i] {
			if left[s] = d.at(int(p), c.Builds[k].Elapsed); !x.landsIn(i, s) {
				left[s] += float64(x.q.Retries) * c.Duration.Mean
			}
		}
		x.remaining[i][k] = left
	}
	return x.remaining[i][k]
}

// minHeap is a heap with the least on top.
type minHeap []float64

// sink moves a value from place i down to its place.
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
