package ranking

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"sort"
	"testing"

	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"

	eventsv1 "landfall.build/events/v1"
	"landfall.build/services/graph"
	"landfall.build/services/memberset"
	"landfall.build/services/profiler/bypass"
)

// twin is the ranking by the formulas alone: it keeps nothing from one input to the next, looks everything
// up by name, and weighs every path of every change.
type twin struct {
	*Ranking
	conflict map[[2]string]float64 // by behind and ahead, at their revisions
	marginal map[string]float64
	builds   []*twinBuild // in the order in which they were prepared
	now      int64
}

// twinBuild is a prepared build of which nobody has said that it is over.
type twinBuild struct {
	id      string
	change  *eventsv1.ChangeRef
	assumed map[string]uint64
	since   int64
}

// fold keeps the builds; the graph is the ranking's.
func (t *twin) fold(p *eventsv1.Profile) {
	t.now = p.StampUs / instant * instant
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
func (t *twin) timeOf(id string) (start float64, d bypass.Duration) {
	q := t.predictions[id]
	d = bypass.Duration{Mean: q.GetDurationMeanUs() / 1e6, Std: q.GetDurationStdUs() / 1e6}
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
		if n > maxFunded {
			return 0
		}
	}
	return t.finishes(i, i.Ahead[place])
}

// allKnown says that nothing of a class is to be built.
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
	if f := bypass.FinishesBefore(ti, di, tj, dj); f >= *t.graph.Settings.BypassThreshold {
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

// weigh gives P_needed of a path.
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
	if len(p.n.Ahead) > 0 && p.depth > 0 && p.needed < t.graph.Settings.Threshold || p.needed <= 0 {
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
	for place, n := range t.graph.Order() {
		guarded := n.Guard != nil && len(n.Guard.Missing) > 0
		if guarded && n.Path(memberset.New(len(n.Ahead))) == graph.Unknown {
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
	seen := map[string]bool{}
	for _, p := range list {
		if len(out.Best) >= int(t.graph.Settings.Best) {
			break
		}
		versions, targets := p.n.Outstanding(p.set)
		key := fmt.Sprint(p.place, versions)
		if p.n.Path(p.set) != graph.Unknown || len(targets) == 0 || seen[key] ||
			p.n.Guard != nil && len(p.n.Guard.Missing) > 0 && p.rejects == len(p.n.Ahead) {
			continue
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

// randomQueue makes profiles of a queue that changes at random.
type randomQueue struct {
	r     *rand.Rand
	nodes []*eventsv1.Node // in queue order
	made  int
	stamp int64
	// left are the ids that have left; now and then one comes back.
	left []string
	// prepared counts the builds.
	prepared int
}

func (q *randomQueue) profile() *eventsv1.Profile {
	q.stamp += q.r.Int64N(60_000_000)
	p := &eventsv1.Profile{StampUs: q.stamp, Delta: &eventsv1.GraphDelta{}}
	for len(q.nodes) > 0 && q.r.IntN(3) == 0 {
		i := q.r.IntN(len(q.nodes))
		p.Delta.Gone = append(p.Delta.Gone, &eventsv1.NodeGone{Change: q.nodes[i].Change})
		q.left = append(q.left, q.nodes[i].Change.Change)
		q.nodes = slices.Delete(q.nodes, i, i+1)
	}
	for _, g := range p.Delta.Gone {
		if q.r.IntN(4) == 0 { // it comes back at the end, as a new revision
			q.enter(p, &eventsv1.ChangeRef{Change: g.Change.Change, Revision: g.Change.Revision + 1})
		}
	}
	for len(q.nodes) < 7 && q.r.IntN(3) > 0 {
		q.made++
		id, revision := fmt.Sprint("c", q.made), uint64(1)
		if len(q.left) > 0 && q.r.IntN(4) == 0 {
			id, revision = q.left[q.r.IntN(len(q.left))], uint64(q.made)
			if slices.ContainsFunc(q.nodes, func(n *eventsv1.Node) bool { return n.Change.Change == id }) ||
				slices.ContainsFunc(p.Delta.Gone, func(g *eventsv1.NodeGone) bool { return g.Change.Change == id }) {
				continue
			}
		}
		q.enter(p, &eventsv1.ChangeRef{Change: id, Revision: revision})
	}
	if q.r.IntN(12) == 0 {
		p.Delta.Mainline = &eventsv1.Mainline{Head: "m", Analyzed: true, Paused: q.r.IntN(2) == 0}
	}
	for i := range q.nodes {
		if q.r.IntN(3) == 0 {
			q.replace(p, i)
		}
	}
	for _, n := range q.nodes {
		if q.r.IntN(8) > 0 {
			continue
		}
		// What is predicted changes by itself, too.
		p.Predictions = append(p.Predictions, &eventsv1.Prediction{Change: n.Change, Success: q.r.Float64(), DurationMeanUs: 60e6 * q.r.Float64()})
		for _, a := range n.Ahead {
			p.Pairs = append(p.Pairs, &eventsv1.PairPrediction{Behind: n.Change, Ahead: a.Change, Conflict: q.r.Float64()})
		}
	}
	if q.r.IntN(5) == 0 && len(q.nodes) > 0 {
		c := q.nodes[q.r.IntN(len(q.nodes))].Change
		p.Delta.Builds = append(p.Delta.Builds, &eventsv1.BuildProgress{Build: "b" + c.Change, Change: c, State: eventsv1.BuildState(1 + q.r.IntN(2))})
	}
	if q.r.IntN(2) == 0 && len(q.nodes) > 0 {
		q.prepared++
		n := q.nodes[q.r.IntN(len(q.nodes))]
		b := &eventsv1.BuildProgress{Build: fmt.Sprint("p", q.prepared), Change: n.Change, State: eventsv1.BuildState_BUILD_STATE_PREPARED}
		for _, a := range n.Ahead {
			if q.r.IntN(2) == 0 {
				b.Assumed = append(b.Assumed, a.Change)
			}
		}
		p.Delta.Builds = append(p.Delta.Builds, b)
	}
	return p
}

func (q *randomQueue) enter(p *eventsv1.Profile, c *eventsv1.ChangeRef) {
	position := int64(1)
	if n := len(q.nodes); n > 0 {
		position = q.nodes[n-1].Position + 1
	}
	q.nodes = append(q.nodes, &eventsv1.Node{Change: c, Position: position})
	p.Predictions = append(p.Predictions, &eventsv1.Prediction{
		Change: c, Success: []float64{0.3, 0.5, 0.9, 1}[q.r.IntN(4)],
		DurationMeanUs: 60e6 * float64(1+q.r.IntN(3)), DurationStdUs: 10e6 * float64(q.r.IntN(2)),
	})
	q.replace(p, len(q.nodes)-1)
}

// replace gives a change a new node, with members among those ahead, and says what is predicted of them.
func (q *randomQueue) replace(p *eventsv1.Profile, i int) {
	n := &eventsv1.Node{Change: q.nodes[i].Change, Position: q.nodes[i].Position, Analyzed: q.r.IntN(8) > 0, Benefit: float64(q.r.IntN(3))}
	for _, o := range q.nodes[:i] {
		if q.r.IntN(2) > 0 {
			continue
		}
		a := &eventsv1.Ahead{Change: o.Change, Conflicts: q.r.IntN(8) > 0, MergeConflict: q.r.IntN(12) == 0}
		a.Required = !a.Conflicts || q.r.IntN(12) == 0
		n.Ahead = append(n.Ahead, a)
		if a.Conflicts {
			p.Pairs = append(p.Pairs, &eventsv1.PairPrediction{Behind: n.Change, Ahead: a.Change, Conflict: []float64{0, 0.05, 0.5, 1}[q.r.IntN(4)]})
		}
	}
	for x := range 1 + q.r.IntN(3) {
		k := &eventsv1.Class{}
		for j := range n.Ahead {
			if q.r.IntN(2) == 0 {
				k.Members = append(k.Members, uint32(j))
			}
		}
		for j := range k.Members {
			if q.r.IntN(10) == 0 {
				k.Through = append(k.Through, uint32(j))
			}
		}
		if q.r.IntN(15) > 0 {
			k.Targets = append(k.Targets, &eventsv1.TargetVersion{Target: fmt.Sprint("//t", x), Part: 1})
		}
		for bits := range byte(1) << len(k.Members) {
			if len(k.Through) > 0 && !slices.ContainsFunc(k.Through, func(i uint32) bool { return bits&(1<<i) != 0 }) {
				continue
			}
			if q.r.IntN(4) == 0 {
				k.Outcomes = append(k.Outcomes, &eventsv1.Outcome{
					Members: memberset.FromBytes(len(k.Members), []byte{bits}).Bytes(), State: eventsv1.OutcomeState(1 + q.r.IntN(4)),
				})
			}
		}
		if q.r.IntN(2) == 0 {
			k.Outcomes = nil
		}
		n.Classes = append(n.Classes, k)
	}
	switch q.r.IntN(16) {
	case 0:
		n.Holds = []*eventsv1.Hold{{Name: "h"}}
	case 1:
		n.Guard = &eventsv1.Guard{Missing: []*eventsv1.TargetVersion{{Target: "//t0", Hash: "x"}}}
	case 2:
		n.MissingRequirement = "gone"
	case 3:
		n.Intended = true
	}
	q.nodes[i] = n
	p.Delta.Nodes = slices.DeleteFunc(p.Delta.Nodes, func(o *eventsv1.Node) bool { return o.Change.Change == n.Change.Change })
	p.Delta.Nodes = append(p.Delta.Nodes, n)
}

// checkKept holds what is kept to what it is kept for: nobody watches who has left, each watches once, and nothing is
// kept of changes that nobody names.
func checkKept(t *testing.T, r *Ranking) {
	t.Helper()
	for id, c := range r.changes {
		if c.id != id || c.node == nil && len(c.behind) == 0 && len(c.watchers) == 0 && len(c.runs) == 0 && r.predictions[id] == nil {
			t.Fatalf("%s is kept for nothing", id)
		}
		for w := range c.watchers {
			if r.changes[w.id] != w || !slices.Contains(w.watched, c) {
				t.Fatalf("%s is watched by %s, which has left or does not know", id, w.id)
			}
		}
	}
}

// TestTheBestAreThoseOfAllPaths: M18 against every path, on queues that change at random.
func TestTheBestAreThoseOfAllPaths(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	listed, weighed := 0, 0
	for range 300 {
		ranking, w := New(), &twin{conflict: map[[2]string]float64{}}
		q := &randomQueue{r: r}
		settings := &eventsv1.QueueSettings{Best: []uint32{1, 3, 40}[r.IntN(3)], Threshold: []float64{0, 0.05, 0.5}[r.IntN(3)]}
		if r.IntN(3) > 0 {
			settings.BypassThreshold = new([]float64{0, 0.5, 0.9}[r.IntN(3)])
		}
		for step := range 40 {
			p := q.profile()
			if step == 0 {
				p.Delta.Settings = settings
			} else if r.IntN(20) == 0 {
				settings = proto.CloneOf(settings)
				settings.Threshold = []float64{0, 0.05, 0.5}[r.IntN(3)]
				settings.BypassThreshold = new([]float64{0, 0.5, 0.9}[r.IntN(3)])
				p.Delta.Settings = settings
			}
			for _, x := range p.Pairs {
				w.conflict[[2]string{at(x.Behind), at(x.Ahead)}] = x.Conflict
			}
			ranking.Apply(p)
			w.Ranking = ranking
			w.fold(p)
			got, want := ranking.best(), w.best()
			if !sameRanking(got, want) {
				t.Fatalf("got\n%s\nwant\n%s\nafter %s", prototext.Format(got), prototext.Format(want), prototext.Format(p))
			}
			listed += len(got.Best)
			if len(ranking.runs) != len(w.builds) {
				t.Fatalf("%d builds run, want %d after %s", len(ranking.runs), len(w.builds), prototext.Format(p))
			}
			for _, b := range w.builds {
				x := ranking.runs[b.id]
				needed, alive := ranking.needed(ranking.changes[x.change.Change], x)
				path, wantAlive := w.needed(b)
				if alive != wantAlive || alive && needed != w.weigh(path) {
					t.Fatalf("%+v is needed with %g (%v), want %v after %s", x, needed, alive, wantAlive, prototext.Format(p))
				}
				if alive {
					weighed++
				}
			}
			checkKept(t, ranking)
		}
	}
	if listed < 10_000 || weighed < 1000 {
		t.Errorf("only %d builds were listed, and %d that run weighed", listed, weighed)
	}
}
