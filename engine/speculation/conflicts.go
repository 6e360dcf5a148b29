package speculation

import (
	"slices"

	"landfall.build/engine/targets"
)

// conflicts is the conflict graph of the pending changes (M1), and the indexes that find its edges.
type conflicts struct {
	byTarget index           // target → changes whose D holds it
	byLeaf   index           // leaf → changes that change it
	byEdge   index           // node → changes whose N holds it
	unknown  map[string]bool // changes whose targets are unknown (M4)

	edges map[string]map[string]*relation
	// structural holds those of the edges that are structural: few, and asked for at every target of every member.
	structural index
	// leading holds, of these, those ahead of a change that lead into its targets: on top of them it may affect more
	// targets than by itself.
	leading index

	hubs *targets.Hubs
	// hubNames are the names in the settings.
	hubNames []string
	// insisting are the changes for which hubs serialize as other targets do: each was overtaken maxOvertaken times.
	insisting map[string]bool
}

// index holds, for each node, a set of changes.
type index map[string]map[string]bool

func (x index) add(node, change string) {
	if x[node] == nil {
		x[node] = map[string]bool{}
	}
	x[node][change] = true
}

func (x index) remove(node, change string) {
	if delete(x[node], change); len(x[node]) == 0 {
		delete(x, node)
	}
}

// relation is an edge of the conflict graph.
type relation struct {
	shared     []string // at most 8 targets in which they meet, sorted
	structural bool     // through N: one affects all of the other's targets
	merge      bool     // a textual merge conflict (M5)
}

func newConflicts() conflicts {
	return conflicts{
		byTarget: index{}, byLeaf: index{}, byEdge: index{}, unknown: map[string]bool{},
		edges: map[string]map[string]*relation{}, structural: index{}, leading: index{},
		insisting: map[string]bool{},
	}
}

// add puts an analysis into the indexes.
func (g *conflicts) add(a *analysis) {
	g.each(a, index.add)
	if a.all {
		g.unknown[a.revision.change] = true
	}
}

// remove takes an analysis out of the indexes.
func (g *conflicts) remove(a *analysis) {
	g.each(a, index.remove)
	delete(g.unknown, a.revision.change)
}

// each calls f for every entry that the indexes have of an analysis.
func (g *conflicts) each(a *analysis, f func(in index, node, change string)) {
	for _, t := range a.footprint.Touched {
		f(g.byTarget, t, a.revision.change)
	}
	for _, n := range a.footprint.Leaves {
		f(g.byLeaf, n, a.revision.change)
	}
	for _, n := range a.footprint.Added {
		f(g.byEdge, n, a.revision.change)
	}
}

// connect adds an edge in both directions.
func (g *conflicts) connect(a, b string, r *relation) {
	for _, p := range [][2]string{{a, b}, {b, a}} {
		if g.edges[p[0]] == nil {
			g.edges[p[0]] = map[string]*relation{}
		}
		g.edges[p[0]][p[1]] = r
		if r.structural {
			g.structural.add(p[0], p[1])
		}
	}
}

// hubsOf returns the hubs in which two changes may meet without a conflict.
func (g *conflicts) hubsOf(a, b string) *targets.Hubs {
	if g.insisting[a] || g.insisting[b] {
		return nil
	}
	return g.hubs
}

// setAnalysis makes a the analysis of its change and finds its conflicts.
func (q *Queue) setAnalysis(a *analysis) {
	id := a.revision.change
	q.dropAnalysis(id)
	q.analyses.pending[id] = a
	q.conflicts.add(a)
	for other := range q.candidates(a) {
		if r := relate(a, q.analyses.pending[other], q.conflicts.hubsOf(id, other)); r != nil {
			q.link(id, other, r)
		}
	}
	q.dirtyRequirers(id) // what it affects may be something else, and whoever requires it need not conflict with it
}

// dropAnalysis takes the change out of the indexes and the conflict graph.
func (q *Queue) dropAnalysis(id string) {
	a, g := q.analyses.pending[id], &q.conflicts
	if a == nil {
		return
	}
	g.remove(a)
	delete(q.analyses.pending, id)
	for other := range g.structural[id] {
		g.structural.remove(other, id)
		g.leading.remove(other, id)
		q.dirtyByEdge(other)
	}
	delete(g.structural, id)
	delete(g.leading, id)
	for other := range g.edges[id] {
		if delete(g.edges[other], id); len(g.edges[other]) == 0 {
			delete(g.edges, other)
		}
		q.delta.dirty[other] = true
	}
	delete(g.edges, id)
}

// link adds an edge between two pending changes.
func (q *Queue) link(a, b string, r *relation) {
	q.conflicts.connect(a, b, r)
	for _, p := range [][2]string{{a, b}, {b, a}} {
		if r.structural {
			q.linkLeading(p[1], p[0])
			q.dirtyByEdge(p[0])
		}
		q.delta.dirty[p[0]] = true
	}
}

// linkLeading notes it if a change is ahead of another one and leads into its targets.
func (q *Queue) linkLeading(from, into string) {
	a, b := q.Lineup.Pending(from), q.Lineup.Pending(into)
	if (a == nil || b == nil || a.Position < b.Position) && q.analyses.pending[from].footprint.LeadsInto(q.analyses.pending[into].footprint) {
		q.conflicts.leading.add(into, from)
	}
}

// relinkLeading makes conflicts.leading again, as the queue's order has changed.
func (q *Queue) relinkLeading() {
	clear(q.conflicts.leading)
	for into, of := range q.conflicts.structural {
		for from := range of {
			q.linkLeading(from, into)
		}
	}
}

// candidates returns the pending changes that may conflict with a: those that meet it in an index.
func (q *Queue) candidates(a *analysis) map[string]bool {
	found, g := map[string]bool{}, &q.conflicts
	join := func(changes map[string]bool) {
		for id := range changes {
			found[id] = true
		}
	}
	if a.all {
		for id := range q.analyses.pending {
			found[id] = true
		}
	}
	join(g.unknown)
	hubs := g.hubs
	if g.insisting[a.revision.change] {
		hubs = nil
	}
	for _, t := range a.footprint.Touched {
		if !hubs.Has(t) {
			join(g.byTarget[t])
		}
		join(g.byEdge[t])
	}
	if hubs != nil {
		join(g.insisting)
	}
	for _, n := range a.footprint.Leaves {
		join(g.byEdge[n])
	}
	for _, n := range a.footprint.Added {
		join(g.byTarget[n])
		join(g.byLeaf[n])
	}
	for id := range a.textual {
		if q.analyses.pending[id] != nil {
			found[id] = true
		}
	}
	for id, o := range q.analyses.pending {
		if _, named := o.textual[a.revision.change]; named {
			found[id] = true
		}
	}
	delete(found, a.revision.change)
	return found
}

// relate is M1 with M4 and M5, by the hubs of the queue: nil if a and b are independent.
func relate(a, b *analysis, hubs *targets.Hubs) *relation {
	why := a.footprint.Meets(b.footprint, hubs)
	shared := min(len(why.Targets), 8)
	r := &relation{shared: slices.Clone(why.Targets[:shared]), structural: why.Edge != ""}
	conflict := why.Conflict()
	for _, p := range [][2]*analysis{{a, b}, {b, a}} {
		merge, found := p[0].textualWith(p[1].revision)
		if !found {
			continue
		}
		r.merge = r.merge || merge.mergeConflict
		// A change that does not merge, or is invalid, conflicts with whoever could mend it.
		conflict = conflict || merge.mergeConflict || !a.known() || !b.known()
	}
	if !conflict {
		return nil
	}
	return r
}

// affects reports whether k is in Af(t): D(k) holds t, or k is in structural conflict with a change whose D does, or k's
// targets are unknown (M24, M4).
func (q *Queue) affects(k *analysis, target string) bool {
	if target == WholeRepository || k.touches(target) || (k.all && k.known()) {
		return true
	}
	if k.structural != nil {
		return k.structural[target]
	}
	// It looks for a change in both sets: most targets are few changes', and most changes meet few by an edge.
	many := q.conflicts.structural[k.revision.change]
	if len(many) == 0 {
		return false // as of most, and this is asked often
	}
	few := q.conflicts.byTarget[target]
	if len(many) < len(few) {
		few, many = many, few
	}
	for other := range few {
		if many[other] {
			return true
		}
	}
	return false
}
