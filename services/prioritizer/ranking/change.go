package ranking

import (
	eventsv1 "landfall.build/events/v1"
	"landfall.build/services/graph"
	"landfall.build/services/profiler/bypass"
)

// change is what is kept of a pending change from one ranking to the next: an input touches few of many, and
// looking everything up anew by name would take longer than the search.
type change struct {
	// node is nil once the change has left.
	node *graph.Node
	// version rises when anything here but the part of one round changes.
	version int
	members []member
	success float64
	// least is q of M8 if all that it has ahead lands: no path gives less, but for evidence.
	least float64
	// buildable: every class has targets; else it does not merge as things stand.
	buildable bool
	// matters[j]: some class that member j is in has a version that is not known. The other members
	// decide nothing that is still to be built, so of their two ways only the likelier is followed.
	matters []bool
	// places[j] is where what member j has ahead stands in this change's own A(c), made when the search
	// first weighs the member.
	places []placesOf

	// What follows is of one round.
	round    int
	place    int
	marginal float64 // m of M7
	timed    int     // the round of start and duration
	start    float64
	duration bypass.Duration
	// before[j] is F(i,j) where member j is bypassable (M13), else 0.
	before []float64
	// rest[j] is the most that members j and later can leave of a path's worth.
	rest []float64
	// first is the best path that was listed, seen the versions that it and others wait for.
	first *partial
	seen  map[string]bool
}

// member is a member of A(c).
type member struct {
	ahead    *eventsv1.Ahead
	conflict float64 // r
	of       *change // see Ranking.named
}

// placesOf holds, for each x that a member has ahead, the place of x in another change's A(c), -1 if none.
type placesOf struct {
	of      *change
	version int
	place   []int
}

// refresh draws anew what is kept of a change.
func (r *Ranking) refresh(id string) {
	c, n := r.changes[id], r.graph.Node(id)
	if n == nil {
		if c != nil {
			c.node = nil
			delete(r.changes, id)
		}
		return
	}
	if c == nil {
		c = &change{}
		r.changes[id] = c
	}
	c.node, c.success, c.buildable = n, 1, true
	c.version++
	if p := r.predictions[id]; p != nil {
		c.success = p.Success
	}
	c.least = c.success
	c.members = make([]member, len(n.Ahead))
	conflicts := r.conflicts[id]
	for j, a := range n.Ahead {
		c.members[j] = member{ahead: a, conflict: conflicts[a.Change.Change]}
		c.least *= 1 - c.members[j].conflict
		if a.Required {
			c.least = 0
		}
	}
	c.matters, c.places = make([]bool, len(n.Ahead)), make([]placesOf, len(n.Ahead))
	for _, k := range n.Classes {
		if len(k.Targets) == 0 {
			c.buildable = false
		}
		if len(k.Class.Outcomes) >= 1<<min(len(k.Members), 30) {
			continue
		}
		for _, m := range k.Members {
			c.matters[m] = true
		}
	}
}

// named is the pending change of a member's id, at whatever revision; nil if there is none.
func (r *Ranking) named(m *member) *change {
	if m.of == nil || m.of.node == nil {
		m.of = r.changes[m.ahead.Change.Change]
	}
	return m.of
}

// at is the same, but nil for another revision.
func (r *Ranking) at(m *member) *change {
	if c := r.named(m); c != nil && c.node.Change.Revision == m.ahead.Change.Revision {
		return c
	}
	return nil
}

// time is what is left of a change's work, from now on if nothing of it runs, and when that began.
func (r *Ranking) time(c *change) (start float64, d bypass.Duration) {
	if c.timed != r.round {
		c.timed = r.round
		c.start, c.duration = r.timeOf(c.node.Change.Change)
	}
	return c.start, c.duration
}

func (r *Ranking) timeOf(id string) (start float64, d bypass.Duration) {
	q := r.predictions[id]
	d = bypass.Duration{Mean: q.GetDurationMeanUs() / 1e6, Std: q.GetDurationStdUs() / 1e6}
	now := float64(r.now) / 1e6
	if s, running := r.started[id]; running {
		at := float64(s.at) / 1e6
		return at, d.Beyond(now - at)
	}
	return now, d
}

// marginals computes m(j) of M7, in queue order.
func (r *Ranking) marginals() {
	for place, n := range r.graph.Order() {
		c := r.changes[n.Change.Change]
		p := c.success
		for j := range c.members {
			m := &c.members[j]
			if m.ahead.Required {
				p *= r.marginal(m) * (1 - m.conflict) // M5a
			} else if m.ahead.Conflicts {
				p *= 1 - r.marginal(m)*m.conflict
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
		c.round, c.place, c.marginal = r.round, place, p
	}
}

// marginal is m of a member; 0 for what is not pending, or stands behind.
func (r *Ranking) marginal(m *member) float64 {
	if c := r.named(m); c != nil && c.round == r.round {
		return c.marginal
	}
	return 0
}
