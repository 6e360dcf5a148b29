package recent

import "testing"

func TestValuesForgetTheLeastRecentlyUsedFirst(t *testing.T) {
	m := New[string, int](10)
	m.Put("a", 1, 4)
	m.Put("b", 2, 4)
	m.Get("a")
	m.Put("c", 3, 4)
	if _, ok := m.Get("b"); ok {
		t.Error("b was used least recently and is still there")
	}
	if v, ok := m.Get("a"); !ok || v != 1 {
		t.Error("a is gone")
	}
	m.Put("a", 5, 2)
	if m.Put("huge", 6, 11); m.weight > m.limit {
		t.Errorf("weight %d over the limit", m.weight)
	}
}
