package graph

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"landfall.build/engine/memberset"
	"landfall.build/events/seedtest"
	eventsv1 "landfall.build/events/v1"
)

// randomNode returns a node with a few members and classes, most of them without evidence.
func randomNode(r *rand.Rand, id string, position int64) *eventsv1.Node {
	n := &eventsv1.Node{Change: &eventsv1.ChangeRef{Change: id, Revision: 1}, Position: position, Analyzed: true}
	for i := range r.IntN(4) {
		n.Ahead = append(n.Ahead, &eventsv1.Ahead{
			Change: &eventsv1.ChangeRef{Change: fmt.Sprint("ahead", i)}, Conflicts: true, MergeConflict: r.IntN(10) == 0, Required: r.IntN(10) == 0,
		})
	}
	for range r.IntN(3) {
		k := &eventsv1.Class{Targets: []*eventsv1.TargetVersion{{Target: "//t"}}}
		for i := range n.Ahead {
			if r.IntN(2) == 0 {
				k.Members = append(k.Members, uint32(i))
			}
		}
		if r.IntN(3) == 0 {
			k.Outcomes = append(k.Outcomes, &eventsv1.Outcome{State: eventsv1.OutcomeState(1 + r.IntN(4))})
		}
		n.Classes = append(n.Classes, k)
	}
	switch r.IntN(12) {
	case 0:
		n.MissingRequirement = "gone"
	case 1:
		n.Guard = &eventsv1.Guard{State: Green}
	case 2:
		n.Paths = append(n.Paths, &eventsv1.Outcome{State: Red})
	}
	return n
}

// TestTheOrderIsThatOfThePositions: after any deltas it is what sorting all nodes would give.
func TestTheOrderIsThatOfThePositions(t *testing.T) {
	r := seedtest.Random(t)
	for range 200 {
		g, want, last := New(), map[string]*eventsv1.Node{}, int64(0)
		for range 60 {
			d := &eventsv1.GraphDelta{}
			for range r.IntN(3) {
				id := fmt.Sprint("c", r.IntN(12))
				if n := want[id]; n != nil {
					delete(want, id)
					d.Gone = append(d.Gone, &eventsv1.NodeGone{Change: n.Change})
				}
			}
			for range r.IntN(4) {
				id := fmt.Sprint("c", r.IntN(12))
				last += 10
				position := last
				if old := want[id]; old != nil && r.IntN(3) > 0 {
					position = old.Position
				} else if r.IntN(4) == 0 {
					position = -last // moved to the front
				}
				n := randomNode(r, id, position)
				if slices.ContainsFunc(d.Nodes, func(o *eventsv1.Node) bool { return o.Change.Change == id }) {
					continue
				}
				want[id] = n
				d.Nodes = append(d.Nodes, n)
			}
			g.Fold(d)
			var sorted []*eventsv1.Node
			for _, n := range want {
				sorted = append(sorted, n)
			}
			slices.SortFunc(sorted, func(a, b *eventsv1.Node) int { return cmp.Compare(a.Position, b.Position) })
			got := make([]*eventsv1.Node, len(g.Order()))
			for i, n := range g.Order() {
				got[i] = n.Node
				if g.Node(n.Change.Change) != n {
					t.Fatalf("the order has a node of %s that is not the graph's", n.Change.Change)
				}
			}
			if !slices.Equal(got, sorted) {
				t.Fatalf("got %v, want %v", got, sorted)
			}
		}
	}
}

// TestTheShortcutForUnprovenNodesChangesNoAnswer compares what Path and May return with and without it.
func TestTheShortcutForUnprovenNodesChangesNoAnswer(t *testing.T) {
	r := seedtest.Random(t)
	unproven := 0
	for range 20_000 {
		n := newNode(randomNode(r, "c", 1))
		g := New()
		g.Fold(&eventsv1.GraphDelta{Nodes: []*eventsv1.Node{n.Node}})
		// One that is behind it, and has it and what is ahead of it as members.
		behind := &eventsv1.Node{Change: &eventsv1.ChangeRef{Change: "behind"}, Position: 2}
		for _, a := range n.Ahead {
			behind.Ahead = append(behind.Ahead, &eventsv1.Ahead{Change: a.Change})
		}
		behind.Ahead = append(behind.Ahead, &eventsv1.Ahead{Change: n.Change})
		g.Fold(&eventsv1.GraphDelta{Nodes: []*eventsv1.Node{behind}})
		b := g.Node("behind")
		for bits := range byte(1) << len(n.Ahead) {
			s := memberset.FromBytes(len(n.Ahead), []byte{bits})
			quick := n.Path(s)
			land, fail := g.May(b, memberset.FromBytes(len(b.Ahead), []byte{bits}), len(n.Ahead))
			was := n.unproven
			if was {
				unproven++
			}
			n.unproven, g.Node("c").unproven = false, false
			if whole := n.Path(s); quick != whole {
				t.Fatalf("%v: the path %b is %v, and %v by the shortcut", n.Node, bits, whole, quick)
			}
			if wholeLand, wholeFail := g.May(b, memberset.FromBytes(len(b.Ahead), []byte{bits}), len(n.Ahead)); land != wholeLand || fail != wholeFail {
				t.Fatalf("%v: on the path %b it may land %v and fail %v, and by the shortcut %v and %v", n.Node, bits, wholeLand, wholeFail, land, fail)
			}
			n.unproven, g.Node("c").unproven = was, was
		}
	}
	if unproven < 1000 {
		t.Errorf("only %d paths were of unproven nodes", unproven)
	}
}
