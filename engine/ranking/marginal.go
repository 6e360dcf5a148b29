package ranking

import (
	"cmp"
	"slices"

	"landfall.build/engine/graph"
)

// queueMarginal has the marginal of a change computed again before it is used.
func (r *Ranking) queueMarginal(c *change) {
	if c.node == nil {
		r.dropWatchers(c)
	} else if c.marginalKnown && !c.marginalQueued {
		c.marginalQueued = true
		push(&r.staleMarginals, staleMarginal{c})
	}
}

// dropWatchers drops the searches that have used a marginal.
func (r *Ranking) dropWatchers(c *change) {
	before := len(r.unweighed)
	for w := range c.watchers {
		r.dropSearch(w)
	}
	slices.SortFunc(r.unweighed[before:], func(a, b *change) int { return cmp.Compare(a.id, b.id) })
}

// updateMarginals computes the queued marginals in queue order, and queues those behind a marginal that has changed.
// The influence of a change on those far behind it falls with every step, until it is lost in the rounding: there it
// ends.
func (r *Ranking) updateMarginals() {
	for len(r.staleMarginals) > 0 {
		c := pop(&r.staleMarginals).change
		if c.marginalQueued = false; c.node == nil || !c.marginalKnown {
			continue
		}
		was := c.marginal
		c.marginalKnown = false
		if r.marginalOf(c) == was {
			continue
		}
		r.dropWatchers(c)
		for _, b := range c.behind {
			r.queueMarginal(b.of)
		}
	}
}

// staleMarginal is a change whose marginal is to be computed again. They are ordered as in the queue.
type staleMarginal struct{ *change }

func (a *staleMarginal) before(b *staleMarginal) bool { return a.node.Position < b.node.Position }

// marginalOf returns m of M7, 0 for a change that is not pending.
func (r *Ranking) marginalOf(c *change) float64 {
	if c.node == nil {
		return 0
	}
	if !c.marginalKnown {
		c.marginal, c.marginalKnown = r.marginalFrom(c, r.marginalOf), true
	}
	return c.marginal
}

// marginalFrom returns m of M7 of a pending change, from those of the changes before it.
func (r *Ranking) marginalFrom(c *change, of func(*change) float64) float64 {
	n, p := c.node, c.success
	for _, j := range c.coupled {
		m := &c.members[j]
		switch {
		case m.of.node == nil || m.of.node.Position >= n.Position:
			// It is not pending, or was moved behind: it is not ahead any more.
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
