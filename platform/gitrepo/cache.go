package gitrepo

import (
	"sync"

	"landfall.build/engine/lru"
)

// cache is an lru.Cache for several goroutines.
type cache[K comparable, V any] struct {
	mu      sync.Mutex
	entries *lru.Cache[K, V]
}

func newCache[K comparable, V any](limit int) *cache[K, V] {
	return &cache[K, V]{entries: lru.New[K, V](int64(limit))}
}

func (c *cache[K, V]) get(key K) (V, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.entries.Get(key)
}

func (c *cache[K, V]) put(key K, value V, cost int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.entries.Put(key, value, int64(cost))
}
