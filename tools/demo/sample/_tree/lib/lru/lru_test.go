package lru

import "testing"

func TestTheOldestIsForgotten(t *testing.T) {
	c := New[string, int](2)
	c.Put("a", 1)
	c.Put("b", 2)
	c.Get("a")
	c.Put("c", 3)
	if _, found := c.Get("b"); found {
		t.Error("b is still there")
	}
	if v, found := c.Get("a"); !found || v != 1 {
		t.Error("a, which was used, is gone")
	}
	if c.Len() != 2 {
		t.Errorf("%d values", c.Len())
	}
}
