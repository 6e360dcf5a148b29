package features

import "slices"

// window holds the last values of a sequence, oldest first.
type window[T any] struct{ values []T }

// add appends a value, and drops the oldest ones beyond the limit.
func (w *window[T]) add(x T, limit int) {
	if len(w.values) >= limit {
		w.values = append(w.values[:0], w.values[len(w.values)-limit+1:]...)
	}
	w.values = append(w.values, x)
}

// newest returns the last n values, oldest first.
func (w *window[T]) newest(n int) []T { return w.values[max(0, len(w.values)-n):] }

// quantile interpolates a quantile of some numbers. It is missing for none.
func quantile(values []float64, q float64) float64 {
	if len(values) == 0 {
		return missing
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

// smoothing is how many outcomes at the queue's overall rate are mixed into those of one author, file or target: an author
// who failed once in one change is not sure to fail.
const smoothing = 5

// rate returns the smoothed share of failures. It is missing without outcomes.
func (t *tally) rate(overall float64) float64 {
	if t == nil || t.n == 0 {
		return missing
	}
	return (t.failed + smoothing*overall) / (t.n + smoothing)
}
