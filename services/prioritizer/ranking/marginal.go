package ranking

import (
	"cmp"
	"slices"

	"landfall.build/services/graph"
)

// doubt has a change's marginal looked at again before it is used.
func (r *Ranking) doubt(c *change) {
	if c.node == nil {
		r.unwatch(c)
	} else if c.marginalOK && !c.doubted {
		c.doubted = true
		push(&r.doubted, doubt{c})
	}
}

// unwatch gives up the searches that rest on a marginal.
func (r *Ranking) unwatch(c *change) {
	before := len(r.unweighed)
	for w := range c.watchers {
		r.drop(w)
	}
	slices.SortFunc(r.unweighed[before:], func(a, b *change) int { return cmp.Compare(a.id, b.id) })
}

// settleMarginals looks at what is doubted in queue order, and on behind what has moved. What a change's chances do to
// those far behind it grows smaller with every step, until it is lost in the rounding: there it ends.
func (r *Ranking) settleMarginals() {
	for len(r.doubted) > 0 {
		c := pop(&r.doubted).change
		if c.doubted = false; c.node == nil || !c.marginalOK {
			continue
		}
		was := c.marginal
		c.marginalOK = false
		if r.marginalOf(c) == was {
			continue
		}
		r.unwatch(c)
		for _, b := range c.behind {
			r.doubt(b.of)
		}
	}
}

// doubt is a change whose marginal is looked at again, in queue order.
type doubt struct{ *change }

func (a *doubt) before(b *doubt) bool { return a.node.Position < b.node.Position }

// marginalOf is m of M7; 0 for what is not pending.
func (r *Ranking) marginalOf(c *change) float64 {
	if c.node == nil {
		return 0
	}
	if !c.marginalOK {
		c.marginal, c.marginalOK = r.marginalFrom(c, r.marginalOf), true
	}
	return c.marginal
}

// marginalFrom is m of M7 of a pending change, from those of the changes before it.
func (r *Ranking) marginalFrom(c *change, of func(*change) float64) float64 {
	n, p := c.node, c.success
	for _, j := range c.coupled {
		m := &c.members[j]
		switch {
		case m.of.node == nil || m.of.node.Position >= n.Position:
			// It is not pending, or was moved behind: nothing of it is ahead.
			if m.ahead.Required {
				p = 0
			}
		case m.ahead.Required:
			p *= of(m.of) * (1 - m.conflict) // M5a
		case m.ahead.Conflicts:
			p *= 1 - of(m.of)*m.conflict
		}
	}
	switch {
	case n.MissingRequirement != "":
		return 0
	case len(n.Ahead) == 0 && n.Analyzed:
		switch n.Path(none) {
		case graph.Green:
			if !r.graph.Held(n) {
				return 1
			}
		case graph.Red:
			return 0
		}
	}
	return p
}
