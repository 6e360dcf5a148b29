package graph

import (
	"cmp"
	"slices"

	eventsv1 "landfall.build/events/v1"
)

// change is what the graph holds of a change that is pending, or a member of one that is.
type change struct {
	node *Node // nil if it is not pending
	// revision is the node's. It is copied here because it is read more often than anything else of the node.
	revision uint64
	// behind holds the changes that have it as a member, in no order.
	behind []back `snapshot:"index"`
	// mark is the round (Graph.marks) in which it was last marked. place is its place in Graph.marked's A(c), valid in that
	// round.
	mark  int   `snapshot:"-"`
	place int32 `snapshot:"-"`
}

// memberPlaces holds where a node finds the changes that one of its members has ahead.
type memberPlaces struct {
	member *Node
	// places holds the place in A(c) of each change in member.Ahead, -1 for one that c does not have ahead.
	places []int32
}

// membership is a member of a node.
type membership struct {
	change *change
	// revision is the one that the node names. The member may be pending at another.
	revision uint64
	// behindAt is where the node stands in change.behind.
	behindAt int `snapshot:"index"`
}

// back is the reference from a change to one that has it as a member.
type back struct {
	// change is the one behind.
	change *change
	// member is the member's place in the node of the change behind, plus Node.departed. So no reference changes when the head
	// of the queue leaves.
	member int
}

// at returns the member's place in the node of the change behind.
func (b back) at() int { return b.member - b.change.node.departed }

// put installs the node of a change, nil if it is no longer pending, and returns the one that it replaces.
func (g *Graph) put(id string, n *Node) (old *Node) {
	s := g.change(id)
	if old = s.node; old != nil {
		for _, m := range old.members {
			m.change.removeBehind(m.behindAt)
		}
	}
	s.node, s.revision = n, 0
	if n != nil {
		s.revision = n.Change.Revision
		n.members = make([]membership, len(n.Ahead))
		for j, a := range n.Ahead {
			member := g.change(a.Change.Change)
			n.members[j] = membership{member, a.Change.Revision, len(member.behind)}
			member.behind = append(member.behind, back{s, j})
		}
	}
	if old != nil {
		for j, m := range old.members {
			g.deleteIfUnused(old.Ahead[j].Change.Change, m.change)
		}
	}
	g.deleteIfUnused(id, s)
	return old
}

// replaceWithout installs n, which is the change's node without Ahead[at], and fixes the back references. Members before the place
// move up by one, so that nothing behind it has to be renumbered: it is mostly the head of the queue that leaves.
func (g *Graph) replaceWithout(s *change, at int, n *Node) {
	old := s.node
	gone := old.members[at]
	gone.change.removeBehind(gone.behindAt)
	for j := at; j > 0; j-- {
		m := old.members[j-1]
		old.members[j] = m
		m.change.behind[m.behindAt].member++
	}
	n.members, n.departed = old.members[1:], old.departed+1
	s.node = n
	g.deleteIfUnused(old.Ahead[at].Change.Change, gone.change)
}

// change returns the change of an id, making it if there is none.
func (g *Graph) change(id string) *change {
	s := g.changes[id]
	if s == nil {
		s = &change{}
		g.changes[id] = s
	}
	return s
}

// removeBehind removes the change at a place from those behind. The last one takes the place.
func (s *change) removeBehind(place int) {
	last := len(s.behind) - 1
	moved := s.behind[last]
	s.behind[place] = moved
	moved.change.node.members[moved.at()].behindAt = place
	s.behind[last] = back{}
	s.behind = s.behind[:last]
}

// deleteIfUnused deletes a change that neither is pending nor has anything behind it.
func (g *Graph) deleteIfUnused(id string, s *change) {
	if s.node == nil && len(s.behind) == 0 && g.changes[id] == s {
		delete(g.changes, id)
	}
}

// Member returns the node of member j of A(n), nil if the member is not pending at the revision that n names.
func (n *Node) Member(j int) *Node {
	m := &n.members[j]
	if m.change.node == nil || m.change.revision != m.revision {
		return nil
	}
	return m.change.node
}

// EachBehind calls f for each pending change that has a change as a member, in no order.
func (g *Graph) EachBehind(id string, f func(n *Node)) {
	if s := g.changes[id]; s != nil {
		for _, b := range s.behind {
			f(b.change.node)
		}
	}
}

// EachBehindAny calls f once for each pending change that has one of the nodes' changes as a member, in no order.
func (g *Graph) EachBehindAny(nodes []*Node, f func(n *Node)) {
	g.marks++
	for _, n := range nodes {
		for _, b := range g.changes[n.Change.Change].behind {
			if b.change.mark != g.marks {
				b.change.mark = g.marks
				f(b.change.node)
			}
		}
	}
	g.marked = nil
}

// Places returns, for each change that member j of A(i) has ahead, its place in A(i), -1 if it is not there. The member must be
// pending. Callers must not change the slice.
func (g *Graph) Places(i *Node, j int) []int32 {
	if i.places == nil {
		i.places = make([]memberPlaces, len(i.Ahead))
	}
	found, member := &i.places[j], i.members[j].change.node
	if found.member == member {
		return found.places
	}
	if g.marked != i {
		g.marked = i
		g.marks++
		for x := range i.members {
			i.members[x].change.mark, i.members[x].change.place = g.marks, int32(x)
		}
	}
	*found = memberPlaces{member, make([]int32, len(member.members))}
	for x := range member.members {
		if s := member.members[x].change; s.mark == g.marks {
			found.places[x] = s.place
		} else {
			found.places[x] = -1
		}
	}
	return found.places
}

// removeDeparted removes the changes that a delta lists as gone from the nodes that the delta does not write, and returns those nodes
// in queue order. reorder reports whether Graph.order has to be sorted again.
func (g *Graph) removeDeparted(d *eventsv1.GraphDelta) (shrunk []*Node, reorder bool) {
	if len(d.Gone) == 0 {
		return nil, false
	}
	written, lost := writtenBy(d), map[*change]bool{}
	for _, gone := range d.Gone {
		s := g.changes[gone.Change.GetChange()]
		if s == nil {
			continue
		}
		for i := len(s.behind) - 1; i >= 0; i-- { // backwards: removeBehind moves the last one, which has been visited
			b := s.behind[i]
			n, at := b.change.node, b.at()
			if written[n.Change.Change] || !SameRef(n.Ahead[at].Change, gone.Change) {
				continue
			}
			without := n.without(at, gone.How == eventsv1.GoneHow_GONE_HOW_LANDED)
			if position, found := g.positionOf(n); found {
				g.order[position] = without
			} else {
				reorder = true
			}
			g.replaceWithout(b.change, at, without)
			lost[b.change] = true
		}
	}
	for s := range lost {
		shrunk = append(shrunk, s.node)
	}
	slices.SortFunc(shrunk, func(a, b *Node) int { return cmp.Compare(a.Position, b.Position) })
	return shrunk, reorder
}
