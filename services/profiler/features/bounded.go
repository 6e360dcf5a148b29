package features

import "slices"

// window is the last few of something, oldest first.
type window[T any] struct{ last []T }

// add takes the next, and lets go of what is more than the last most.
func (w *window[T]) add(x T, most int) {
	if len(w.last) >= most {
		w.last = append(w.last[:0], w.last[len(w.last)-most+1:]...)
	}
	w.last = append(w.last, x)
}

// newest are the last n, oldest first.
func (w *window[T]) newest(n int) []T { return w.last[max(0, len(w.last)-n):] }

// quantile of some numbers by interpolation, missing without any.
func quantile(values []float64, q float64) float64 {
	if len(values) == 0 {
		return unknown
	}
	sorted := slices.Sorted(slices.Values(values))
	at := q * float64(len(sorted)-1)
	low := int(at)
	high := min(low+1, len(sorted)-1)
	return sorted[low] + (at-float64(low))*(sorted[high]-sorted[low])
}

// tally counts outcomes.
type tally struct{ n, failed float64 }

func (t *tally) add(failed bool) {
	t.n++
	if failed {
		t.failed++
	}
}

// smoothing is how many outcomes of the queue as a whole are mixed into those of one author, file or target: an author
// who failed once in one change is not sure to fail.
const smoothing = 5

// rate is the share of failures, missing where nothing was seen.
func (t *tally) rate(overall float64) float64 {
	if t == nil || t.n == 0 {
		return unknown
	}
	return (t.failed + smoothing*overall) / (t.n + smoothing)
}
