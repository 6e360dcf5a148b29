// Package lru is a cache that forgets what was not used for longest.
package lru

import "container/list"

// Cache holds a bounded number of values.
type Cache[K comparable, V any] struct {
	capacity int
	order    *list.List
	entries  map[K]*list.Element
}

type entry[K comparable, V any] struct {
	key   K
	value V
}

// New makes a cache of that many values.
func New[K comparable, V any](capacity int) *Cache[K, V] {
	return &Cache[K, V]{capacity: capacity, order: list.New(), entries: map[K]*list.Element{}}
}

// Get finds a value and notes that it was used.
func (c *Cache[K, V]) Get(key K) (V, bool) {
	e, found := c.entries[key]
	if !found {
		var none V
		return none, false
	}
	c.order.MoveToFront(e)
	return e.Value.(entry[K, V]).value, true
}

// Put keeps a value, and forgets another one if there are too many.
func (c *Cache[K, V]) Put(key K, value V) {
	if e, found := c.entries[key]; found {
		e.Value = entry[K, V]{key, value}
		c.order.MoveToFront(e)
		return
	}
	c.entries[key] = c.order.PushFront(entry[K, V]{key, value})
	if c.order.Len() > c.capacity {
		c.forgetOldest()
	}
}

// Len is the number of values.
func (c *Cache[K, V]) Len() int { return c.order.Len() }

func (c *Cache[K, V]) forgetOldest() {
	oldest := c.order.Back()
	c.order.Remove(oldest)
	delete(c.entries, oldest.Value.(entry[K, V]).key)
}
