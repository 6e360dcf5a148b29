package ngboost

import (
	"slices"
	"sort"
)

// missingBin is the code of a missing value, whatever the number of bins.
const missingBin = 255

// binned holds the table with every value replaced by the number of its bin.
type binned struct {
	columns columns
	codes   [][]uint8
	// spans has, by feature and bin, the smallest and largest value in it.
	spans [][]span
}

type span struct{ low, high float32 }

// bin puts each feature into at most bins−1 bins. With no more distinct values
// than that, each has its own bin, and trees are those of Exact; otherwise bins
// hold about equally many rows.
func bin(c columns, bins int) binned {
	table := binned{columns: c, codes: make([][]uint8, len(c.values)), spans: make([][]span, len(c.values))}
	sorted := make([]float32, 0, c.count)
	cells := make([]uint8, c.count*len(c.values))
	for f, values := range c.values {
		sorted = sorted[:0]
		for _, v := range values {
			if v == v {
				sorted = append(sorted, v)
			}
		}
		slices.Sort(sorted)
		spans := cut(sorted, bins-1)
		codes := cells[f*c.count : (f+1)*c.count]
		for i, v := range values {
			codes[i] = binOf(v, spans)
		}
		table.codes[f], table.spans[f] = codes, spans
	}
	return table
}

func binOf(v float32, spans []span) uint8 {
	if v != v {
		return missingBin
	}
	return uint8(sort.Search(len(spans)-1, func(b int) bool { return v <= spans[b].high }))
}

// cut parts the sorted values into at most most bins, never between values
// that are too close to be split. Without values it gives one empty bin.
func cut(sorted []float32, most int) []span {
	if len(sorted) == 0 {
		return make([]span, 1)
	}
	distinct := cutEvery(sorted, most, 1)
	if distinct[len(distinct)-1].high == sorted[len(sorted)-1] {
		return distinct
	}
	return cutEvery(sorted, most, 0)
}

// cutEvery cuts after rows rows, or at the next possible place; with rows zero,
// the rows left are shared out among the bins left, so that a value with many
// rows takes from no other bin. It gives up after most bins, except that with
// rows zero the last bin holds all the rest.
func cutEvery(sorted []float32, most, rows int) []span {
	spans := make([]span, 0, most)
	for start := 0; start < len(sorted) && len(spans) < most; {
		end := start + rows
		if rows == 0 {
			end = start + max(1, (len(sorted)-start)/(most-len(spans)))
		}
		for end < len(sorted) && !(sorted[end] > sorted[end-1]+narrowest) {
			end++
		}
		spans = append(spans, span{low: sorted[start], high: sorted[end-1]})
		start = end
	}
	return spans
}
