package ranking

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"sort"

	"landfall.build/engine/graph"
	"landfall.build/engine/memberset"
	"landfall.build/engine/profile"
	eventsv1 "landfall.build/events/v1"
)

// twin is the ranking by the formulas alone: it keeps nothing from one input to the next, looks everything
// up by name, and weighs every path of every change.
type twin struct {
	*Ranking
	conflict map[[2]string]float64 // by behind and ahead, at their revisions
	marginal map[string]float64
	builds   []*twinBuild // in the order in which they were prepared
	now      int64
	// paces are by change (late_test.go).
	paces          map[string]twinPace
	lookedAt       int64
	typicalUs, bar float64
	waited         int
	crowded        int
}

// twinBuild is a prepared build that has not ended.
type twinBuild struct {
	id      string
	change  *eventsv1.ChangeRef
	assumed map[string]uint64
	since   int64
}

// fold keeps the builds; the graph is the ranking's.
func (t *twin) fold(p *eventsv1.Profile) {
	t.now = p.StampUs / Instant * Instant
	for _, b := range p.Delta.Builds {
		x := &twinBuild{b.Build, b.Change, map[string]uint64{}, p.StampUs}
		for _, a := range b.Assumed {
			x.assumed[a.Change] = a.Revision
		}
		prepared := b.State == eventsv1.BuildState_BUILD_STATE_PREPARED
		if prepared && t.graph.NodeAt(b.Change) == nil {
			continue
		}
		if prepared && slices.ContainsFunc(t.builds, func(o *twinBuild) bool { return o.id == b.Build }) {
			continue
		}
		if same := slices.IndexFunc(t.builds, func(o *twinBuild) bool {
			return prepared && at(o.change) == at(x.change) && maps.Equal(o.assumed, x.assumed)
		}); same >= 0 {
			x.since = t.builds[same].since // its steps go on
			t.builds[same] = x
			continue
		}
		t.builds = slices.DeleteFunc(t.builds, func(o *twinBuild) bool { return o.id == b.Build })
		if prepared {
			t.builds = append(t.builds, x)
		}
	}
	for _, g := range p.Delta.Gone {
		t.builds = slices.DeleteFunc(t.builds, func(o *twinBuild) bool {
			if at(o.change) == at(g.Change) {
				return true
			}
			rev, assumed := o.assumed[g.Change.Change]
			if !assumed || rev != g.Change.Revision {
				return false
			}
			delete(o.assumed, g.Change.Change)
			return g.How != eventsv1.GoneHow_GONE_HOW_LANDED
		})
	}
}

// timeOf is when the oldest build that can still come about began, in seconds from now on, and what is left of it.
func (t *twin) timeOf(id string) (start float64, d profile.Duration) {
	q := t.predictions[id]
	d = profile.Duration{Mean: q.GetDurationMeanUs() / 1e6, Std: q.GetDurationStdUs() / 1e6}
	for _, x := range t.builds {
		if _, alive := t.needed(x); alive && x.change.Change == id {
			start = float64(x.since-t.now) / 1e6
			return start, d.Beyond(max(0, -start))
		}
	}
	return 0, d
}

func at(c *eventsv1.ChangeRef) string { return fmt.Sprint(c.Change, "@", c.Revision) }

// twinPath is a path, decided as far as its depth.
type twinPath struct {
	n               *graph.Node
	place           int
	set             memberset.Set
	depth, rejects  int
	needed, benefit float64
	likely          float64
}

func (p twinPath) value() float64 { return p.likely * p.benefit }

func (t *twin) success(id string) float64 {
	if p := t.predictions[id]; p != nil {
		return p.Success
	}
	return 1
}

func (t *twin) weighMarginals() {
	t.marginal = map[string]float64{}
	for _, n := range t.graph.Order() {
		p := t.success(n.Change.Change)
		for _, a := range n.Ahead {
			r := t.conflict[[2]string{at(n.Change), at(a.Change)}]
			if m := t.marginal[a.Change.Change]; a.Required {
				p *= m * (1 - r)
			} else if a.Conflicts {
				p *= 1 - m*r
			}
		}
		if len(n.Ahead) == 0 && n.Analyzed {
			switch state := n.Path(none); {
			case state == graph.Green && !t.graph.Held(n):
				p = 1
			case state == graph.Red:
				p = 0
			}
		}
		if n.MissingRequirement != "" {
			p = 0
		}
		t.marginal[n.Change.Change] = p
	}
}

// before is F(i,j) where j is bypassable and funded, else 0.
func (t *twin) before(i *graph.Node, place int) float64 {
	for _, k := range i.Classes {
		if !slices.Contains(k.Members, uint32(place)) || allKnown(k) {
			continue
		}
		n := 0
		for _, m := range k.Members {
			if t.finishes(i, i.Ahead[m]) > 0 {
				n++
			}
		}
		if n > MaxFunded(t.graph.Settings) {
			return 0
		}
	}
	return t.finishes(i, i.Ahead[place])
}

// allKnown reports whether nothing of a class is to be built.
func allKnown(k graph.Class) bool {
	for bits := range 1 << len(k.Members) {
		if k.Outcome(memberset.FromBytes(len(k.Members), []byte{byte(bits), byte(bits >> 8)}[:(len(k.Members)+7)/8])) == nil {
			return false
		}
	}
	return true
}

// finishes is F(i,j) where j is bypassable, else 0.
func (t *twin) finishes(i *graph.Node, a *eventsv1.Ahead) float64 {
	if t.graph.Settings.BypassThreshold == nil || a.Required {
		return 0
	}
	if m := t.graph.NodeAt(a.Change); m != nil && len(m.Holds) > 0 {
		return 1
	}
	ti, di := t.timeOf(i.Change.Change)
	tj, dj := t.timeOf(a.Change.Change)
	if f := profile.FinishesBefore(ti, di, tj, dj); f >= *t.graph.Settings.BypassThreshold {
		return f
	}
	return 0
}

// lands is q(j|S).
func (t *twin) lands(p twinPath, land, fail bool) float64 {
	if land != fail {
		if land {
			return 1
		}
		return 0
	}
	m := t.graph.NodeAt(p.n.Ahead[p.depth].Change)
	if m == nil {
		return 0
	}
	q := t.success(m.Change.Change)
	for _, a := range m.Ahead {
		r := t.conflict[[2]string{at(m.Change), at(a.Change)}]
		switch place := p.n.IndexOf(a.Change.Change); {
		case place < 0 && a.Required:
			q *= t.marginal[a.Change.Change] * (1 - r)
		case place < 0:
			q *= 1 - t.marginal[a.Change.Change]*r
		case place < p.depth && p.set.Has(place) && !a.Required:
			q *= 1 - r
		}
	}
	return q
}

// needed is a build's path; alive is false if it is none, is dead, or known.
func (t *twin) needed(x *twinBuild) (path twinPath, alive bool) {
	n := t.graph.NodeAt(x.change)
	if n == nil || !n.Analyzed {
		return path, false
	}
	p := twinPath{n: n, set: memberset.New(len(n.Ahead))}
	members := 0
	for j, a := range n.Ahead {
		land, fail := t.graph.May(n, p.set, j)
		rev, in := x.assumed[a.Change.Change]
		if in = in && rev == a.Change.Revision; in {
			members++
			p.set.Add(j)
		}
		if in && (!land || a.MergeConflict) || !in && (!fail || a.Required) {
			return path, false
		}
	}
	return p, members == len(x.assumed) && n.Path(p.set) == graph.Unknown
}

// weigh returns P_needed of a path.
func (t *twin) weigh(path twinPath) float64 {
	p := twinPath{n: path.n, set: memberset.New(len(path.n.Ahead)), needed: 1}
	for j := range p.n.Ahead {
		land, fail := t.graph.May(p.n, p.set, j)
		q, f := t.lands(p, land, fail), t.before(p.n, j)
		if path.set.Has(j) {
			p.set.Add(j)
		} else {
			q = 1 - q
		}
		p.needed *= f + (1-f)*q
		p.depth++
	}
	return p.needed
}

// walk lists every path that begins like p.
func (t *twin) walk(p twinPath, list *[]twinPath) {
	if len(p.n.Ahead) > 0 && p.depth > 0 && p.needed < max(t.graph.Settings.Threshold, t.bar/300) || p.needed <= 0 {
		return
	}
	if p.depth == len(p.n.Ahead) {
		*list = append(*list, p)
		return
	}
	a := p.n.Ahead[p.depth]
	land, fail := t.graph.May(p.n, p.set, p.depth)
	q, f := t.lands(p, land, fail), t.before(p.n, p.depth)
	land, fail = land && !a.MergeConflict, fail && !a.Required
	next := p
	next.depth++
	if land {
		next.set, next.needed, next.likely = p.set.Clone(), p.needed*(f+(1-f)*q), p.likely*q
		next.set.Add(p.depth)
		t.walk(next, list)
	}
	if fail {
		next.set, next.needed, next.likely, next.rejects = p.set, p.needed*(f+(1-f)*(1-q)), p.likely*(1-q), p.rejects+1
		t.walk(next, list)
	}
}

func (t *twin) best() *eventsv1.Ranking {
	out := &eventsv1.Ranking{Exact: true}
	if n := t.graph.Check; n != nil {
		if v, _ := n.Outstanding(none); len(v) > 0 {
			out.Best = append(out.Best, &eventsv1.RankedBuild{Change: n.Change, Needed: 1, Value: 1})
		}
	}
	t.weighMarginals()
	var list []twinPath
	dead := 0
	for place, n := range t.graph.Order() {
		guarded := n.Guard != nil && len(n.Guard.Missing) > 0
		if guarded && n.Path(memberset.New(len(n.Ahead))) == graph.Unknown {
			all := memberset.New(len(n.Ahead))
			for j := range n.Ahead {
				all.Add(j)
			}
			if !t.graph.Live(n, graph.Constraint{Fixed: all, Value: memberset.New(len(n.Ahead))}) {
				dead++
			}
			out.Best = append(out.Best, &eventsv1.RankedBuild{Change: n.Change, Needed: 1, Value: 1})
		}
		hopeless := slices.ContainsFunc(n.Classes, func(k graph.Class) bool { return len(k.Targets) == 0 })
		if n.Analyzed && !n.Intended && n.MissingRequirement == "" && !hopeless {
			p := twinPath{n: n, place: place, set: memberset.New(len(n.Ahead)), needed: 1, likely: 1, benefit: n.Benefit}
			if p.benefit == 0 {
				p.benefit = 1
			}
			p.benefit /= math.Sqrt(float64(1 + len(n.Ahead)))
			t.walk(p, &list)
		}
	}
	sort.SliceStable(list, func(x, y int) bool { // walk lists a change's paths landing first
		a, b := list[x], list[y]
		if a.value() != b.value() {
			return a.value() > b.value()
		}
		if a.place != b.place {
			return a.place < b.place
		}
		if a.needed != b.needed {
			return a.needed > b.needed
		}
		return a.rejects < b.rejects
	})
	seen, likeliest, ofAuthor := map[string]bool{}, map[int]twinPath{}, map[string]int{}
	for _, p := range list {
		if len(out.Best) >= int(t.graph.Settings.Best)+dead {
			break
		}
		if first, compares := likeliest[p.place]; !compares {
			likeliest[p.place] = p
		} else if t.waits(first, p) {
			t.waited++
			continue
		}
		versions, targets := p.n.Outstanding(p.set)
		key := fmt.Sprint(p.place, versions)
		if p.n.Path(p.set) != graph.Unknown || len(targets) == 0 || seen[key] ||
			p.n.Guard != nil && len(p.n.Guard.Missing) > 0 && p.rejects == len(p.n.Ahead) {
			continue
		}
		if limit := t.graph.Settings.GetQuotas().GetAuthor(); limit > 0 {
			share := float64(t.graph.Settings.Best) * float64(limit) / float64(t.graph.Settings.PoolWorkers)
			if ofAuthor[p.n.Author] >= 1 && float64(ofAuthor[p.n.Author]+1) > share {
				t.crowded++
				continue
			}
			ofAuthor[p.n.Author]++
		}
		seen[key] = true
		b := &eventsv1.RankedBuild{Change: p.n.Change, Needed: p.needed, Value: p.value()}
		for j, a := range p.n.Ahead {
			if p.set.Has(j) {
				b.Assumed = append(b.Assumed, a.Change)
			}
		}
		out.Best = append(out.Best, b)
	}
	return out
}
