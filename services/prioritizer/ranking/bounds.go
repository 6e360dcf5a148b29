package ranking

import (
	"slices"
)

// bounds say what a path that begins in some way can be worth at most (M18).
//
// Member j's chances fall with each member before it that lands (M8), so the likelier way of each by itself is far from
// what a whole path can be: there one has to look at hundreds of paths to see that none is among the best. Therefore
// 1−r(j,k) is charged where k is decided, as if j were to land, and where j fails it is given back. What a path is worth
// is never above that, and where all that is left lands it is just that.
type bounds struct {
	members []bound
	// rest[j] is the most that members j and later can leave of what a path is needed with, likely[j] of how likely it
	// is, each taken by itself; promise[j] is that with what they charge and give back.
	rest, likely, promise []float64
	// refunds is the product of all that may be given back.
	refunds float64
	// bears[j]: what becomes of member j bears on a later one's chances; nil where all members matter anyway.
	bears []bool
	// choices is how many members matter and may go both ways.
	choices int
	// repeats: paths that differ in what does not matter are looked at.
	repeats bool
}

// bound is what holds of a member on every path.
type bound struct {
	chance
	way
	// free is q where nothing that the change has ahead lands, if the member charges.
	free float64
	// charge is what its landing leaves of the chances of those behind it that charge it.
	charge float64
	// charges says that its own chances are charged to those before it.
	charges bool
}

// chance is the beginning of the product that q(j|S) of M8 is: what is the same on every path of a change.
type chance struct {
	q float64
	// from is where the product goes on, in coupled.
	from int32
}

// maxCharge is the highest conflict that is charged to another, maxRefunds how far numbers may grow by what is given back.
const (
	maxCharge  = 0.5
	maxRefunds = 1e100
)

// limits works the bounds of a change out, nil if none of its builds can be needed enough (M16).
func (r *Ranking) limits(c *change) *bounds {
	n := len(c.members)
	b := &bounds{members: make([]bound, n), rest: make([]float64, n+1), promise: make([]float64, n+1), refunds: 1}
	for j := range b.members {
		b.members[j].charge = 1
	}
	ways := make([]way, n)
	needed := c.most * slack
	for j := n - 1; j >= 0; j-- {
		ways[j] = r.waysOf(c, j, b)
		m, likelier := &c.members[j], max(ways[j].lands, ways[j].fails)
		needed *= m.factor(likelier) / m.weight
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

// factor is w(j) of M14 for a way of the member that comes about with probability q.
func (m *member) factor(q float64) float64 { return m.before + (1-m.before)*q }

// way is how likely a member at most lands or fails, on any path, and the most that it gives back where it fails.
type way struct{ lands, fails, refund float64 }

// waysOf finds out about member j, and charges those before it.
func (r *Ranking) waysOf(c *change, j int, b *bounds) way {
	m := &c.members[j]
	w := way{1, 1, 1}
	if m.ahead.MergeConflict {
		w.lands = 0
	} else if m.ahead.Required {
		w.fails = 0
	}
	of := m.at()
	if of == nil {
		w.lands = 0
		return w
	}
	at, x := r.graph.Places(c.node, j), &b.members[j]
	x.q = of.success
	for int(x.from) < len(of.coupled) && at[of.coupled[x.from]] < 0 {
		x.q *= r.outside(c, &of.members[of.coupled[x.from]])
		x.from++
	}
	if !of.node.Unproven() && !of.isOpen(at) {
		// Of some paths it may be known; if of all, it lands.
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
			up *= r.outside(c, o)
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

// promised is what deciding a member leaves of the bound, where it lands with probability q.
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

// isOpen says that a member has something ahead that the change has not, so that nothing is known of it on the change's paths.
func (c *change) isOpen(at []int32) bool {
	return c.node.MissingRequirement == "" && slices.Contains(at, -1) && !slices.ContainsFunc(c.members, func(m member) bool { return m.sure })
}

// findBearing finds out which members that do not matter by themselves bear on others: of these both ways are
// followed, for the less likely one may leave more to those behind it.
func (r *Ranking) findBearing(c *change, b *bounds) {
	if !slices.Contains(c.matters, false) {
		return
	}
	b.bears = make([]bool, len(c.members))
	for j := range c.members {
		of := c.members[j].at()
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
		for x := range of.members { // what is known of it is known of paths (M9)
			bear(x)
		}
	}
	for j := range c.members {
		if c.chooses(j) {
			b.choices++
		}
		b.repeats = b.repeats || !c.matters[j] && b.bears[j]
	}
}
