package ranking

import (
	"slices"

	"landfall.build/engine/graph"
	eventsv1 "landfall.build/events/v1"
)

// removeDeparted removes the changes that are gone by a delta from the changes behind them that the delta does not
// write (graph.Without), whose nodes are given. When the head of a queue lands in which all changes conflict, these are
// all of them: what is kept of the other members stays, and what is kept of a change's chances is corrected instead of
// being computed again.
func (r *Ranking) removeDeparted(d *eventsv1.GraphDelta, nodes []*graph.Node) (shrunk []*change) {
	if len(nodes) == 0 {
		return nil
	}
	shrunk = make([]*change, len(nodes))
	for i, n := range nodes {
		shrunk[i] = r.changes[n.Change.Change]
		shrunk[i].nextNode = n
	}
	for _, g := range d.Gone {
		gone := r.changes[g.Change.Change]
		if gone == nil {
			continue
		}
		for i := len(gone.behind) - 1; i >= 0; i-- { // backwards: unlink moves the last one, which has been visited
			b := gone.behind[i]
			if b.of.nextNode != nil && b.of.members[b.at()].ahead.Change.Revision == g.Change.Revision {
				r.removeMember(b.of, b.at())
			}
		}
	}
	for _, c := range shrunk {
		bare := isBare(c.node) && isBare(c.nextNode) && len(c.nextNode.Classes) > 0
		same := bare && c.node.Unproven() == c.nextNode.Unproven()
		if c.node, c.nextNode = c.nextNode, nil; !bare {
			c.classify()
		}
		if !same {
			c.updateVisible()
		}
		if r.updatePending(c); c.multiplications > maxMultiplications {
			r.reweighAll(c)
		}
	}
	return shrunk
}

// isBare reports whether a node has no evidence and is affected through no members. Then its classes only decide which
// members are in one.
func isBare(n *graph.Node) bool {
	return n.Guard == nil && len(n.Paths) == 0 &&
		!slices.ContainsFunc(n.Classes, func(k graph.Class) bool { return len(k.Class.Outcomes)+len(k.Through) > 0 })
}

// removeMember removes one member. Those before it move up by one place, so that nothing changes for those behind it.
func (r *Ranking) removeMember(c *change, at int) {
	m := c.members[at]
	if p, known := r.pairs[c.id][m.of.id]; known && p.ahead == m.ahead.Change.Revision {
		r.dropPair(c, m.of)
	}
	c.unlink(&m)
	for j := at; j > 0; j-- {
		c.members[j] = c.members[j-1]
		c.members[j].of.behind[c.members[j].behindAt].member++
	}
	copy(c.matters[1:at+1], c.matters[:at])
	c.members, c.matters = c.members[1:], c.matters[1:]
	c.departed++
	r.removeCoupled(c, at)
	c.multiplications++
	if c.funded || c.mostNeeded < minProduct {
		c.multiplications = maxMultiplications + 1
		return
	}
	c.mostNeeded /= m.maxWeight
	c.mostLikely = c.mostNeeded
}

// removeCoupled removes a member from those that influence the change.
func (r *Ranking) removeCoupled(c *change, at int) {
	place, bears := slices.BinarySearch(c.coupled, int32(at))
	if bears {
		if len(c.visible.coupled) == len(c.coupled) {
			c.visible.coupled = leaveOut(c.visible.coupled, place)
		}
		c.coupled, c.conflictFreeFrom = leaveOut(c.coupled, place), leaveOut(c.conflictFreeFrom, place)
	}
	for x := place; x < len(c.coupled); x++ {
		c.coupled[x]--
	}
	if bears {
		c.updateConflictFree(place)
	}
}

// leaveOut removes an element by moving those before it up by one.
func leaveOut[E any](list []E, at int) []E {
	copy(list[1:at+1], list[:at])
	return list[1:]
}

// updateShrunk follows up that changes have lost members, as update does for one change: nearly every change behind one
// of them is another of them, and is updated once.
func (r *Ranking) updateShrunk(shrunk []*change, touched *changeSet) {
	if len(shrunk) == 0 {
		return
	}
	r.marks++
	mark := r.marks
	moved := make([]bool, len(shrunk))
	for i, c := range shrunk {
		was := c.likelierWay
		c.likelierWay = c.likelierWayBound()
		moved[i] = c.likelierWay != was
		c.updateFloor()
		r.queueMarginal(c)
		c.bounded = false
		r.dropSearch(c)
		r.dropLosses(c)
		c.mark = mark
		r.updateRunTime(c, touched)
	}
	for i, c := range shrunk {
		for _, b := range c.behind {
			if b.of.mark == mark {
				if moved[i] {
					r.reweighMember(b.of, b.at())
				}
				continue
			}
			r.updateRunTime(b.of, touched)
			r.dropLosses(b.of)
			r.queueMarginal(b.of)
			b.of.bounded = false
			r.dropSearch(b.of)
			r.reweighMember(b.of, b.at())
		}
	}
}

// updateRunTime updates the time of a change with builds: whether the path of one can still come about may have
// changed.
func (r *Ranking) updateRunTime(c *change, touched *changeSet) {
	if len(c.runs) == 0 {
		return
	}
	if r.findOldest(c); r.updateTime(c) {
		touched.add(c)
	}
}
