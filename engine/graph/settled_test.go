package graph

import (
	"testing"

	"landfall.build/engine/memberset"
	eventsv1 "landfall.build/events/v1"
)

// A class is settled when as many versions are known as there can be: those without the members through which the change
// affects it are none. With more members than anybody could know all versions of it never is.
func TestAClassIsSettledWhenAllItsVersionsAreKnown(t *testing.T) {
	for _, c := range []struct{ members, through, known int }{{0, 0, 1}, {2, 0, 4}, {2, 1, 2}, {3, 2, 6}, {40, 0, -1}, {40, 1, -1}, {31, 1, -1}} {
		k := Class{Class: &eventsv1.Class{}}
		for i := range c.members {
			k.Members = append(k.Members, uint32(i))
		}
		for i := range c.through {
			k.Through = append(k.Through, uint32(i))
		}
		for n := range 10 {
			if settled := k.Settled(); settled != (c.known >= 0 && n >= c.known) {
				t.Errorf("%d members, through %d, %d versions known: settled is %v", c.members, c.through, n, settled)
			}
			k.Class.Outcomes = append(k.Class.Outcomes, &eventsv1.Outcome{State: Green})
		}
		if none := k.Outcome(memberset.New(c.members)); (none != nil) != (c.through > 0) {
			t.Errorf("%d members, through %d: without any of them %v", c.members, c.through, none)
		}
	}
}
