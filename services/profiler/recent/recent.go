// Package recent keeps something of the keys that were touched last: what is known of files, targets or authors, of which there
// are more with every year. It is pure, and a snapshot holds it.
package recent

// Keys keeps something of the last keys that were touched; what was touched longest ago goes first.
type Keys[V any] struct {
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

// New keeps at most that many, at least one.
func New[V any](most int) *Keys[V] {
	return &Keys[V]{most: max(most, 1), of: map[string]*kept[V]{}}
}

// Look gives what is kept of a key, nil if nothing is.
func (r *Keys[V]) Look(key string) *V {
	if k := r.of[key]; k != nil {
		return &k.value
	}
	return nil
}

// Touch gives what is kept of a key, made if there is nothing, and makes it the newest.
func (r *Keys[V]) Touch(key string) *V {
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

func (r *Keys[V]) unlink(k *kept[V]) {
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

// Len is of how many keys something is kept.
func (r *Keys[V]) Len() int { return len(r.of) }
