package speculation

import (
	"maps"
	"slices"

	eventsv1 "landfall.build/events/v1"
	"landfall.build/services/analyzer/affected"
	"landfall.build/services/analyzer/targets"
)

// analysis is what is known of a revision's effect on the target graph.
type analysis struct {
	ref     refKey
	base    string
	outcome eventsv1.AnalysisOutcome
	// targets holds, for each target of δ, the landing commits at which it changes, ascending.
	targets map[string][]uint32
	deleted map[string]bool
	// footprint is what conflicts are found by.
	footprint targets.Footprint
	all       bool
	textual   map[string]*eventsv1.Textual
	message   string
	// overtaken says that what it found in its way may have been mended: something that meets the change came onto
	// the mainline after the base.
	overtaken bool
	// digests[i] stands for the change up to landing commit i (1-based).
	digests []sum
	// structural is set, once the change has left, to the targets that it affects through other
	// changes' edges (M24): D of those in structural conflict with it.
	structural map[string]bool
}

// relation is an edge of the conflict graph.
type relation struct {
	shared     []string // at most 8 targets in which they meet, sorted
	structural bool     // through N: one affects all of the other's targets
	merge      bool     // a textual merge conflict (M5)
	everything bool     // one of them has unknown targets (M4)
}

func newAnalysis(f *eventsv1.ChangeAnalyzed, parts int) *analysis {
	a := &analysis{
		ref: keyOf(f.Change), base: f.Base, outcome: f.Outcome, message: f.Message,
		targets: map[string][]uint32{}, deleted: map[string]bool{},
		textual: map[string]*eventsv1.Textual{},
	}
	for i := 0; i <= parts; i++ {
		a.digests = append(a.digests, digest("change", a.ref.change, a.ref.revision, uint32(i)))
	}
	aff := f.GetAffected()
	a.all = aff.GetAll()
	for _, t := range aff.GetTargets() {
		p := min(max(t.Part, 1), uint32(parts))
		if !slices.Contains(a.targets[t.Target], p) {
			a.targets[t.Target] = append(a.targets[t.Target], p)
			slices.Sort(a.targets[t.Target])
		}
	}
	if a.all && a.outcome == eventsv1.AnalysisOutcome_ANALYSIS_OUTCOME_ANALYZED {
		a.targets = map[string][]uint32{}
		for p := 1; p <= parts; p++ {
			a.targets[WholeRepository] = append(a.targets[WholeRepository], uint32(p))
		}
	}
	for _, t := range aff.GetDeleted() {
		a.deleted[t] = true
	}
	a.footprint = affected.Footprint(aff)
	// Of a change that does not merge, or is invalid, nothing is affected: it meets others in paths.
	if a.footprint.All = a.all && a.known(); a.footprint.All {
		a.footprint.Touched = slices.Sorted(maps.Keys(a.deleted))
		if !a.deleted[WholeRepository] {
			at, _ := slices.BinarySearch(a.footprint.Touched, WholeRepository)
			a.footprint.Touched = slices.Insert(a.footprint.Touched, at, WholeRepository)
		}
	}
	for _, t := range f.Textual {
		a.textual[t.GetOther().GetChange()] = t
	}
	return a
}

// known says that the change merges and its targets are valid on the mainline that it was analysed on.
func (a *analysis) known() bool {
	return a.outcome == eventsv1.AnalysisOutcome_ANALYSIS_OUTCOME_ANALYZED
}

func (a *analysis) touches(target string) bool {
	return a.deleted[target] || len(a.targets[target]) > 0
}

// wholeDigest stands for all of the change.
func (a *analysis) wholeDigest() sum { return a.digests[len(a.digests)-1] }

// parts are all landing commits of the change.
func (a *analysis) parts() []uint32 {
	list := make([]uint32, 0, len(a.digests)-1)
	for p := 1; p < len(a.digests); p++ {
		list = append(list, uint32(p))
	}
	return list
}

// heldIn is what the change, held whole, adds to the label of a target that it affects.
func (a *analysis) heldIn(target string) sum {
	if p := a.targets[target]; len(p) > 0 && !a.all {
		return a.digests[p[len(p)-1]]
	}
	return a.wholeDigest()
}

func addTo(index map[string]map[string]bool, node, change string) {
	m := index[node]
	if m == nil {
		m = map[string]bool{}
		index[node] = m
	}
	m[change] = true
}

func removeFrom(index map[string]map[string]bool, node, change string) {
	if m := index[node]; m != nil {
		delete(m, change)
		if len(m) == 0 {
			delete(index, node)
		}
	}
}

// eachNode calls f for every index entry of the analysis.
func (q *Queue) eachNode(a *analysis, f func(index map[string]map[string]bool, node, change string)) {
	for _, t := range a.footprint.Touched {
		f(q.byTarget, t, a.ref.change)
	}
	for _, n := range a.footprint.Leaves {
		f(q.byLeaf, n, a.ref.change)
	}
	for _, n := range a.footprint.Added {
		f(q.byEdge, n, a.ref.change)
	}
}

// setAnalysis makes a the analysis of its change and derives its conflicts anew.
func (q *Queue) setAnalysis(a *analysis) {
	q.dropAnalysis(a.ref.change)
	id := a.ref.change
	q.analyses[id] = a
	q.eachNode(a, addTo)
	if a.all {
		q.all[id] = true
	}
	for other := range q.candidates(a) {
		if r := relate(a, q.analyses[other], q.hubsOf(id, other)); r != nil {
			q.link(id, other, r)
		}
	}
	q.dirtyRequirers(id) // what it affects may be something else, and whoever requires it need not conflict with it
}

// dropAnalysis takes the change out of the indexes and the conflict graph.
func (q *Queue) dropAnalysis(id string) {
	a := q.analyses[id]
	if a == nil {
		return
	}
	q.eachNode(a, removeFrom)
	delete(q.all, id)
	delete(q.analyses, id)
	for other := range q.structural[id] {
		removeFrom(q.structural, other, id)
		removeFrom(q.led, other, id)
		q.affectsElse(other)
	}
	delete(q.structural, id)
	delete(q.led, id)
	for other := range q.edges[id] {
		delete(q.edges[other], id)
		q.dirty[other] = true
	}
	delete(q.edges, id)
}

func (q *Queue) link(a, b string, r *relation) {
	for _, p := range [][2]string{{a, b}, {b, a}} {
		if q.edges[p[0]] == nil {
			q.edges[p[0]] = map[string]*relation{}
		}
		q.edges[p[0]][p[1]] = r
		if r.structural {
			addTo(q.structural, p[0], p[1])
			q.lead(p[1], p[0])
			q.affectsElse(p[0])
		}
		q.dirty[p[0]] = true
	}
}

// lead notes whether a change that is ahead of another one leads into its targets.
func (q *Queue) lead(from, into string) {
	a, b := q.Lineup.Pending(from), q.Lineup.Pending(into)
	if (a == nil || b == nil || a.Position < b.Position) && q.analyses[from].footprint.LeadsInto(q.analyses[into].footprint) {
		addTo(q.led, into, from)
	}
}

// leadAnew is for when the order has changed.
func (q *Queue) leadAnew() {
	clear(q.led)
	for into, of := range q.structural {
		for from := range of {
			q.lead(from, into)
		}
	}
}

// candidates are the pending changes that may conflict with a: those that meet it in an index.
func (q *Queue) candidates(a *analysis) map[string]bool {
	c := map[string]bool{}
	join := func(m map[string]bool) {
		for id := range m {
			c[id] = true
		}
	}
	if a.all {
		for id := range q.analyses {
			c[id] = true
		}
	}
	join(q.all)
	hubs := q.hubs
	if q.insists(a.ref.change) {
		hubs = nil
	}
	for _, t := range a.footprint.Touched {
		if !hubs.Has(t) {
			join(q.byTarget[t])
		}
		join(q.byEdge[t])
	}
	if hubs != nil {
		join(q.insisting)
	}
	for _, n := range a.footprint.Leaves {
		join(q.byEdge[n])
	}
	for _, n := range a.footprint.Added {
		join(q.byTarget[n])
		join(q.byLeaf[n])
	}
	for id := range a.textual {
		if q.analyses[id] != nil {
			c[id] = true
		}
	}
	for id, o := range q.analyses {
		if o.textual[a.ref.change] != nil {
			c[id] = true
		}
	}
	delete(c, a.ref.change)
	return c
}

// relate is M1 with M4 and M5, by the hubs of the queue: nil if a and b are independent.
func relate(a, b *analysis, hubs *targets.Hubs) *relation {
	why := a.footprint.Meets(b.footprint, hubs)
	r := &relation{shared: why.Targets[:min(len(why.Targets), 8):min(len(why.Targets), 8)], structural: why.Edge != "", everything: why.All}
	conflict := why.Conflict()
	for _, t := range []*eventsv1.Textual{textualWith(a, b.ref), textualWith(b, a.ref)} {
		if t == nil {
			continue
		}
		r.merge = r.merge || t.MergeConflict
		// A change that does not merge, or is invalid, conflicts with whoever could mend it.
		conflict = conflict || t.MergeConflict || !a.known() || !b.known()
	}
	if !conflict {
		return nil
	}
	return r
}

// textualWith is what a's analysis says of exactly that revision.
func textualWith(a *analysis, other refKey) *eventsv1.Textual {
	if t := a.textual[other.change]; t != nil && t.GetOther().GetRevision() == other.revision {
		return t
	}
	return nil
}

// affects says whether k is in Af(t): D(k) holds t, or k is in structural conflict with a change whose
// D does, or k's targets are unknown (M24, M4).
func (q *Queue) affects(k *analysis, target string) bool {
	if target == WholeRepository || k.touches(target) || (k.all && k.known()) {
		return true
	}
	if k.structural != nil {
		return k.structural[target]
	}
	// Who is in both: most targets are few changes', and most changes meet few by an edge.
	many := q.structural[k.ref.change]
	if len(many) == 0 {
		return false // most meet none, and this is asked often
	}
	few := q.byTarget[target]
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
