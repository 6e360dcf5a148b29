package graph

import (
	"cmp"
	"slices"

	eventsv1 "landfall.build/events/v1"
)

// slot is a change that is pending, or a member of one that is.
type slot struct {
	node *Node // nil if it is not pending
	// revision is the node's, kept here because it is read more often than anything else of the node.
	revision uint64
	// behind holds the changes that have it as a member, in no order.
	behind []back `snapshot:"index"`
	// mark is the round (Graph.marks) in which the slot was marked last, place the place that it was marked with.
	mark  int   `snapshot:"-"`
	place int32 `snapshot:"-"`
}

// placesOf holds, for each change that the node of has ahead, its place in another change's A(c), -1 if it has none.
type placesOf struct {
	of    *Node
	place []int32
}

// membership is a member of a node: its slot, the revision that the node names, and the place of the node in the slot's behind.
type membership struct {
	of       *slot
	revision uint64
	place    int `snapshot:"index"`
}

// back is the reference from a slot back to a change that has it as a member. member is the member's place plus Node.departed, so that
// no reference changes when the head of the queue leaves.
type back struct {
	of     *slot
	member int
}

// at returns the member's place in the node.
func (b back) at() int { return b.member - b.of.node.departed }

// put installs the node of a change, nil if it is no longer pending, and returns the one that it replaces.
func (g *Graph) put(id string, n *Node) (old *Node) {
	s := g.slot(id)
	if old = s.node; old != nil {
		for _, m := range old.members {
			m.of.removeBehind(m.place)
		}
	}
	s.node, s.revision = n, 0
	if n != nil {
		s.revision = n.Change.Revision
		n.members = make([]membership, len(n.Ahead))
		for j, a := range n.Ahead {
			of := g.slot(a.Change.Change)
			n.members[j] = membership{of, a.Change.Revision, len(of.behind)}
			of.behind = append(of.behind, back{s, j})
		}
	}
	if old != nil {
		for j, m := range old.members {
			g.deleteIfUnused(old.Ahead[j].Change.Change, m.of)
		}
	}
	g.deleteIfUnused(id, s)
	return old
}

// replaceWithout installs n, which is the change's node without Ahead[at], and fixes the back references. Members before the place
// move up by one, so that nothing behind it has to be renumbered: it is mostly the head of the queue that leaves.
func (g *Graph) replaceWithout(s *slot, at int, n *Node) {
	old := s.node
	gone := old.members[at]
	gone.of.removeBehind(gone.place)
	for j := at; j > 0; j-- {
		m := old.members[j-1]
		old.members[j] = m
		m.of.behind[m.place].member++
	}
	n.members, n.departed = old.members[1:], old.departed+1
	s.node = n
	g.deleteIfUnused(old.Ahead[at].Change.Change, gone.of)
}

// slot returns the slot of a change, making it if there is none.
func (g *Graph) slot(id string) *slot {
	s := g.slots[id]
	if s == nil {
		s = &slot{}
		g.slots[id] = s
	}
	return s
}

// removeBehind removes the change at a place from those behind. The last one takes the place.
func (s *slot) removeBehind(place int) {
	last := len(s.behind) - 1
	moved := s.behind[last]
	s.behind[place] = moved
	moved.of.node.members[moved.at()].place = place
	s.behind[last] = back{}
	s.behind = s.behind[:last]
}

// deleteIfUnused deletes the slot of a change that neither is pending nor has anything behind it.
func (g *Graph) deleteIfUnused(id string, s *slot) {
	if s.node == nil && len(s.behind) == 0 && g.slots[id] == s {
		delete(g.slots, id)
	}
}

// Member returns the node of member j of A(n), nil if the member is not pending at the revision that n names.
func (n *Node) Member(j int) *Node {
	m := &n.members[j]
	if m.of.node == nil || m.of.revision != m.revision {
		return nil
	}
	return m.of.node
}

// EachBehind calls f for each pending change that has a change as a member, in no order.
func (g *Graph) EachBehind(id string, f func(n *Node)) {
	if s := g.slots[id]; s != nil {
		for _, b := range s.behind {
			f(b.of.node)
		}
	}
}

// EachBehindAny calls f once for each pending change that has one of the nodes' changes as a member, in no order.
func (g *Graph) EachBehindAny(nodes []*Node, f func(n *Node)) {
	g.marks++
	for _, n := range nodes {
		for _, b := range g.slots[n.Change.Change].behind {
			if b.of.mark != g.marks {
				b.of.mark = g.marks
				f(b.of.node)
			}
		}
	}
	g.marked = nil
}

// Places returns, for each change that member j of A(i) has ahead, its place in A(i), -1 if it is not there. The member must be
// pending. Callers must not change the slice.
func (g *Graph) Places(i *Node, j int) []int32 {
	if i.places == nil {
		i.places = make([]placesOf, len(i.Ahead))
	}
	p, of := &i.places[j], i.members[j].of.node
	if p.of == of {
		return p.place
	}
	if g.marked != i {
		g.marked = i
		g.marks++
		for x := range i.members {
			i.members[x].of.mark, i.members[x].of.place = g.marks, int32(x)
		}
	}
	*p = placesOf{of, make([]int32, len(of.members))}
	for x := range of.members {
		if s := of.members[x].of; s.mark == g.marks {
			p.place[x] = s.place
		} else {
			p.place[x] = -1
		}
	}
	return p.place
}

// removeDeparted removes the changes that a delta lists as gone from the nodes that the delta does not write, and returns those nodes
// in queue order. reorder reports whether Graph.order has to be sorted again.
func (g *Graph) removeDeparted(d *eventsv1.GraphDelta) (shrunk []*Node, reorder bool) {
	if len(d.Gone) == 0 {
		return nil, false
	}
	written, lost := writtenBy(d), map[*slot]bool{}
	for _, gone := range d.Gone {
		s := g.slots[gone.Change.GetChange()]
		if s == nil {
			continue
		}
		for i := len(s.behind) - 1; i >= 0; i-- { // backwards: removeBehind moves the last one, which has been visited
			b := s.behind[i]
			n, at := b.of.node, b.at()
			if written[n.Change.Change] || !SameRef(n.Ahead[at].Change, gone.Change) {
				continue
			}
			without := n.without(at, gone.How == eventsv1.GoneHow_GONE_HOW_LANDED)
			if position, found := g.positionOf(n); found {
				g.order[position] = without
			} else {
				reorder = true
			}
			g.replaceWithout(b.of, at, without)
			lost[b.of] = true
		}
	}
	for s := range lost {
		shrunk = append(shrunk, s.node)
	}
	slices.SortFunc(shrunk, func(a, b *Node) int { return cmp.Compare(a.Position, b.Position) })
	return shrunk, reorder
}
