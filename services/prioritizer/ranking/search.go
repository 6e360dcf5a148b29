package ranking

import (
	"strings"

	eventsv1 "landfall.build/events/v1"
	"landfall.build/services/graph"
	"landfall.build/services/memberset"
	"landfall.build/services/profiler/bypass"
)

// slack makes up for the rounding in a bound, which is a product in another order than the value that it
// bounds: a bound must never be below it.
const slack = 1 + 1e-9

// best is the K best builds that are still to be done, in the order of M17.
func (r *Ranking) best() *eventsv1.Ranking {
	r.round++
	out := &eventsv1.Ranking{Exact: true}
	want := int(r.graph.Settings.GetBest())
	if want == 0 {
		want = 64
	}
	if n := r.graph.Check; n != nil {
		if v, _ := n.Outstanding(none); len(v) > 0 {
			out.Best = append(out.Best, &eventsv1.RankedBuild{Change: n.Change, Needed: 1, Value: 1})
		}
	}
	for _, n := range r.graph.Order() {
		// What the land guard asked for comes before all others (M21).
		if n.Guard != nil && len(n.Guard.Missing) > 0 && n.Path(memberset.New(len(n.Ahead))) == graph.Unknown {
			out.Best = append(out.Best, &eventsv1.RankedBuild{Change: n.Change, Needed: 1, Value: 1})
		}
	}
	r.marginals()
	threshold := r.graph.Settings.GetThreshold()
	var f frontier
	for _, n := range r.graph.Order() {
		if c := r.changes[n.Change.Change]; r.enter(c, threshold) {
			p := partial{c: c, set: memberset.New(len(n.Ahead)), needed: 1, value: c.benefit()}
			p.bound = c.bound(&p)
			f.push(p)
		}
	}
	for spent := 0; len(f) > 0 && len(out.Best) < want; spent++ {
		if spent > searchNodes {
			out.Exact = false
			break
		}
		p := f.pop()
		if !p.complete() {
			r.extend(&f, &p, threshold)
		} else if b := r.build(&p); b != nil {
			out.Best = append(out.Best, b)
		}
	}
	return out
}

func (c *change) benefit() float64 {
	if c.node.Benefit == 0 {
		return 1
	}
	return c.node.Benefit
}

// bound is the most that a path can be worth which begins like p.
func (c *change) bound(p *partial) float64 {
	if p.complete() {
		return p.value
	}
	return p.value * c.rest[p.depth] * slack
}

// enter is false for a change that nothing is to be built for, or nothing that is worth a worker (M16).
func (r *Ranking) enter(c *change, threshold float64) bool {
	n := c.node
	if !n.Analyzed || n.Intended || n.MissingRequirement != "" || !c.buildable {
		return false
	}
	c.first, c.seen = nil, nil
	c.before, c.rest = c.before[:0], c.rest[:0]
	most := slack
	for j := range c.members {
		m := &c.members[j]
		f := r.bypassable(c, m)
		w := f + (1-f)*r.likeliest(m)
		c.before, c.rest = append(c.before, f), append(c.rest, w)
		if most *= w; most < threshold {
			return false
		}
	}
	for j := len(c.rest) - 2; j >= 0; j-- {
		c.rest[j] *= c.rest[j+1]
	}
	return true
}

// likeliest is at least the probability of the likelier way of a member, on any path.
func (r *Ranking) likeliest(m *member) float64 {
	of := r.at(m)
	if of == nil || !of.node.Unproven() || m.ahead.MergeConflict || m.ahead.Required {
		return 1
	}
	return max(of.success, 1-of.least)
}

// bypassable is F(i,j) if member j is bypassable by c (M13), else 0.
func (r *Ranking) bypassable(c *change, m *member) float64 {
	settings := r.graph.Settings
	if settings == nil || settings.BypassThreshold == nil || m.ahead.Required {
		return 0
	}
	of := r.at(m)
	if of != nil && len(of.node.Holds) > 0 {
		return 1 // whoever holds it decides when it finishes; nobody waits for that
	}
	ti, di := r.time(c)
	var tj float64
	var dj bypass.Duration
	if of != nil {
		tj, dj = r.time(of)
	} else {
		tj, dj = r.timeOf(m.ahead.Change.Change)
	}
	if f := bypass.FinishesBefore(ti, di, tj, dj); f >= settings.GetBypassThreshold() {
		return f
	}
	return 0
}

// extend decides the next member both ways, dropping what the evidence has killed and what is not worth a
// worker.
func (r *Ranking) extend(f *frontier, p *partial, threshold float64) {
	c, j := p.c, p.depth
	m := &c.members[j]
	land, fail := true, true
	if of := r.at(m); of != nil && !of.node.Unproven() {
		land, fail = r.graph.May(c.node, p.set, j)
	}
	q := r.lands(c, p.set, j, land, fail)
	// Every path with the one fails, and every path without the other (M5, M5a): there is nothing to build.
	// What is left is worth no more than it is likely.
	land, fail = land && !m.ahead.MergeConflict, fail && !m.ahead.Required
	both := land && fail && c.matters[j]
	if land && (both || !fail || q >= 0.5) {
		next := *p
		next.depth, next.set = j+1, p.set.Clone()
		next.set.Add(j)
		r.enqueue(f, &next, q, threshold)
	}
	if fail && (both || !land || q < 0.5) {
		next := *p
		next.depth, next.rejects = j+1, p.rejects+1
		r.enqueue(f, &next, 1-q, threshold)
	}
}

// enqueue multiplies w(j) of M14 onto a path whose member j was decided, and lists it for the search.
func (r *Ranking) enqueue(f *frontier, p *partial, probability, threshold float64) {
	before := p.c.before[p.depth-1]
	p.needed *= before + (1-before)*probability
	p.value = p.c.benefit() * p.needed
	p.bound = p.c.bound(p)
	most := p.needed
	if !p.complete() {
		most *= p.c.rest[p.depth] * slack
	}
	if p.needed > 0 && most >= threshold {
		f.push(*p)
	}
}

// lands is q(j|S) of M8, or what the evidence says (M9).
func (r *Ranking) lands(c *change, s memberset.Set, j int, land, fail bool) float64 {
	switch {
	case land && !fail:
		return 1
	case fail && !land:
		return 0
	}
	of := r.at(&c.members[j])
	if of == nil {
		return 0
	}
	at := c.placesAhead(of, j)
	q := of.success
	for x := range of.members {
		m := &of.members[x]
		switch {
		case at[x] < 0 && m.ahead.Required:
			q *= r.marginal(m) * (1 - m.conflict) // M5a
		case at[x] < 0:
			q *= 1 - r.marginal(m)*m.conflict
		case at[x] < j && s.Has(at[x]) && !m.ahead.Required:
			q *= 1 - m.conflict
		}
	}
	return q
}

// placesAhead says where what member j has ahead stands in A(c).
func (c *change) placesAhead(of *change, j int) []int {
	p := &c.places[j]
	if p.of != of || p.version != of.version {
		*p = placesOf{of, of.version, make([]int, len(of.members))}
		for x := range of.members {
			p.place[x] = c.node.IndexOf(of.members[x].ahead.Change.Change)
		}
	}
	return p.place
}

// build gives the complete path as a ranked build, nil if nothing of it is outstanding, or if a better
// path of the change waits for the very same versions.
func (r *Ranking) build(p *partial) *eventsv1.RankedBuild {
	c, n := p.c, p.c.node
	if n.Path(p.set) != graph.Unknown || (n.Guard != nil && len(n.Guard.Missing) > 0 && p.rejects == len(n.Ahead)) {
		return nil
	}
	if !n.Unproven() {
		if _, targets := n.Outstanding(p.set); len(targets) == 0 {
			return nil
		}
	}
	if !c.isNew(p) {
		return nil
	}
	b := &eventsv1.RankedBuild{Change: n.Change, Needed: p.needed, Value: p.value}
	for i, a := range n.Ahead {
		if p.set.Has(i) {
			b.Assumed = append(b.Assumed, a.Change)
		}
	}
	return b
}

// isNew says whether no path of the change that was listed before waits for the same versions. Most
// changes have but one.
func (c *change) isNew(p *partial) bool {
	if c.first == nil {
		first := *p
		c.first = &first
		return true
	}
	if c.seen == nil {
		c.seen = map[string]bool{versionsOf(c.first): true}
	}
	key := versionsOf(p)
	if c.seen[key] {
		return false
	}
	c.seen[key] = true
	return true
}

func versionsOf(p *partial) string {
	versions, _ := p.c.node.Outstanding(p.set)
	var key strings.Builder
	for _, v := range versions {
		key.WriteString(string(rune(v.Class + 2)))
		key.WriteString(v.Members)
		key.WriteByte(0)
	}
	return key.String()
}
