package gitrepo

import (
	"container/list"
	"sync"
)

// lru remembers the values used last, up to a total cost.
type lru[K comparable, V any] struct {
	mu    sync.Mutex
	bound int
	cost  int
	order *list.List // front: used last
	items map[K]*list.Element
}

type lruItem[K comparable, V any] struct {
	key   K
	value V
	cost  int
}

func newLRU[K comparable, V any](bound int) *lru[K, V] {
	return &lru[K, V]{bound: bound, order: list.New(), items: make(map[K]*list.Element)}
}

func (c *lru[K, V]) get(key K) (V, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if at, ok := c.items[key]; ok {
		c.order.MoveToFront(at)
		return at.Value.(*lruItem[K, V]).value, true
	}
	var none V
	return none, false
}

// put remembers a value; one that costs more than the whole bound is not kept.
func (c *lru[K, V]) put(key K, value V, cost int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.items[key]; ok || cost > c.bound {
		return
	}
	c.items[key] = c.order.PushFront(&lruItem[K, V]{key, value, cost})
	c.cost += cost
	for c.cost > c.bound {
		last := c.order.Back()
		item := c.order.Remove(last).(*lruItem[K, V])
		delete(c.items, item.key)
		c.cost -= item.cost
	}
}
