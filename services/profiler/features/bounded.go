package features

import "slices"

// recent keeps something of the last keys that were touched; what was touched longest ago goes first.
type recent[V any] struct {
	most           int
	of             map[string]*kept[V]
	oldest, newest *kept[V]
}

// kept is a link of the chain from the oldest to the newest.
type kept[V any] struct {
	key          string
	value        V
	older, newer *kept[V]
}

func newRecent[V any](most int) *recent[V] {
	return &recent[V]{most: most, of: map[string]*kept[V]{}}
}

// look gives what is kept of a key, nil if nothing is.
func (r *recent[V]) look(key string) *V {
	if k := r.of[key]; k != nil {
		return &k.value
	}
	return nil
}

// touch gives what is kept of a key, made if there is nothing, and makes it the newest.
func (r *recent[V]) touch(key string) *V {
	k := r.of[key]
	switch {
	case k != nil:
		r.unlink(k)
	case len(r.of) >= r.most:
		delete(r.of, r.oldest.key)
		r.unlink(r.oldest)
		fallthrough
	default:
		k = &kept[V]{key: key}
		r.of[key] = k
	}
	k.older, k.newer = r.newest, nil
	if r.newest != nil {
		r.newest.newer = k
	} else {
		r.oldest = k
	}
	r.newest = k
	return &k.value
}

func (r *recent[V]) unlink(k *kept[V]) {
	if k.older != nil {
		k.older.newer = k.newer
	} else {
		r.oldest = k.newer
	}
	if k.newer != nil {
		k.newer.older = k.older
	} else {
		r.newest = k.older
	}
}

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
