// Package recent remembers what was used last, for the adapters.
package recent

import "container/list"

// Values remembers values up to a total weight and forgets the least recently
// used first. It does not lock.
type Values[K comparable, V any] struct {
	limit, weight int64
	order         *list.List // most recently used first
	items         map[K]*list.Element
}

type remembered[K comparable, V any] struct {
	key    K
	value  V
	weight int64
}

// New remembers nothing yet. The limit is in whatever Put weighs by.
func New[K comparable, V any](limit int64) *Values[K, V] {
	return &Values[K, V]{limit: limit, order: list.New(), items: make(map[K]*list.Element)}
}

// Get gives a value that is still remembered, and counts as a use of it.
func (r *Values[K, V]) Get(key K) (V, bool) {
	element, ok := r.items[key]
	if !ok {
		var none V
		return none, false
	}
	r.order.MoveToFront(element)
	return element.Value.(*remembered[K, V]).value, true
}

// Put remembers a value. One that is heavier than the limit is not kept.
func (r *Values[K, V]) Put(key K, value V, weight int64) {
	if element, ok := r.items[key]; ok {
		r.drop(element)
	}
	r.items[key] = r.order.PushFront(&remembered[K, V]{key, value, weight})
	r.weight += weight
	for r.weight > r.limit && r.order.Len() > 0 {
		r.drop(r.order.Back())
	}
}

func (r *Values[K, V]) drop(element *list.Element) {
	item := r.order.Remove(element).(*remembered[K, V])
	delete(r.items, item.key)
	r.weight -= item.weight
}
