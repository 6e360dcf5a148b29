package lru_test

import (
	"fmt"
	"slices"
	"testing"

	"landfall.build/engine/lru"
	"landfall.build/events/seedtest"
)

// TestTheLeastRecentlyUsedIsEvictedFirst: the twin is a list, searched from end to end.
func TestTheLeastRecentlyUsedIsEvictedFirst(t *testing.T) {
	random := seedtest.Random(t)
	type entry struct {
		key    string
		value  int
		weight int64
	}
	evicted := 0
	for range 50 {
		limit := int64(1 + random.IntN(12))
		cache := lru.New[string, int](limit)
		var list []entry // the most recently used last
		find := func(key string) int { return slices.IndexFunc(list, func(e entry) bool { return e.key == key }) }
		use := func(e entry) {
			if at := find(e.key); at >= 0 {
				list = slices.Delete(list, at, at+1)
			}
			for list = append(list, e); ; evicted++ {
				weight := int64(0)
				for _, o := range list {
					weight += o.weight
				}
				if weight <= limit {
					return
				}
				list = list[1:]
			}
		}
		for step := range 400 {
			key := fmt.Sprint(random.IntN(20))
			at := find(key)
			switch random.IntN(4) {
			case 0:
				if got := cache.Peek(key); (got == nil) != (at < 0) || got != nil && *got != list[at].value {
					t.Fatalf("step %d: peek at %s: %v, the list is %v", step, key, got, list)
				}
			case 1:
				got, ok := cache.Get(key)
				if ok != (at >= 0) || ok && got != list[at].value {
					t.Fatalf("step %d: get %s: %v, %v, the list is %v", step, key, got, ok, list)
				}
				if ok {
					use(list[at])
				}
			case 2:
				e := entry{key: key, weight: 1}
				if at >= 0 {
					e = list[at]
				}
				e.value++
				use(e)
				*cache.Touch(key)++
			case 3:
				e := entry{key, step, int64(random.IntN(int(limit) + 2))}
				switch {
				case e.weight <= limit:
					use(e)
				case at >= 0:
					list = slices.Delete(list, at, at+1)
				}
				cache.Put(e.key, e.value, e.weight)
			}
			var all []entry
			for key, value := range cache.All() {
				all = append(all, entry{key: key, value: *value})
			}
			if cache.Len() != len(list) || !slices.EqualFunc(all, list, func(a, b entry) bool { return a.key == b.key && a.value == b.value }) {
				t.Fatalf("step %d: the cache holds %v, the list is %v", step, all, list)
			}
		}
	}
	if evicted == 0 {
		t.Error("nothing was evicted; the test shows nothing")
	}
}
