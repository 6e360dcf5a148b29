package ranking

// memberBound is an upper bound of a change's worth. It is refined one member at a time, and only until it is below what
// the caller asks for. A change whose bound is low enough needs no search.
//
// There are two other bounds, and this one lies between them:
//
//   - change.mostNeeded takes the likelier way of each member by itself. It is cheap, but where changes have only a few
//     ahead it is above nearly everything.
//   - The bounds of a search look at all pairs of members. They depend on marginals, and one event changes the marginals
//     of changes far behind it.
//
// This bound depends only on the predictions for the members and for the changes that the members have ahead. So an
// event invalidates it at most two steps behind itself.
//
// Invariant: no path of c is worth more. The reasons, for a member j of c without evidence:
//
//   - The probability that j lands on a path of c is a product (M8). For each k that j has ahead and c has not, it has
//     the factor 1 − m(k)·r(j,k). Its other factors are at most 1, and one of them is p(j).
//   - The marginal m(k) (M7) is p(k) times one factor per change that k has ahead, each at least 1 − r. So m(k) is at
//     least floor(k) = p(k)·Π(1−r). If there is evidence about k, or k requires a change, floor(k) is 0.
//   - So j lands with at most p(j)·Π(1 − floor(k)·r(j,k)). It fails with at most 1 − p(j)·Π(1−r), which is the case that
//     everything ahead of it lands.
//
// A member with evidence, or one that was not visited yet, counts with its likelier way. The product over the members of
// the greater of the two probabilities bounds M14. That holds with funded bypasses too, as w rises with P.
type memberBound struct {
	// mark is Ranking.marks as of the last bound that was computed for a change that has this one ahead.
	mark int
	// lossList is what losses returns. It is valid if lossesKnown.
	lossList []loss
	// marginalFloor is floor(k) for this change. failBound is the highest probability that it fails. Both hold only if
	// unproven: with evidence the probabilities are no products.
	marginalFloor, failBound float64
	lossesKnown, unproven    bool
	// worthAtMost is the bound, valid if bounded. lossesUsed reports whether the bound of a change behind was computed
	// from the losses of this one.
	bounded, lossesUsed bool
	worthAtMost         float64
	// membersSeen counts the members that the bound has visited. neededAtMost and likelyAtMost are mostNeeded and
	// mostLikely with these members' tighter bounds.
	membersSeen                int
	neededAtMost, likelyAtMost float64
}

// loss bounds how a change ahead lowers a change's probability to land, on paths that the one ahead is not part of.
type loss struct {
	of *change // the change ahead
	// left is the factor that remains at most: 1 − floor·r.
	left float64
}

// losses returns the losses of a change whose factor is less than 1.
func (c *change) losses() []loss {
	if c.lossesKnown {
		return c.lossList
	}
	c.lossList, c.lossesKnown = c.lossList[:0], true
	for _, x := range c.coupled {
		m := &c.members[x]
		if left := 1 - m.of.marginalFloor*m.conflict; left < 1 {
			c.lossList = append(c.lossList, loss{m.of, left})
		}
	}
	return c.lossList
}

// updateFloor computes unproven, marginalFloor and failBound, which the bounds of the changes behind rest on. It reports
// whether unproven and marginalFloor are as before.
func (c *change) updateFloor() (same bool) {
	open, floor := c.unproven, c.marginalFloor
	c.unproven, c.marginalFloor, c.failBound = c.node != nil && c.node.Unproven(), 0, 1-c.success*c.conflictFree
	if c.unproven {
		c.marginalFloor = c.success * c.conflictFree / slack // divided: 1 − floor·r may be far smaller than the rounding error of floor
	}
	return c.unproven == open && c.marginalFloor == floor
}

// tightenBound visits members until the bound is below enough, or no member is left.
func (r *Ranking) tightenBound(c *change, enough float64) {
	if !c.bounded {
		c.bounded, c.membersSeen = true, 0
		c.neededAtMost, c.likelyAtMost = c.mostNeeded, c.mostLikely
		c.worthAtMost = r.worthBound(c, c.mostNeeded, c.mostLikely)
	}
	if c.membersSeen == len(c.members) || c.worthAtMost < enough {
		return
	}
	r.marks++
	for j := range c.members {
		c.members[j].of.mark = r.marks
	}
	per, threshold := r.benefit(c)*slack, r.threshold()
	for c.membersSeen < len(c.members) && per*r.ordering(c.neededAtMost, c.likelyAtMost) >= enough && c.neededAtMost*slack >= threshold {
		m := &c.members[c.membersSeen]
		c.membersSeen++
		of := m.of
		if !m.current || !of.unproven {
			continue
		}
		lands, below := of.success, of.failBound
		for _, x := range of.losses() {
			if x.of.mark != r.marks {
				lands *= x.left
				of.lossesUsed = true
			}
		}
		likelier := max(lands, below)
		switch {
		case m.ahead.MergeConflict: // M5
			likelier = below
		case m.ahead.Required: // M5a
			likelier = lands
		}
		// Each factor that reweighAll took for the member is replaced by one that is no greater.
		c.neededAtMost *= (m.fundedBefore + (1-m.fundedBefore)*likelier) / m.maxWeight
		c.likelyAtMost *= likelier / likelierWayOf(m)
	}
	c.worthAtMost = r.worthBound(c, c.neededAtMost, c.likelyAtMost)
	r.keys[c.pendingAt] = c.worthAtMost
}

// dropLosses invalidates the losses of a change, and the bounds that have used them.
func (r *Ranking) dropLosses(c *change) {
	c.lossesKnown = false
	if !c.lossesUsed {
		return
	}
	c.lossesUsed = false
	for _, b := range c.behind {
		if b.of.bounded {
			b.of.bounded = false
			if b.of.search == nil {
				r.updateKey(b.of)
			}
		}
	}
}
