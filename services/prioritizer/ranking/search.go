package ranking

import (
	"container/heap"

	eventsv1 "landfall.build/events/v1"
	"landfall.build/services/graph"
	"landfall.build/services/memberset"
	"landfall.build/services/profiler/bypass"
)

// candidate is a change with what every path of it needs.
type candidate struct {
	node    *graph.Node
	place   int
	benefit float64
	// before[j] is F(i,j) where member j is bypassable (M13), else 0.
	before []float64
	// matters[j]: some class that member j is in has a version that is not known. The other members
	// decide nothing that is still to be built, so of their two ways only the likelier is followed.
	matters []bool
	seen    map[string]bool
}

// partial is a path whose members before depth are decided.
type partial struct {
	c       *candidate
	depth   int
	set     memberset.Set
	needed  float64
	value   float64
	rejects int
}

func (p *partial) complete() bool { return p.depth == len(p.c.node.Ahead) }

// frontier orders partial paths by their bound, which is their value so far (no factor exceeds 1), and
// complete ones as M17 says. Of equal value, partial ones come first: one of them may still complete to
// something that M17 puts before the complete one.
type frontier []*partial

func (f frontier) Len() int      { return len(f) }
func (f frontier) Swap(i, j int) { f[i], f[j] = f[j], f[i] }
func (f frontier) Less(i, j int) bool {
	a, b := f[i], f[j]
	if a.value != b.value {
		return a.value > b.value
	}
	if a.complete() != b.complete() {
		return !a.complete()
	}
	if a.c.place != b.c.place {
		return a.c.place < b.c.place
	}
	if a.rejects != b.rejects {
		return a.rejects < b.rejects
	}
	for x := range min(a.depth, b.depth) {
		if a.set.Has(x) != b.set.Has(x) {
			return a.set.Has(x)
		}
	}
	return a.depth > b.depth
}
func (f *frontier) Push(x any) { *f = append(*f, x.(*partial)) }
func (f *frontier) Pop() any {
	old := *f
	x := old[len(old)-1]
	*f = old[:len(old)-1]
	return x
}

// best is the K best builds that are still to be done, in the order of M17.
func (r *Ranking) best() *eventsv1.Ranking {
	out := &eventsv1.Ranking{Exact: true}
	want := int(r.graph.Settings.GetBest())
	if want == 0 {
		want = 64
	}
	var f frontier
	if n := r.graph.Check; n != nil {
		if v, _ := n.Outstanding(memberset.New(0)); len(v) > 0 {
			out.Best = append(out.Best, &eventsv1.RankedBuild{Change: n.Change, Needed: 1, Value: 1})
		}
	}
	for _, n := range r.graph.Order() {
		// What the land guard asked for comes before all others (M21).
		if n.Guard != nil && len(n.Guard.Missing) > 0 && n.Path(memberset.New(len(n.Ahead))) == graph.Unknown {
			out.Best = append(out.Best, &eventsv1.RankedBuild{Change: n.Change, Needed: 1, Value: 1})
		}
	}
	marginals := r.marginals()
	for place, n := range r.graph.Order() {
		if c := r.candidate(n, place); c != nil {
			f = append(f, &partial{c: c, set: memberset.New(len(n.Ahead)), needed: 1, value: c.benefit})
		}
	}
	heap.Init(&f)
	threshold := r.graph.Settings.GetThreshold()
	for spent := 0; len(f) > 0 && len(out.Best) < want; spent++ {
		if spent > searchNodes {
			out.Exact = false
			break
		}
		p := heap.Pop(&f).(*partial)
		if !p.complete() {
			for _, next := range r.extend(p, marginals) {
				if next.needed > 0 && (next.needed >= threshold || len(next.c.node.Ahead) == 0) {
					heap.Push(&f, next)
				}
			}
			continue
		}
		if b := r.build(p); b != nil {
			out.Best = append(out.Best, b)
		}
	}
	return out
}

// candidate is nil for a change that nothing is to be built for.
func (r *Ranking) candidate(n *graph.Node, place int) *candidate {
	if !n.Analyzed || n.Intended || n.MissingRequirement != "" {
		return nil
	}
	c := &candidate{
		node: n, place: place, benefit: n.Benefit,
		before: make([]float64, len(n.Ahead)), matters: make([]bool, len(n.Ahead)), seen: map[string]bool{},
	}
	if c.benefit == 0 {
		c.benefit = 1
	}
	for _, k := range n.Classes {
		if len(k.Targets) == 0 {
			return nil // it does not merge as things stand: there is nothing to be built
		}
		if len(k.Class.Outcomes) >= 1<<min(len(k.Members), 30) {
			continue
		}
		for _, m := range k.Members {
			c.matters[m] = true
		}
	}
	bypassable := r.graph.Settings != nil && r.graph.Settings.BypassThreshold != nil
	if bypassable {
		ti, di := r.duration(n.Change.Change)
		for j, a := range n.Ahead {
			if m := r.graph.NodeAt(a.Change); m != nil && len(m.Holds) > 0 && !a.Required {
				c.before[j] = 1 // whoever holds it decides when it finishes; nobody waits for that
				continue
			}
			tj, dj := r.duration(a.Change.Change)
			if f := bypass.FinishesBefore(ti, di, tj, dj); f >= r.graph.Settings.GetBypassThreshold() && !a.Required {
				c.before[j] = f
			}
		}
	}
	return c
}

// extend decides the next member both ways, dropping what the evidence has killed.
func (r *Ranking) extend(p *partial, marginals map[string]float64) []*partial {
	n, j := p.c.node, p.depth
	land, fail := r.graph.May(n, p.set, j)
	if n.Ahead[j].MergeConflict {
		land = false // every path with it fails (M5); there is nothing to build
	}
	if n.Ahead[j].Required {
		fail = false
	}
	q := r.lands(n, p.set, j, land, fail, marginals)
	both := land && fail && p.c.matters[j]
	var out []*partial
	if land && (both || !fail || q >= 0.5) {
		next := *p
		next.depth, next.set = j+1, p.set.Clone()
		next.set.Add(j)
		out = append(out, r.weigh(&next, j, q))
	}
	if fail && (both || !land || q < 0.5) {
		next := *p
		next.depth, next.rejects = j+1, p.rejects+1
		out = append(out, r.weigh(&next, j, 1-q))
	}
	return out
}

// weigh multiplies w(j) of M14 onto a path.
func (r *Ranking) weigh(p *partial, j int, prob float64) *partial {
	f := p.c.before[j]
	p.needed *= f + (1-f)*prob
	p.value = p.c.benefit * p.needed
	return p
}

// lands is q(j|S) of M8, or what the evidence says (M9).
func (r *Ranking) lands(i *graph.Node, s memberset.Set, j int, land, fail bool, marginals map[string]float64) float64 {
	switch {
	case land && !fail:
		return 1
	case fail && !land:
		return 0
	}
	m := r.graph.NodeAt(i.Ahead[j].Change)
	if m == nil {
		return 0
	}
	q := r.success(m)
	for _, a := range m.Ahead {
		conflict := r.conflicts[[2]string{m.Change.Change, a.Change.Change}]
		if at := i.IndexOf(a.Change.Change); at >= 0 {
			if s.Has(at) && at < j {
				q *= 1 - conflict
			}
		} else {
			q *= 1 - marginals[a.Change.Change]*conflict
		}
	}
	return q
}

func (r *Ranking) success(n *graph.Node) float64 {
	if p := r.predictions[n.Change.Change]; p != nil {
		return p.Success
	}
	return 1
}

// marginals are m(j) of M7, in queue order.
func (r *Ranking) marginals() map[string]float64 {
	m := make(map[string]float64, len(r.graph.Order()))
	for _, n := range r.graph.Order() {
		p := r.success(n)
		for _, a := range n.Ahead {
			k := a.Change.Change
			if a.Required {
				p *= m[k]
			} else if a.Conflicts {
				p *= 1 - m[k]*r.conflicts[[2]string{n.Change.Change, k}]
			}
		}
		switch {
		case n.MissingRequirement != "":
			p = 0
		case len(n.Ahead) == 0 && n.Analyzed:
			switch n.Path(memberset.New(0)) {
			case graph.Green:
				if !r.graph.Held(n) {
					p = 1
				}
			case graph.Red:
				p = 0
			}
		}
		m[n.Change.Change] = p
	}
	return m
}

// build gives the complete path as a ranked build, nil if nothing of it is outstanding, or if a better
// path of the change waits for the very same versions.
func (r *Ranking) build(p *partial) *eventsv1.RankedBuild {
	n := p.c.node
	if n.Path(p.set) != graph.Unknown || (n.Guard != nil && len(n.Guard.Missing) > 0 && p.rejects == len(n.Ahead)) {
		return nil
	}
	versions, targets := n.Outstanding(p.set)
	if len(targets) == 0 {
		return nil
	}
	key := ""
	for _, v := range versions {
		key += string(rune(v.Class+2)) + v.Members + "\x00"
	}
	if p.c.seen[key] {
		return nil
	}
	p.c.seen[key] = true
	b := &eventsv1.RankedBuild{Change: n.Change, Needed: p.needed, Value: p.value}
	for i, a := range n.Ahead {
		if p.set.Has(i) {
			b.Assumed = append(b.Assumed, a.Change)
		}
	}
	return b
}
