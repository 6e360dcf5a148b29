package graph

import (
	"slices"
	"testing"
)

func TestTheWayRoundIsTakenWhereItIsShorter(t *testing.T) {
	g := Graph{}
	g.Connect("a", "b", 10)
	g.Connect("a", "c", 3)
	g.Connect("c", "d", 3)
	g.Connect("d", "b", 3)
	way, length := g.Shortest("a", "b")
	if length != 9 || !slices.Equal(way, []string{"a", "c", "d", "b"}) {
		t.Errorf("%v of length %d", way, length)
	}
}

func TestAnIslandIsNotReached(t *testing.T) {
	g := Graph{}
	g.Connect("a", "b", 1)
	if way, _ := g.Shortest("a", "island"); way != nil {
		t.Errorf("by %v", way)
	}
}
