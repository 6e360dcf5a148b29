// Package lru is a cache that evicts what was used least recently. The engine bounds with it what it keeps of files, targets and
// authors, of which there are more every year; the loaders of build graphs keep what they have parsed.
package lru

import "iter"

// Cache holds entries up to a total weight; what was used least recently is evicted first. It does not lock.
type Cache[K comparable, V any] struct {
	limit, weight  int64
	entries        map[K]*entry[K, V]
	oldest, newest *entry[K, V]
}

// entry is a link of the list from the least to the most recently used.
type entry[K comparable, V any] struct {
	key          K
	value        V
	weight       int64
	older, newer *entry[K, V]
}

// New returns an empty cache. The limit is in whatever Put weighs by.
func New[K comparable, V any](limit int64) *Cache[K, V] {
	return &Cache[K, V]{limit: limit, entries: map[K]*entry[K, V]{}}
}

// Len returns the number of entries.
func (c *Cache[K, V]) Len() int { return len(c.entries) }

// Peek returns the value of a key, nil if the cache does not hold it. It does not count as a use.
func (c *Cache[K, V]) Peek(key K) *V {
	if e := c.entries[key]; e != nil {
		return &e.value
	}
	return nil
}

// Get returns the value of a key and whether the cache holds it, and counts as a use.
func (c *Cache[K, V]) Get(key K) (value V, ok bool) {
	e := c.entries[key]
	if e == nil {
		return value, false
	}
	c.unlink(e)
	c.link(e)
	return e.value, true
}

// Touch returns the value of a key, a zero one of weight 1 if the cache did not hold it, and counts as a use.
func (c *Cache[K, V]) Touch(key K) *V {
	e := c.entries[key]
	if e == nil {
		return c.insert(&entry[K, V]{key: key, weight: 1})
	}
	c.unlink(e)
	c.link(e)
	return &e.value
}

// Put sets the value of a key, and counts as a use. A value heavier than the limit is not kept.
func (c *Cache[K, V]) Put(key K, value V, weight int64) {
	if e := c.entries[key]; e != nil {
		c.remove(e)
	}
	if weight <= c.limit {
		c.insert(&entry[K, V]{key: key, value: value, weight: weight})
	}
}

// All yields the entries, the least recently used first.
func (c *Cache[K, V]) All() iter.Seq2[K, *V] {
	return func(yield func(K, *V) bool) {
		for e := c.oldest; e != nil; e = e.newer {
			if !yield(e.key, &e.value) {
				return
			}
		}
	}
}

// insert adds an entry that is not heavier than the limit, and evicts others until the weight is within it.
func (c *Cache[K, V]) insert(e *entry[K, V]) *V {
	c.entries[e.key] = e
	c.weight += e.weight
	c.link(e)
	for c.weight > c.limit {
		c.remove(c.oldest)
	}
	return &e.value
}

func (c *Cache[K, V]) remove(e *entry[K, V]) {
	delete(c.entries, e.key)
	c.weight -= e.weight
	c.unlink(e)
}

// link makes an entry the most recently used one.
func (c *Cache[K, V]) link(e *entry[K, V]) {
	e.older, e.newer = c.newest, nil
	if c.newest != nil {
		c.newest.newer = e
	} else {
		c.oldest = e
	}
	c.newest = e
}

func (c *Cache[K, V]) unlink(e *entry[K, V]) {
	if e.older != nil {
		e.older.newer = e.newer
	} else {
		c.oldest = e.newer
	}
	if e.newer != nil {
		e.newer.older = e.older
	} else {
		c.newest = e.older
	}
}
