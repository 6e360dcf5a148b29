package ranking

import (
	"slices"

	"landfall.build/services/graph"
)

// doubt has a change's marginal looked at again before it is used.
func (r *Ranking) doubt(c *change) {
	if c.node == nil {
		r.unwatch(c)
	} else if c.marginalOK && !c.doubted {
		c.doubted = true
		r.doubted.push(c)
	}
}

// unwatch gives up the searches that rest on a marginal.
func (r *Ranking) unwatch(c *change) {
	for _, w := range c.watchers {
		r.drop(w)
	}
	c.watchers = c.watchers[:0]
}

// settleMarginals looks at what is doubted in queue order, and on behind what has moved. What a change's chances do to
// those far behind it grows smaller with every step, until it is lost in the rounding: there it ends.
func (r *Ranking) settleMarginals() {
	for len(r.doubted) > 0 {
		c := r.doubted.pop()
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

// doubts are changes in queue order, a heap: those that are pushed while others are taken stand behind them.
type doubts []*change

func (d doubts) before(x, y int) bool { return d[x].node.Position < d[y].node.Position }

func (d *doubts) push(c *change) {
	h := append(*d, c)
	for i := len(h) - 1; i > 0; {
		up := (i - 1) / 2
		if !h.before(i, up) {
			break
		}
		h[i], h[up] = h[up], h[i]
		i = up
	}
	*d = h
}

func (d *doubts) pop() *change {
	h := *d
	top, last := h[0], len(h)-1
	h[0], h[last] = h[last], nil
	h = h[:last]
	for i := 0; ; {
		first := i
		for _, down := range [2]int{2*i + 1, 2*i + 2} {
			if down < last && h.before(down, first) {
				first = down
			}
		}
		if first == i {
			break
		}
		h[i], h[first] = h[first], h[i]
		i = first
	}
	*d = h
	return top
}

// forgetDoubt takes a change that leaves out of the heap, whose order rests on its node.
func (r *Ranking) forgetDoubt(c *change) {
	if !c.doubted {
		return
	}
	c.doubted = false
	rest := slices.DeleteFunc(r.doubted, func(o *change) bool { return o == c })
	r.doubted = r.doubted[:0]
	for _, o := range rest {
		r.doubted.push(o)
	}
}

// marginalOf is m of M7; 0 for what is not pending.
func (r *Ranking) marginalOf(c *change) float64 {
	if c.node == nil {
		return 0
	}
	if c.marginalOK {
		return c.marginal
	}
	n, p := c.node, c.success
	for j := range c.members {
		m := &c.members[j]
		switch {
		case m.of.node == nil || m.of.node.Position >= n.Position:
			// It is not pending, or was moved behind: nothing of it is ahead.
			if m.ahead.Required {
				p = 0
			}
		case m.ahead.Required:
			p *= r.marginalOf(m.of) * (1 - m.conflict) // M5a
		case m.ahead.Conflicts:
			p *= 1 - r.marginalOf(m.of)*m.conflict
		}
	}
	switch {
	case n.MissingRequirement != "":
		p = 0
	case len(n.Ahead) == 0 && n.Analyzed:
		switch n.Path(none) {
		case graph.Green:
			if !r.graph.Held(n) {
				p = 1
			}
		case graph.Red:
			p = 0
		}
	}
	c.marginal, c.marginalOK = p, true
	return c.marginal
}
