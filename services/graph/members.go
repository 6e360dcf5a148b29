package graph

import (
	"cmp"
	"slices"

	eventsv1 "landfall.build/events/v1"
)

// slot is a change that is pending or named as a member by one that is.
type slot struct {
	node *Node // nil if it is not pending
	// revision is the node's: it is asked for more often than anything else of it.
	revision uint64
	behind   []back
	// mark and place are Graph.Places's.
	mark  int   `snapshot:"-"`
	place int32 `snapshot:"-"`
}

// placesOf holds, for each x that a member has ahead, the place of x in another change's A(c), -1 if none.
type placesOf struct {
	of    *Node
	place []int32
}

// membership is a member of a node: its slot, at which revision, and where that has the node among those behind it.
type membership struct {
	of       *slot
	revision uint64
	place    int
}

// back is a pending change and which of its members a slot is. Members are counted with those before them that have left since
// the node was told, Node.shed in number: so nothing has to be counted anew when the queue's head leaves.
type back struct {
	of     *slot
	member int
}

// membership is the one that a back stands for.
func (b back) membership() *membership { return &b.of.node.members[b.member-b.of.node.shed] }

// put gives a change its node, nil for none, and gives the one that it had.
func (g *Graph) put(id string, n *Node) (old *Node) {
	s := g.slot(id)
	if old = s.node; old != nil {
		for _, m := range old.members {
			m.of.drop(m.place)
		}
	}
	if s.node = n; n != nil {
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
			g.forget(old.Ahead[j].Change.Change, m.of)
		}
	}
	g.forget(id, s)
	return old
}

// shed gives a change the node that its own becomes without a member, whose place among those that it has ahead is given.
func (g *Graph) shed(s *slot, at int, n *Node) {
	old := s.node
	gone := old.members[at]
	gone.of.drop(gone.place)
	for j := at; j > 0; j-- {
		m := old.members[j-1]
		old.members[j] = m
		m.of.behind[m.place].member++
	}
	n.members, n.shed = old.members[1:], old.shed+1
	s.node = n
	g.forget(old.Ahead[at].Change.Change, gone.of)
}

func (g *Graph) slot(id string) *slot {
	s := g.slots[id]
	if s == nil {
		s = &slot{}
		g.slots[id] = s
	}
	return s
}

// drop takes a node out of those behind.
func (s *slot) drop(place int) {
	last := len(s.behind) - 1
	moved := s.behind[last]
	s.behind[place] = moved
	moved.membership().place = place
	s.behind[last] = back{}
	s.behind = s.behind[:last]
}

func (g *Graph) forget(id string, s *slot) {
	if s.node == nil && len(s.behind) == 0 && g.slots[id] == s {
		delete(g.slots, id)
	}
}

// Member is the node of member j of A(n) at the revision that n names, nil if that is not pending.
func (n *Node) Member(j int) *Node {
	m := &n.members[j]
	if m.of.node == nil || m.of.revision != m.revision {
		return nil
	}
	return m.of.node
}

// EachBehind calls f for the pending changes that name a change as a member, in no order.
func (g *Graph) EachBehind(id string, f func(n *Node)) {
	if s := g.slots[id]; s != nil {
		for _, b := range s.behind {
			f(b.of.node)
		}
	}
}

// EachBehindAny calls f once for each pending change that has one of some others as a member, in no order.
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

// Places says, for each change that member j of A(i) has ahead, where that stands in A(i), -1 if it does not. The
// member must be pending; callers must not change what they get.
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

// shedAll takes what leaves by a delta out of the nodes that it does not tell anew. It says whether the order has to be made anew.
func (g *Graph) shedAll(d *eventsv1.GraphDelta) (shed []*Node, reorder bool) {
	if len(d.Gone) == 0 {
		return nil, false
	}
	told, lost := toldBy(d), map[*slot]bool{}
	for _, gone := range d.Gone {
		s := g.slots[gone.Change.GetChange()]
		if s == nil {
			continue
		}
		for i := len(s.behind) - 1; i >= 0; i-- { // a drop puts one there that was looked at
			b := s.behind[i]
			n := b.of.node
			at := b.member - n.shed
			if told[n.Change.Change] || !SameRef(n.Ahead[at].Change, gone.Change) {
				continue
			}
			now := n.without(at, gone.How == eventsv1.GoneHow_GONE_HOW_LANDED)
			if place, found := g.place(n); found {
				g.order[place] = now
			} else {
				reorder = true
			}
			g.shed(b.of, at, now)
			lost[b.of] = true
		}
	}
	for s := range lost {
		shed = append(shed, s.node)
	}
	slices.SortFunc(shed, func(a, b *Node) int { return cmp.Compare(a.Position, b.Position) })
	return shed, reorder
}
