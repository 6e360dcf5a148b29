package ranking

import (
	"slices"
)

// bounds holds, for one change, an upper bound of what the members that a path has not decided yet can make of it (M18).
// A search visits the beginnings of paths by their bounds. It may stop once no bound is above what it has found.
//
// The simple bound takes the likelier way of each undecided member by itself. It is far too high: member j is less
// likely to land with each member before it that lands (M8). With it alone, hundreds of paths are visited only to see
// that none is among the best.
//
// The charged bound takes these conflicts into account early. Deciding that k lands multiplies it at once by 1−r(j,k)
// for each later member j, as if j were to land too: k is charged. If j fails later, the factors that were charged for
// it are divided out again: they are refunded.
//
// Invariant: both bounds of a beginning are at least the worth of each path that begins so, but for rounding, which
// slack makes up for. The charged bound is exact if all members that are left land.
type bounds struct {
	members []bound
	// rest[j] is the simple bound of the factor by which members j and later multiply P_needed. likely[j] is the same
	// for the likelihood of the path, and promise[j] is the charged bound of that.
	rest, likely, promise []float64
	// refunds is the product of the refunds of all members that charge.
	refunds float64
	// bears[j] reports whether member j influences the chances of a later one. It is nil if all members matter
	// (change.matters).
	bears []bool
	// choices counts the members that matter and may go both ways.
	choices int
	// repeats reports whether the search visits paths that differ only in members that do not matter.
	repeats bool
}

// bound is what is known of one member before its path is known.
type bound struct {
	chance
	way
	// charges reports whether the conflicts of this member are charged to the members before it.
	charges bool
	// free is the probability that the member lands if none of the members before it does. It is set if charges is.
	free float64
	// charge is the product of 1−r(j,this) over the later members j that charge this one.
	charge float64
}

// chance holds the factors of q(j|S) (M8) that are the same on every path of the change. q is their product.
type chance struct {
	q float64
	// from is the place in coupled of the first factor that is not in q.
	from int32
}

const (
	// maxCharge is the highest conflict that is charged. The refund of a higher one would be more than 2.
	maxCharge = 0.5
	// maxRefunds bounds bounds.refunds, so that no product overflows.
	maxRefunds = 1e100
)

// newBounds returns the bounds of a change, nil if none of its builds can be needed enough (M16).
func (r *Ranking) newBounds(c *change) *bounds {
	n := len(c.members)
	b := &bounds{members: make([]bound, n), rest: make([]float64, n+1), promise: make([]float64, n+1), refunds: 1}
	for j := range b.members {
		b.members[j].charge = 1
	}
	ways := make([]way, n)
	needed := c.mostNeeded * slack
	for j := n - 1; j >= 0; j-- {
		ways[j] = r.waysOf(c, j, b)
		m, likelier := &c.members[j], max(ways[j].lands, ways[j].fails)
		needed *= m.factor(likelier) / m.maxWeight
		if needed < r.threshold() {
			return nil
		}
	}
	b.rest[n], b.promise[n] = 1, 1
	if b.likely = b.rest; c.funded {
		b.likely = make([]float64, n+1)
		b.likely[n] = 1
	}
	for j := n - 1; j >= 0; j-- {
		m, w := &c.members[j], ways[j]
		b.members[j].way = w
		b.promise[j] = b.promise[j+1] * max(w.lands*b.members[j].charge, w.fails*w.refund)
		likelier := max(w.lands, w.fails)
		if c.funded {
			b.likely[j] = b.likely[j+1] * likelier
		}
		b.rest[j] = b.rest[j+1] * m.factor(likelier)
	}
	r.findBearing(c, b)
	return b
}

// factor returns w(j) of M14 for a way of the member that has probability q.
func (m *member) factor(q float64) float64 { return m.fundedBefore + (1-m.fundedBefore)*q }

// way holds upper bounds, over all paths, of the probability that a member lands and that it fails. refund is the inverse
// of what was charged for the member: the charged bound is multiplied by it if the member fails.
type way struct{ lands, fails, refund float64 }

// waysOf returns the way of member j. It sets what b.members[j] holds of the member, and charges the members before it.
func (r *Ranking) waysOf(c *change, j int, b *bounds) way {
	m := &c.members[j]
	w := way{1, 1, 1}
	if m.ahead.MergeConflict {
		w.lands = 0
	} else if m.ahead.Required {
		w.fails = 0
	}
	of := m.pending()
	if of == nil {
		w.lands = 0
		return w
	}
	at, x := r.graph.Places(c.node, j), &b.members[j]
	x.q = of.success
	for int(x.from) < len(of.coupled) && at[of.coupled[x.from]] < 0 {
		x.q *= r.chanceOutside(c, &of.members[of.coupled[x.from]])
		x.from++
	}
	if !of.node.Unproven() && !of.isOpen(at) {
		// On some paths there may be evidence, so the chances are not a product and both ways stay possible. A member
		// that is green on every path lands on every path.
		if of.green && !r.graph.Held(of.node) && !slices.ContainsFunc(at, func(place int32) bool { return place < 0 || place >= int32(j) }) {
			w.fails = 0
		}
		return w
	}
	up, inside := x.q, 1.0
	x.charges = true
	for _, y := range of.coupled[x.from:] {
		o := &of.members[y]
		switch place := at[y]; {
		case place < 0:
			up *= r.chanceOutside(c, o)
		case place < int32(j):
			inside *= 1 - o.conflict
			x.charges = x.charges && o.conflict <= maxCharge
		}
	}
	w.lands, w.fails = w.lands*up, w.fails*(1-up*inside*(2-slack))
	if x.charges = x.charges && up > 0 && b.refunds < maxRefunds*inside; !x.charges {
		return w
	}
	w.refund = 1 / inside
	x.free = up
	b.refunds /= inside
	for _, y := range of.coupled[x.from:] {
		if place := at[y]; place >= 0 && place < int32(j) {
			b.members[place].charge *= 1 - of.members[y].conflict
		}
	}
	return w
}

// promised returns the factor by which the charged bound is multiplied when a member is decided. q is the probability
// that it lands on this path.
func (x *bound) promised(lands bool, q float64) float64 {
	switch {
	case lands && x.charges:
		return x.free * x.charge
	case lands:
		return q * x.charge
	case x.charges:
		return (1 - q) * (x.free / q)
	}
	return 1 - q
}

// isOpen reports whether the change has something ahead that another change does not have ahead. at holds the places of
// its members in that other change's A(c) (graph.Places). The paths of the other change leave such a member undecided,
// so no evidence is about them.
func (c *change) isOpen(at []int32) bool {
	return c.node.MissingRequirement == "" && slices.Contains(at, -1) && !slices.ContainsFunc(c.members, func(m member) bool { return m.sure })
}

// findBearing sets bears, choices and repeats. A member may decide nothing that is still to be built and yet influence
// the members behind it. Then both of its ways are searched: after the less likely one they may be likelier to land.
func (r *Ranking) findBearing(c *change, b *bounds) {
	if !slices.Contains(c.matters, false) {
		return
	}
	b.bears = make([]bool, len(c.members))
	for j := range c.members {
		of := c.members[j].pending()
		if of == nil {
			continue
		}
		at := r.graph.Places(c.node, j)
		bear := func(x int) {
			if place := at[x]; place >= 0 && place < int32(j) {
				b.bears[place] = true
			}
		}
		if of.node.Unproven() {
			for _, x := range of.coupled {
				bear(int(x))
			}
			continue
		}
		for x := range of.members { // evidence is about a path, which each member is part of (M9)
			bear(x)
		}
	}
	for j := range c.members {
		if c.isChoice(j) {
			b.choices++
		}
		b.repeats = b.repeats || !c.matters[j] && b.bears[j]
	}
}
