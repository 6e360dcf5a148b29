package ranking

import (
	"slices"
)

// bounds bound the worth of paths by how they begin (M18).
//
// The chances of member j fall with each member before it that lands (M8), so the product of each member's likelier way
// is far above the worth of a whole path: with that bound, hundreds of paths have to be visited to see that none is
// among the best. Therefore 1−r(j,k) is charged when k is decided, as if j were to land, and refunded if j fails. The
// bound is never below the worth of a path, and equal to it if all members that are left land.
type bounds struct {
	members []bound
	// rest[j] bounds the factor by which members j and later multiply what a path is needed with, likely[j] the one of
	// its likelihood, both without charges. promise[j] is likely[j] with charges and refunds.
	rest, likely, promise []float64
	// refunds is the product of all possible refunds.
	refunds float64
	// bears[j] reports whether member j influences the chances of a later one. It is nil if all members matter anyway.
	bears []bool
	// choices is how many members matter and may go both ways.
	choices int
	// repeats reports whether paths are searched that differ only in members that do not matter.
	repeats bool
}

// bound holds what is true of a member on every path.
type bound struct {
	chance
	way
	// free is q if no change ahead lands, for a member that charges.
	free float64
	// charge is the factor by which its landing multiplies the chances of the members behind it that charge it.
	charge float64
	// charges reports whether the conflicts of this member are charged to those before it.
	charges bool
}

// chance is the beginning of the product q(j|S) of M8 that is the same on every path of a change.
type chance struct {
	q float64
	// from is the place in coupled at which the product continues.
	from int32
}

// maxCharge is the highest conflict that is charged, maxRefunds bounds the product of refunds.
const (
	maxCharge  = 0.5
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

// way bounds how likely a member lands or fails, on any path, and what is refunded if it fails.
type way struct{ lands, fails, refund float64 }

// waysOf returns the way of member j, and charges the members before it.
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
		// Some paths may have evidence. If all have, it lands.
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

// promised returns the factor by which deciding a member multiplies the bound, if it lands with probability q.
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

// isOpen reports whether the change has something ahead that another change, whose places are given, has not. Then
// there is no evidence about it on the paths of the other one.
func (c *change) isOpen(at []int32) bool {
	return c.node.MissingRequirement == "" && slices.Contains(at, -1) && !slices.ContainsFunc(c.members, func(m member) bool { return m.sure })
}

// findBearing finds the members that do not matter themselves but influence others. Both of their ways are searched, as
// the less likely one may leave more to the members behind.
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
		for x := range of.members { // evidence is about paths (M9)
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
