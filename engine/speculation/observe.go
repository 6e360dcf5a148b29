package speculation

import (
	"slices"

	"landfall.build/engine/evidence"
	eventsv1 "landfall.build/events/v1"
)

// observation joins a version's label with the hash that it had in a tree that was prepared or analysed.
type observation struct {
	label label
	hash  string
	// sequence is the move of the mainline that the tree was made on.
	sequence uint64
	// held are the changes of that tree that were pending when it was asked for, the built one last. summed are those of
	// them that the label counts. Most observations of a tree share a list, which nobody changes.
	held, summed []revision
}

func (q *Queue) observe(o *observation, trivial bool) {
	v := evidence.Version{Target: o.label.target, Hash: o.hash}
	if trivial {
		q.markTrivial(v)
	}
	// Two trees of one label have the same version unless an analysis missed something. Then the one on the newer
	// mainline counts, and of two on the same the newer observation: it is closer to what will land.
	old := q.known.labels[o.label]
	if old != nil && (old.hash == o.hash || old.sequence > o.sequence) {
		old.sequence = max(old.sequence, o.sequence)
		return
	}
	// The label may belong to a path of any change that the tree held, in whatever order these are by now. While nothing is
	// known of the version it changes no outcome of theirs.
	if old != nil || q.known.ledger.State(v, q.settings.GetSteps()) != evidence.Unknown {
		q.dirtyHeld(o)
	}
	if old != nil {
		q.dirtyHeld(old)
	}
	q.known.add(o, true)
}

// add adds an observation, which names its label's hash from now on if names is set.
func (k *known) add(o *observation, names bool) {
	if names {
		k.labels[o.label] = o
	}
	v := evidence.Version{Target: o.label.target, Hash: o.hash}
	k.observed[v.Target] = append(k.observed[v.Target], o)
	k.byVersion[v] = append(k.byVersion[v], o)
}

// forgetUnreachable drops the observations of a target that no path can have any more, as a change that affects the target
// has left: those without the change if it landed, else those with it. Otherwise a target that many changes affect would
// keep one for every tree that was ever made of it.
func (q *Queue) forgetUnreachable(target string, left revision, landed bool) {
	kept := q.known.observed[target][:0]
	for _, o := range q.known.observed[target] {
		if slices.Contains(o.summed, left) == landed {
			kept = append(kept, o)
			continue
		}
		if q.known.labels[o.label] == o {
			delete(q.known.labels, o.label)
		}
		v := evidence.Version{Target: target, Hash: o.hash}
		if q.known.byVersion[v] = without(q.known.byVersion[v], o); len(q.known.byVersion[v]) == 0 {
			delete(q.known.byVersion, v)
			q.known.ledger.ForgetTrivial(v)
		}
	}
	clear(q.known.observed[target][len(kept):])
	if q.known.observed[target] = kept; len(kept) == 0 {
		delete(q.known.observed, target)
	}
}

func without(list []*observation, o *observation) []*observation {
	if i := slices.Index(list, o); i >= 0 {
		return slices.Delete(list, i, i+1)
	}
	return list
}

// markTrivial notes that no command verifies a version. The outcomes of all whose trees have it may differ then.
func (q *Queue) markTrivial(v evidence.Version) {
	green := q.known.ledger.State(v, q.settings.GetSteps()) == evidence.Green
	q.known.ledger.MarkTrivial(v)
	if !green {
		q.dirtyHolders(v)
	}
}

// prepared folds the versions of a build's tree, or that it could not be made.
func (q *Queue) prepared(f *eventsv1.BuildPrepared) {
	if q.builds.byID[f.Build] != nil {
		return
	}
	ref := revisionOf(f.Change)
	b := &build{of: ref, assumed: f.Assumed}
	if ref.kind == ofMainline {
		for _, v := range f.Versions {
			at := evidence.Version{Target: v.Target, Hash: v.Hash}
			if v.Trivial {
				q.markTrivialUnlabelled(at)
			} else if !v.Absent {
				b.versions = append(b.versions, at)
			}
		}
		q.builds.add(f.Build, b)
		q.countFailedCheck(f)
		q.pushes.Prepared(f)
		q.surveyPrepared(f)
		q.delta.allDirty = true
		q.reportProgress(f.Build, b)
		return
	}
	if q.Lineup.PendingAt(f.Change) == nil {
		return
	}
	sequence, knownBase := q.landed.sequences[f.Base]
	var assumed []revision
	for _, k := range f.Assumed {
		assumed = append(assumed, revisionOf(k))
	}
	if f.Outcome != eventsv1.PreparationOutcome_PREPARATION_OUTCOME_PREPARED {
		q.delta.dirty[ref.change] = true
		tree := failedTree{assumed: assumed, sequence: sequence, outcome: f.Outcome, message: f.Message}
		if knownBase && !q.treeMayBeMendedSince(ref, tree) {
			st := q.changes[ref.change]
			st.failedTrees = append(st.failedTrees, tree)
		}
		q.builds.add(f.Build, b)
		q.reportProgress(f.Build, b)
		return
	}
	a := q.analyses.pending[ref.change]
	held := append(append([]revision(nil), assumed...), ref)
	var last []revision // the list of the version before, which most versions of a tree share
	for _, v := range f.Versions {
		hash := v.Hash
		switch {
		case v.Absent:
			hash = ""
		case !v.Trivial:
			b.versions = append(b.versions, evidence.Version{Target: v.Target, Hash: hash})
		}
		if a == nil || !knownBase || v.Part == 0 || int(v.Part) >= len(a.digests) {
			continue
		}
		s := q.landed.at(v.Target, sequence).plus(a.digests[v.Part])
		summed := []revision{ref}
		complete := true
		for _, k := range assumed {
			ka := q.analysisOf(k)
			if ka == nil {
				complete = false
				break
			}
			if q.affects(ka, v.Target) {
				s = s.plus(ka.heldIn(v.Target))
				summed = append(summed, k)
			}
		}
		if slices.Equal(summed, last) {
			summed = last
		}
		last = summed
		if complete {
			q.observe(&observation{label: label{v.Target, s}, hash: hash, sequence: sequence, held: held, summed: summed}, v.Trivial)
		}
	}
	q.builds.add(f.Build, b)
	q.reportProgress(f.Build, b)
}

// countFailedCheck counts how often a head of the mainline could not be prepared: one whose targets cannot be computed would
// be built over and over.
func (q *Queue) countFailedCheck(f *eventsv1.BuildPrepared) {
	switch {
	case f.Outcome == eventsv1.PreparationOutcome_PREPARATION_OUTCOME_PREPARED:
		q.proving.failed = failedChecks{}
	case q.proving.failed.head == f.Base:
		q.proving.failed.times++
	default:
		q.proving.failed = failedChecks{f.Base, 1}
	}
}

// maxFailedChecks is how often in a row a head that cannot be prepared is built. After that each tick allows one more try: a
// disk may have been full.
const maxFailedChecks = 8

// checkWorthTrying reports whether to build the mainline itself once more.
func (q *Queue) checkWorthTrying() bool {
	return q.proving.failed.head != q.Lineup.Head || q.proving.failed.times < maxFailedChecks
}

// analysisOf returns the analysis of a revision that is pending or among the last that left, else nil.
func (q *Queue) analysisOf(k revision) *analysis {
	if a := q.analyses.pending[k.change]; a != nil && a.revision == k {
		return a
	}
	return q.analyses.departed[k]
}

// finished folds the end of an attempt at a version.
func (q *Queue) finished(f *eventsv1.StepFinished) {
	v := evidence.Version{Target: f.Target, Hash: f.Hash}
	if !q.known.ledger.Apply(f) {
		return
	}
	if f.Outcome == eventsv1.StepOutcome_STEP_OUTCOME_PASSED {
		q.delta.durations = append(q.delta.durations, &eventsv1.StepDuration{Target: f.Target, DurationUs: max(0, f.FinishedUs-f.StartedUs)})
	}
	q.dirtyHolders(v)
	q.settleSurveyed(v)
	if q.pushes.Has(v) {
		q.delta.allDirty = true
	}
	for _, id := range q.builds.waitingFor(v) {
		if b := q.builds.byID[id]; q.isOverAfter(b, v) {
			q.reportProgress(id, b)
		}
	}
}

// forget folds that evidence was forgotten. A build that was over by it stays over: the path is built again.
func (q *Queue) forget(f *eventsv1.EvidenceForgotten) {
	q.known.ledger.Forget(f, func(v evidence.Version) {
		q.dirtyHolders(v)
		if q.pushes.Has(v) {
			q.delta.allDirty = true
		}
	})
}
