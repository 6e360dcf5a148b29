package ranking

// memberBound is a bound of a change's worth that is computed member by member, until it is below what is asked for. It
// lies between change.mostNeeded, which takes the likelier way of each member by itself and in a queue where changes
// have a few ahead is above nearly everything, and the bounds of a search, which look at all pairs of members and
// depend on marginals, which an event changes far behind itself. It depends only on what is predicted of the members
// and of the changes that these have ahead, so an event invalidates such bounds at most two steps behind itself.
//
// Why no path is worth more: the chances of member j on a path of c (M8) have the factor 1 − m(k)·r(j,k) for each k
// that j has ahead and c has not, and others of at most 1. By M7, m(k) is p(k) times a factor of at least 1 − r for
// each change that k has ahead, unless there is evidence about k, or k requires something: so it is at least floor(k) =
// p(k)·Π(1−r), or else 0. Therefore no path gives j more than p(j)·Π(1 − floor(k)·r(j,k)), over those k, to land, nor
// more than 1 − p(j)·Π(1−r) to fail; with evidence about j it may be 1. The product of the greater of each bounds that
// of M14, also where a bypass is funded, for w rises with P. Members that were not visited yet are in the product with
// their likelier way.
type memberBound struct {
	// mark is Ranking.marks of the last bound that was computed for a change that has this one ahead.
	mark int
	// lossList is valid if lossesKnown.
	lossList []loss
	// marginalFloor bounds the marginal from below, whatever becomes of others. failBound is 1 less the chance to land
	// if all changes ahead land. Both hold only if unproven: without evidence the chances are a product.
	marginalFloor, failBound float64
	lossesKnown, unproven    bool
	// worthAtMost is the bound, valid if bounded. lossesUsed reports whether the bound of a change behind has used the
	// losses.
	bounded, lossesUsed bool
	worthAtMost         float64
	// membersSeen is how many members the bound has visited. neededAtMost and likelyAtMost are mostNeeded and
	// mostLikely with what was found of them.
	membersSeen                int
	neededAtMost, likelyAtMost float64
}

// loss is the factor that a change ahead leaves at most of a change's chances where it is not on the path.
type loss struct {
	of   *change
	left float64
}

// losses returns the losses of a change that are less than 1.
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

// updateFloor sets what the bounds of the changes behind use of this change, and reports whether it is as before.
func (c *change) updateFloor() (same bool) {
	open, floor := c.unproven, c.marginalFloor
	c.unproven, c.marginalFloor, c.failBound = c.node != nil && c.node.Unproven(), 0, 1-c.success*c.conflictFree
	if c.unproven {
		c.marginalFloor = c.success * c.conflictFree / slack // 1 − floor·r may be far smaller than the rounding error of floor
	}
	return c.unproven == open && c.marginalFloor == floor
}

// tightenBound visits members until the bound is below enough, or none is left.
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
		// Each replaces what reweighAll has taken for the member by something that is no greater.
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
