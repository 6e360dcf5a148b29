package graph

// slot is a change that is pending or named as a member by one that is.
type slot struct {
	node   *Node // nil if it is not pending
	behind []back
	// mark and place are Graph.Places's.
	mark  int   `snapshot:"-"`
	place int32 `snapshot:"-"`
}

// placesOf holds, for each x that a member has ahead, the place of x in another change's A(c), -1 if none.
type placesOf struct {
	of    *Node
	place []int32
}

// membership is a member of a node: its slot, and where that has the node among those behind it.
type membership struct {
	of    *slot
	place int
}

// back is a node and which of its members the slot is.
type back struct {
	node   *Node
	member int
}

// put gives a change its node, nil for none, and gives the one that it had.
func (g *Graph) put(id string, n *Node) (old *Node) {
	s := g.slot(id)
	old, s.node = s.node, n
	if n != nil {
		n.members = make([]membership, len(n.Ahead))
		for j, a := range n.Ahead {
			of := g.slot(a.Change.Change)
			n.members[j] = membership{of, len(of.behind)}
			of.behind = append(of.behind, back{n, j})
		}
	}
	if old != nil {
		for j, m := range old.members {
			m.of.drop(m.place)
			g.forget(old.Ahead[j].Change.Change, m.of)
		}
	}
	g.forget(id, s)
	return old
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
	moved.node.members[moved.member].place = place
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
	m := n.members[j].of.node
	if m == nil || m.Change.Revision != n.Ahead[j].Change.Revision {
		return nil
	}
	return m
}

// EachBehind calls f for the pending changes that name a change as a member, in no order.
func (g *Graph) EachBehind(id string, f func(n *Node)) {
	if s := g.slots[id]; s != nil {
		for _, b := range s.behind {
			f(b.node)
		}
	}
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
