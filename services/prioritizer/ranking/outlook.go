package ranking

// outlook is a bound between the one that takes the likelier way of each member for itself (change.most), which in a queue where each
// change has a few ahead nearly all are above, and that of a search (bounds), which looks at all pairs of members and rests on
// marginals, which an event moves far behind itself. It is looked at member by member, until it is below what is asked for. It rests
// on what was said of the members and of those that they have ahead, and on nothing else: an event takes away no outlooks but of
// those up to two steps behind it.
//
// Why no path is worth more: the chances of member j on a path of c (M8) have the factor 1 − m(k)·r(j,k) for each k that j has
// ahead and c has not, and others of at most 1. By M7, m(k) is p(k) times a factor of at least 1 − r for each change that k has
// ahead, unless something is known of k, or k requires something: it is at least floor(k) = p(k)·Π(1−r), or else 0. So no path gives
// j more than p(j)·Π(1 − floor(k)·r(j,k)) over those k to land with, nor more than 1 − p(j)·Π(1−r) to fail with; of one of which
// something is known it may give it 1. The product of the greater of each is M14's, or what is greater where a bypass is funded, for w
// rises with P. Members that were not looked at yet are in it with their likelier way.
type outlook struct {
	// marked is Ranking.marks of the last outlook of one that has this change ahead.
	marked int
	// lost are its losses, worked out if lossesOK.
	lost []loss
	// floor is at most the marginal, whatever becomes of others; below is what is left of 1 by the chances that the change has where all
	// lands that it has ahead. Both only if it is unproven: nothing is known of it, so that its chances are a product.
	floor, below       float64
	lossesOK, unproven bool
	// atMost is the most that a build of the change can be worth, if lookedOut; lookedPast says that the outlook of one behind it
	// rests on what it loses.
	lookedOut, lookedPast bool
	atMost                float64
	// looked is how many members the outlook has seen, outMost and outLikely are change.most and mostLikely with what it knows of them.
	looked             int
	outMost, outLikely float64
}

// loss is what is left at most of a change's chances by one that it has ahead, where that is not on the path.
type loss struct {
	of   *change
	left float64
}

// losses are those of a change that leave less than everything.
func (c *change) losses() []loss {
	if c.lossesOK {
		return c.lost
	}
	c.lost, c.lossesOK = c.lost[:0], true
	for _, x := range c.coupled {
		m := &c.members[x]
		if left := 1 - m.of.floor*m.conflict; left < 1 {
			c.lost = append(c.lost, loss{m.of, left})
		}
	}
	return c.lost
}

// level notes what the outlooks of those behind a change take of it, and says whether that is as before.
func (c *change) level() (same bool) {
	open, floor := c.unproven, c.floor
	c.unproven, c.floor, c.below = c.node != nil && c.node.Unproven(), 0, 1-c.success*c.spared
	if c.unproven {
		c.floor = c.success * c.spared / slack // 1 − floor·r may be far smaller than what floor is rounded by
	}
	return c.unproven == open && c.floor == floor
}

// lookOut works the outlook of a change out, as far as nothing is known to be worth less than enough.
func (r *Ranking) lookOut(c *change, enough float64) {
	if !c.lookedOut {
		c.lookedOut, c.looked = true, 0
		c.outMost, c.outLikely = c.most, c.mostLikely
		c.atMost = r.mostWorth(c, c.most, c.mostLikely)
	}
	if c.looked == len(c.members) || c.atMost < enough {
		return
	}
	r.marks++
	for j := range c.members {
		c.members[j].of.marked = r.marks
	}
	per, threshold := r.benefit(c)*slack, r.threshold()
	for c.looked < len(c.members) && per*r.ordering(c.outMost, c.outLikely) >= enough && c.outMost*slack >= threshold {
		m := &c.members[c.looked]
		c.looked++
		of := m.of
		if !m.current || !of.unproven {
			continue
		}
		lands, below := of.success, of.below
		for _, x := range of.losses() {
			if x.of.marked != r.marks {
				lands *= x.left
				of.lookedPast = true
			}
		}
		likelier := max(lands, below)
		switch {
		case m.ahead.MergeConflict: // M5
			likelier = below
		case m.ahead.Required: // M5a
			likelier = lands
		}
		// Each is what c.weighAll has taken for it times something that is at most 1.
		c.outMost *= (m.before + (1-m.before)*likelier) / m.weight
		c.outLikely *= likelier / likeliest(m)
	}
	c.atMost = r.mostWorth(c, c.outMost, c.outLikely)
	r.keys[c.slot] = c.atMost
}

// blur takes the outlooks away that rest on what a change loses to those that it has ahead.
func (r *Ranking) blur(c *change) {
	c.lossesOK = false
	if !c.lookedPast {
		return
	}
	c.lookedPast = false
	for _, b := range c.behind {
		if b.of.lookedOut {
			b.of.lookedOut = false
			if b.of.search == nil {
				r.rekey(b.of)
			}
		}
	}
}
