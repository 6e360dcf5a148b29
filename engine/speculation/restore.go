package speculation

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"landfall.build/engine/directpush"
	"landfall.build/engine/evidence"
	"landfall.build/engine/lineup"
	"landfall.build/engine/snapshotv1"
	"landfall.build/engine/survey"
	"landfall.build/engine/targets"
	eventsv1 "landfall.build/events/v1"
)

// Restore returns the queue that a message was made of. It makes the indexes again.
func Restore(m *snapshotv1.Speculation) (*Queue, error) {
	q, r := New(), newSnapshotReader(m)
	var err1, err2, err3 error
	q.Lineup, err1 = lineup.Restore(m.GetLineup())
	q.pushes, err2 = directpush.Restore(m.GetPushes())
	q.proving.survey, err3 = survey.Restore(m.GetSurvey())
	if err := cmp.Or(err1, err2, err3); err != nil {
		return nil, err
	}
	q.settings, q.known.ledger = m.GetSettings(), evidence.Restore(m.GetLedger())
	q.lastPush, q.proving.failed = m.GetLastPush(), failedChecks{m.GetFailedHead(), m.GetFailedTimes()}
	q.landings, q.landed = r.landings(m.GetLandings()), r.landed(m.GetLanded())
	q.restoreChanges(r, m)
	q.restoreConflicts(r, m)
	q.restoreKnown(r, m)
	for _, b := range m.GetBuilds() {
		q.builds.restore(b.Id, &build{of: r.revision(b.Revision), assumed: b.Assumed, versions: r.versions(b.Targets, b.Hashes)})
	}
	q.builds.checks = m.GetChecks()
	q.restorePublished(r, m.GetPublished())
	q.delta.restore(m.GetDelta())
	return q, cmp.Or(r.err, r.texts.Err)
}

// snapshotReader reads a message. err is set by the first thing in it that does not fit.
type snapshotReader struct {
	texts snapshotv1.TextsOf
	all   []revision   // by number
	trees [][]revision // by number
	err   error
}

func newSnapshotReader(m *snapshotv1.Speculation) *snapshotReader {
	r := &snapshotReader{texts: snapshotv1.TextsOf{List: m.GetTexts()}}
	for _, x := range m.GetRevisions() {
		r.all = append(r.all, revision{kind(x.Kind), x.Change, x.Number})
	}
	for _, tree := range m.GetTrees() {
		r.trees = append(r.trees, r.revisions(tree.Held))
	}
	return r
}

func (r *snapshotReader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf(format, args...)
	}
}

// fits reports whether lists are of one length.
func (r *snapshotReader) fits(what string, lengths ...int) bool {
	for _, n := range lengths {
		if n != lengths[0] {
			r.fail("the lists of %s differ in length: %d", what, lengths)
			return false
		}
	}
	return true
}

func (r *snapshotReader) revision(n uint32) revision {
	if int64(n) >= int64(len(r.all)) {
		r.fail("there is no revision %d", n)
		return revision{}
	}
	return r.all[n]
}

func (r *snapshotReader) revisions(numbers []uint32) (list []revision) {
	if len(numbers) == 0 {
		return nil
	}
	list = make([]revision, len(numbers))
	for i, n := range numbers {
		list[i] = r.revision(n)
	}
	return list
}

func (r *snapshotReader) versions(targets, hashes []uint32) (list []evidence.Version) {
	if !r.fits("versions", len(targets), len(hashes)) {
		return nil
	}
	for i := range targets {
		list = append(list, evidence.Version{Target: r.texts.At(targets[i]), Hash: r.texts.At(hashes[i])})
	}
	return list
}

func (r *snapshotReader) set(numbers []uint32) map[string]bool {
	set := make(map[string]bool, len(numbers))
	for _, n := range numbers {
		set[r.texts.At(n)] = true
	}
	return set
}

func (r *snapshotReader) landings(list []*snapshotv1.SpeculationLanding) (out []landing) {
	for _, l := range list {
		out = append(out, landing{l.Sequence, r.revision(l.Revision)})
	}
	return out
}

func (r *snapshotReader) landed(m *snapshotv1.SpeculationLanded) *landed {
	l := newLanded()
	l.commits, l.sequence, l.swept = m.GetCommits(), m.GetSequence(), m.GetSwept()
	if r.fits("heads", len(l.commits), len(m.GetCommitSequences())) {
		for i, commit := range l.commits {
			if at := m.CommitSequences[i]; at != 0 {
				l.sequences[commit] = at
			}
		}
	}
	l.everything, l.repository = r.sums(m.GetEverything()), r.sums(m.GetRepository())
	for _, of := range m.GetTargets() {
		s := r.sums(of)
		if len(s.at) == 0 {
			r.fail("nothing has landed in the target %s", r.texts.At(of.Target))
		}
		l.targets[r.texts.At(of.Target)] = &s
	}
	return l
}

func (r *snapshotReader) sums(m *snapshotv1.SpeculationSums) (s sums) {
	if !r.fits("sums", len(m.GetAt()), len(m.GetLow()), len(m.GetHigh())) {
		return s
	}
	s.at, s.sum = m.GetAt(), make([]sum, len(m.GetAt()))
	for i := range s.at {
		s.sum[i] = sum{m.Low[i], m.High[i]}
	}
	return s
}

// restoreChanges restores what is known of the pending changes. Every pending change has a state, and every analysis is of
// one of them.
func (q *Queue) restoreChanges(r *snapshotReader, m *snapshotv1.Speculation) {
	for _, x := range m.GetChanges() {
		st := &changeState{epoch: x.Epoch, guard: x.Guard, landings: r.landings(x.Landings), overtaken: int(x.Overtaken), unmade: x.Unmade}
		for _, tree := range x.FailedTrees {
			st.failedTrees = append(st.failedTrees, failedTree{r.revisions(tree.Assumed), tree.Sequence, tree.Outcome, tree.Message})
		}
		q.changes[x.Change] = st
		if st.guard != nil {
			q.guarded[x.Change] = true
		}
		if st.overtaken >= maxOvertaken {
			q.conflicts.insisting[x.Change] = true
		}
	}
	for _, c := range q.Lineup.Order() {
		if q.changes[c.ID()] == nil {
			r.fail("the pending change %s has no state", c.ID())
		}
	}
	if len(q.changes) != len(q.Lineup.Order()) {
		r.fail("%d changes have a state, and %d are pending", len(q.changes), len(q.Lineup.Order()))
	}
	for _, x := range m.GetAnalyses() {
		if a := r.analysis(x); q.Lineup.Pending(a.revision.change) != nil {
			q.analyses.pending[a.revision.change] = a
		} else {
			r.fail("%s is analysed and not pending", a.revision.change)
		}
	}
	for _, x := range m.GetDeparted() {
		a := r.analysis(x)
		a.structural = r.set(x.Structural)
		q.analyses.departed[a.revision] = a
		q.analyses.names += a.names()
		q.analyses.departedOrder = append(q.analyses.departedOrder, a.revision)
	}
}

func (r *snapshotReader) analysis(m *snapshotv1.SpeculationAnalysis) *analysis {
	a := &analysis{
		revision: r.revision(m.Revision), base: r.texts.At(m.Base), outcome: m.Outcome, all: m.All, message: m.Message, outdated: m.Outdated,
		targets: make(map[string][]uint32, len(m.TargetTouched)), deleted: make(map[string]bool, len(m.Deleted)), textual: make(map[string]textual, len(m.Textual)),
		footprint: targets.Footprint{Touched: r.texts.All(m.Touched), Leaves: r.texts.All(m.Leaves), Added: r.texts.All(m.Added)},
	}
	a.footprint.All = a.all && a.known()
	a.digests = digestsOf(a.revision, int(min(m.Parts, 1<<16)))
	touched := func(i uint32) string {
		if int64(i) < int64(len(a.footprint.Touched)) {
			return a.footprint.Touched[i]
		}
		r.fail("%s touches %d targets, and not target %d", a.revision.change, len(a.footprint.Touched), i)
		return ""
	}
	if r.fits("targets", len(m.TargetTouched), len(m.TargetParts)) {
		parts := m.TargetParts
		for from, i := 0, 0; from < len(parts); from = i {
			for i = from; i < len(parts) && m.TargetTouched[i] == m.TargetTouched[from]; i++ {
				if int64(parts[i]) >= int64(len(a.digests)) {
					r.fail("%s has no landing commit %d", a.revision.change, parts[i])
				}
			}
			a.targets[touched(m.TargetTouched[from])] = parts[from:i:i]
		}
	}
	for _, i := range m.Deleted {
		a.deleted[touched(i)] = true
	}
	if r.fits("textual merges", len(m.Textual), len(m.TextualRevisions), len(m.TextualConflicts)) {
		for i, other := range m.Textual {
			a.textual[r.texts.At(other)] = textual{m.TextualRevisions[i], m.TextualConflicts[i]}
		}
	}
	return a
}

// restoreConflicts restores the conflict graph; the indexes follow from the analyses.
func (q *Queue) restoreConflicts(r *snapshotReader, m *snapshotv1.Speculation) {
	if names := q.settings.GetHubs(); len(names) > 0 {
		q.conflicts.hubNames, q.conflicts.hubs = names, targets.NewHubs(names)
	}
	for _, a := range q.analyses.pending {
		q.conflicts.add(a)
	}
	e := m.GetEdges()
	n := len(e.GetStructural())
	if !r.fits("edges", n, len(e.GetMerge()), len(e.GetSharedCounts()), len(e.GetEnds())/2) {
		return
	}
	shared := r.texts.All(e.GetShared())
	for i := range n {
		a, b := r.texts.At(e.Ends[2*i]), r.texts.At(e.Ends[2*i+1])
		count := e.SharedCounts[i]
		if q.analyses.pending[a] == nil || q.analyses.pending[b] == nil || int64(count) > int64(len(shared)) {
			r.fail("the edge of %s and %s has no analysis or no targets", a, b)
			return
		}
		q.conflicts.connect(a, b, &relation{shared: shared[:count:count], structural: e.Structural[i], merge: e.Merge[i]})
		shared = shared[count:]
	}
	q.relinkLeading()
}

// restoreKnown restores the evidence.
func (q *Queue) restoreKnown(r *snapshotReader, m *snapshotv1.Speculation) {
	k := &q.known
	var last []revision
	for _, x := range m.GetObservations() {
		if int64(x.Tree) >= int64(len(r.trees)) || len(r.trees[x.Tree]) == 0 {
			r.fail("there is no tree %d", x.Tree)
			return
		}
		if len(x.Summed) == 0 {
			r.fail("an observation counts no revision")
			return
		}
		o := &observation{label: label{r.texts.At(x.Target), sum{x.SumLow, x.SumHigh}}, hash: r.texts.At(x.Hash), sequence: x.Sequence, held: r.trees[x.Tree]}
		o.summed = make([]revision, len(x.Summed))
		for i, at := range x.Summed {
			if int64(at) >= int64(len(o.held)) {
				r.fail("a tree held %d revisions, and not revision %d", len(o.held), at)
				return
			}
			o.summed[i] = o.held[at]
		}
		if slices.Equal(o.summed, last) {
			o.summed = last
		}
		last = o.summed
		k.add(o, !x.Replaced)
	}
	k.marks.limit, k.marks.order = int(m.GetMarks().GetLimit()), r.versions(m.GetMarks().GetTargets(), m.GetMarks().GetHashes())
	k.marks.set = make(map[evidence.Version]bool, len(k.marks.order))
	for _, v := range k.marks.order {
		k.marks.set[v] = true
	}
}

// restorePublished restores the graph as the deltas have told it.
func (q *Queue) restorePublished(r *snapshotReader, m *snapshotv1.SpeculationPublished) {
	q.published.check, q.published.mainline, q.published.settings = m.GetCheck(), m.GetMainline(), m.GetSettings()
	q.published.survey = m.GetSurvey()
	for _, x := range m.GetNodes() {
		if x.Node.GetChange() == nil {
			r.err = cmp.Or(r.err, errors.New("a published node has no change"))
			return
		}
		id := x.Node.Change.Change
		q.published.nodes[id] = r.node(x, q.conflicts.edges[id])
	}
}

func (r *snapshotReader) node(m *snapshotv1.SpeculationNode, edges map[string]*relation) *eventsv1.Node {
	n := m.Node
	if !r.fits("members", len(m.Ahead), len(m.AheadFlags)) {
		return n
	}
	counts, names := m.AheadTargetCounts, r.texts.All(m.AheadTargets)
	n.Ahead = make([]*eventsv1.Ahead, len(m.Ahead))
	for i, of := range m.Ahead {
		flags := m.AheadFlags[i]
		a := &eventsv1.Ahead{
			Change:    r.revision(of).ref(),
			Conflicts: flags&aheadConflicts != 0, MergeConflict: flags&aheadDoesNotMerge != 0, Required: flags&aheadIsRequired != 0,
		}
		switch e := edges[a.Change.Change]; {
		case flags&aheadHasTargetsOfEdge != 0 && e != nil:
			a.Targets = e.shared
		case flags&aheadHasTargetsOfEdge == 0 && len(counts) > 0 && int64(counts[0]) <= int64(len(names)):
			a.Targets, names, counts = names[:counts[0]:counts[0]], names[counts[0]:], counts[1:]
		default:
			r.fail("a member of %s has no targets", n.Change.Change)
		}
		n.Ahead[i] = a
	}
	n.Classes = make([]*eventsv1.Class, len(m.Classes))
	for i, k := range m.Classes {
		n.Classes[i] = &eventsv1.Class{Members: k.Members, Through: k.Through, Outcomes: k.Outcomes}
		if !r.fits("a class", len(k.Targets), len(k.Parts)) {
			continue
		}
		versions := make([]eventsv1.TargetVersion, len(k.Targets))
		n.Classes[i].Targets = make([]*eventsv1.TargetVersion, len(k.Targets))
		for j := range versions {
			versions[j].Target, versions[j].Part = r.texts.At(k.Targets[j]), k.Parts[j]
			n.Classes[i].Targets[j] = &versions[j]
		}
	}
	return n
}

func (d *delta) restore(m *snapshotv1.SpeculationDelta) {
	for _, id := range m.GetDirty() {
		d.dirty[id] = true
	}
	for _, k := range m.GetKnown() {
		of := map[string]bool{}
		for _, t := range k.Targets {
			of[t] = true
		}
		d.known[k.Change] = of
	}
	d.check, d.allDirty, d.tick = m.GetCheck(), m.GetAllDirty(), m.GetTick()
	told := m.GetTold()
	d.gone, d.builds, d.answered, d.durations = told.GetGone(), told.GetBuilds(), told.GetAnswered(), told.GetDurations()
}
