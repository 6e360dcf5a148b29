package ngboost

import "slices"

// refine looks for the best midpoint among the rows of the two bins on either
// side of a split, so that the threshold is that of Exact wherever the best
// border is: bins then only cost something where they hide a better one.
// It returns the split with its threshold.
func (g *histogramGrower) refine(best split, rows []int32, total share, histogram []cell) split {
	f := best.feature
	spans := g.table.spans[f]
	cells := histogram[g.offsets[f] : g.offsets[f]+len(spans)+1]
	next := best.bin + 1
	for next < len(spans) && cells[next].rows == 0 {
		next++
	}
	if next >= len(spans) {
		best.threshold = noSplit.threshold // present values left, missing ones right
		return best
	}
	best.threshold = midpoint(spans[best.bin].high, spans[next].low)
	if single(spans[best.bin]) && single(spans[next]) {
		return best
	}

	near := g.near(f, best.bin, next, rows)
	missing := cells[len(spans)]
	left := best.left // less the rows of its last bin
	left.sum -= cells[best.bin].sum
	left.rows -= int(cells[best.bin].rows)
	values := g.table.columns.values[f]
	missingLeft, worth := best.missingLeft, best.worth
	best.found = false
	for k, i := range near[:len(near)-1] {
		left.sum += g.target[i]
		left.rows++
		value, after := values[i], values[near[k+1]]
		if after <= value+narrowest {
			continue
		}
		right := share{sum: total.sum - left.sum, rows: total.rows - left.rows}
		if missing.rows == 0 {
			missingLeft = left.rows > right.rows
		}
		if bin := best.bin; best.offer(f, left, right, missingLeft, g.minLeaf) {
			best.bin, best.threshold = bin, midpoint(value, after)
		}
	}
	// Bins lose digits by subtraction; the border they offered stays in any case.
	best.found, best.worth = true, max(best.worth, worth)
	return best
}

func single(s span) bool { return s.high <= s.low+narrowest }

// near returns the rows of two bins by ascending value; spill holds them.
func (g *histogramGrower) near(f int32, low, high int, rows []int32) []int32 {
	codes, values := g.table.codes[f], g.table.columns.values[f]
	near := g.spill[:0]
	for _, i := range rows {
		if code := int(codes[i]); code == low || code == high {
			near = append(near, i)
		}
	}
	slices.SortStableFunc(near, func(a, b int32) int { return compareMissingLast(values[a], values[b]) })
	return near
}
