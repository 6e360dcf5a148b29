package ranking

import (
	"slices"

	eventsv1 "landfall.build/events/v1"
	"landfall.build/services/graph"
)

// shed takes what leaves by a delta out of those behind it that the delta does not tell anew (graph.Without), whose nodes are given.
// When the head of a queue lands in which all conflict, that is everybody: what a change has kept of its other members stays where
// it is, and what it has kept of its own chances is mended, not made anew.
func (r *Ranking) shed(d *eventsv1.GraphDelta, nodes []*graph.Node) (shed []*change) {
	if len(nodes) == 0 {
		return nil
	}
	shed = make([]*change, len(nodes))
	for i, n := range nodes {
		shed[i] = r.changes[n.Change.Change]
		shed[i].next = n
	}
	for _, g := range d.Gone {
		gone := r.changes[g.Change.Change]
		if gone == nil {
			continue
		}
		for i := len(gone.behind) - 1; i >= 0; i-- { // unlinking puts one there that was looked at
			b := gone.behind[i]
			if b.of.next != nil && b.of.members[b.at()].ahead.Change.Revision == g.Change.Revision {
				r.shedMember(b.of, b.at())
			}
		}
	}
	for _, c := range shed {
		bare := isBare(c.node) && isBare(c.next) && len(c.next.Classes) > 0
		same := bare && c.node.Unproven() == c.next.Unproven()
		if c.node, c.next = c.next, nil; !bare {
			c.classify()
		}
		if !same {
			c.look()
		}
		if r.enlist(c); c.reweighed > maxReweighed {
			r.weighAll(c)
		}
	}
	return shed
}

// isBare says that nothing is known of a node's paths and versions, and that it affects its targets on top of whatever lands: all that
// hangs on its classes is which members are in one.
func isBare(n *graph.Node) bool {
	return n.Guard == nil && len(n.Paths) == 0 &&
		!slices.ContainsFunc(n.Classes, func(k graph.Class) bool { return len(k.Class.Outcomes)+len(k.Through) > 0 })
}

// shedMember takes one member out. Those before it move up by one place, so that for those behind it nothing is another.
func (r *Ranking) shedMember(c *change, at int) {
	m := c.members[at]
	if p, known := r.pairs[c.id][m.of.id]; known && p.ahead == m.ahead.Change.Revision {
		delete(r.pairs[c.id], m.of.id)
	}
	c.unlink(&m)
	for j := at; j > 0; j-- {
		c.members[j] = c.members[j-1]
		c.members[j].of.behind[c.members[j].slot].member++
	}
	copy(c.matters[1:at+1], c.matters[:at])
	c.members, c.matters = c.members[1:], c.matters[1:]
	c.shed++
	r.shedCoupled(c, at)
	c.reweighed++
	if c.funded || c.most < leastMost {
		c.reweighed = maxReweighed + 1
		return
	}
	c.most /= m.weight
	c.mostLikely = c.most
}

// shedCoupled takes a member that has left out of those that bear on a change.
func (r *Ranking) shedCoupled(c *change, at int) {
	place, bears := slices.BinarySearch(c.coupled, int32(at))
	if bears {
		if len(c.shown.coupled) == len(c.coupled) {
			c.shown.coupled = leaveOut(c.shown.coupled, place)
		}
		c.coupled, c.sparedFrom = leaveOut(c.coupled, place), leaveOut(c.sparedFrom, place)
	}
	for x := place; x < len(c.coupled); x++ {
		c.coupled[x]--
	}
	if bears {
		c.spare(place)
	}
}

// leaveOut moves those before a place up by one.
func leaveOut[E any](list []E, at int) []E {
	copy(list[1:at+1], list[:at])
	return list[1:]
}

// touchShed follows up that changes have lost members, as touch does for each: nearly all that is behind one of them is another of
// them, and is looked at once for itself.
func (r *Ranking) touchShed(shed []*change, touched *changeSet) {
	if len(shed) == 0 {
		return
	}
	r.marks++
	mark := r.marks
	moved := make([]bool, len(shed))
	for i, c := range shed {
		was := c.likeliest
		c.likeliest = c.likelier()
		moved[i] = c.likeliest != was
		c.level()
		r.doubt(c)
		c.lookedOut = false
		r.drop(c)
		r.blur(c)
		c.marked = mark
		r.retimeRun(c, touched)
	}
	for i, c := range shed {
		for _, b := range c.behind {
			if b.of.marked == mark {
				if moved[i] {
					r.reweigh(b.of, b.at())
				}
				continue
			}
			r.retimeRun(b.of, touched)
			r.blur(b.of)
			r.doubt(b.of)
			b.of.lookedOut = false
			r.drop(b.of)
			r.reweigh(b.of, b.at())
		}
	}
}

// retimeRun looks again at the time of a change that runs: whether a path of its builds can still come about may be another thing now.
func (r *Ranking) retimeRun(c *change, touched *changeSet) {
	if len(c.runs) == 0 {
		return
	}
	if r.findOldest(c); r.retime(c) {
		touched.add(c)
	}
}
