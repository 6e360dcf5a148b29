package speculation

import (
	"slices"
	"sort"

	eventsv1 "landfall.build/events/v1"
)

// analysis is what is known of a revision's effect on the target graph.
type analysis struct {
	ref     refKey
	base    string
	outcome eventsv1.AnalysisOutcome
	// targets holds, for each target of δ, the landing commits at which it changes, ascending.
	targets map[string][]uint32
	deleted map[string]bool
	leaves  map[string]bool
	added   map[string]bool
	all     bool
	textual map[string]*eventsv1.Textual
	message string
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
		targets: map[string][]uint32{}, deleted: map[string]bool{}, leaves: map[string]bool{}, added: map[string]bool{},
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
	for _, n := range aff.GetLeaves() {
		a.leaves[n] = true
	}
	for _, n := range aff.GetAddedEdges() {
		a.added[n] = true
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
	for t := range a.targets {
		f(q.byTarget, t, a.ref.change)
	}
	for t := range a.deleted {
		f(q.byTarget, t, a.ref.change)
	}
	for n := range a.leaves {
		f(q.byLeaf, n, a.ref.change)
	}
	for n := range a.added {
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
		if r := q.relate(a, q.analyses[other]); r != nil {
			q.link(id, other, r)
		}
	}
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
	}
	delete(q.structural, id)
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
		}
		q.dirty[p[0]] = true
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
	for t := range a.targets {
		join(q.byTarget[t])
		join(q.byEdge[t])
	}
	for t := range a.deleted {
		join(q.byTarget[t])
		join(q.byEdge[t])
	}
	for n := range a.leaves {
		join(q.byEdge[n])
	}
	for n := range a.added {
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

// relate is M1 with M4 and M5: nil if a and b are independent.
func (q *Queue) relate(a, b *analysis) *relation {
	r := &relation{}
	small, large := a, b
	if len(small.targets)+len(small.deleted) > len(large.targets)+len(large.deleted) {
		small, large = large, small
	}
	for t := range small.targets {
		if large.touches(t) {
			r.shared = append(r.shared, t)
		}
	}
	for t := range small.deleted {
		if large.touches(t) {
			r.shared = append(r.shared, t)
		}
	}
	sort.Strings(r.shared)
	r.shared = slices.Compact(r.shared)
	conflict := len(r.shared) > 0
	if len(r.shared) > 8 {
		r.shared = r.shared[:8:8]
	}
	r.structural = addsEdgeInto(a, b) || addsEdgeInto(b, a)
	r.everything = (a.all && a.known()) || (b.all && b.known())
	for _, t := range []*eventsv1.Textual{textualWith(a, b.ref), textualWith(b, a.ref)} {
		if t == nil {
			continue
		}
		r.merge = r.merge || t.MergeConflict
		// A change that does not merge, or is invalid, conflicts with whoever could mend it.
		conflict = conflict || t.MergeConflict || !a.known() || !b.known()
	}
	if !conflict && !r.structural && !r.everything {
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

func addsEdgeInto(a, b *analysis) bool {
	for n := range a.added {
		if b.touches(n) || b.leaves[n] {
			return true
		}
	}
	return false
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
	for other := range q.structural[k.ref.change] {
		if q.analyses[other].touches(target) {
			return true
		}
	}
	return false
}
