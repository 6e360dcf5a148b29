package speculation

import (
	"slices"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	eventsv1 "landfall.build/events/v1"
	"landfall.build/services/evidence"
)

// observation joins a version's label with its real hash: some tree that held these changes was looked at.
type observation struct {
	label label
	hash  string
	// sequence is the move of the mainline that the tree was made on.
	sequence uint64
	// held are the changes of that tree that were pending when it was asked for, the built one last;
	// summed are those of them that the label counts.
	held, summed []refKey
}

func protoreflectValue(m proto.Message) protoreflect.Value {
	return protoreflect.ValueOfMessage(m.ProtoReflect())
}

func (q *Queue) observe(o *observation, trivial bool) {
	v := evidence.Version{Target: o.label.target, Hash: o.hash}
	if trivial {
		q.markTrivial(v)
	}
	// Two trees of one label are the same version unless the analysis missed something; then the one on
	// the newer mainline, and of two the newer look, says more about what is to land.
	old := q.labels[o.label]
	if old != nil && (old.hash == o.hash || old.sequence > o.sequence) {
		old.sequence = max(old.sequence, o.sequence)
		return
	}
	// A label may be a path of any of those that the tree held, in whatever order they are by now; as long as nothing is known of
	// the version it says nothing to them.
	if old != nil || q.ledger.State(v, q.settings.GetSteps()) != evidence.Unknown {
		q.dirtyHeld(o)
	}
	if old != nil {
		q.dirtyHeld(old)
	}
	q.labels[o.label] = o
	q.observed[o.label.target] = append(q.observed[o.label.target], o)
	q.byVersion[v] = append(q.byVersion[v], o)
}

// forgetUnreachable drops the observations of a target that no path can come back to now that a change has
// left that affects it: if it landed those without it, else those with it. A target that many changes affect
// would gather one for every tree that was ever made of it.
func (q *Queue) forgetUnreachable(target string, left refKey, landed bool) {
	kept := q.observed[target][:0]
	for _, o := range q.observed[target] {
		if slices.Contains(o.summed, left) == landed {
			kept = append(kept, o)
			continue
		}
		if q.labels[o.label] == o {
			delete(q.labels, o.label)
		}
		v := evidence.Version{Target: target, Hash: o.hash}
		if q.byVersion[v] = without(q.byVersion[v], o); len(q.byVersion[v]) == 0 {
			delete(q.byVersion, v)
			q.ledger.ForgetTrivial(v)
		}
	}
	clear(q.observed[target][len(kept):])
	if q.observed[target] = kept; len(kept) == 0 {
		delete(q.observed, target)
	}
}

func without(list []*observation, o *observation) []*observation {
	if i := slices.Index(list, o); i >= 0 {
		return slices.Delete(list, i, i+1)
	}
	return list
}

// markTrivial notes that no command verifies a version, and who is told something new by that: another tree
// may have had the same version before anybody knew.
func (q *Queue) markTrivial(v evidence.Version) {
	green := q.ledger.State(v, q.settings.GetSteps()) == evidence.Green
	q.ledger.MarkTrivial(v)
	if !green {
		q.dirtyHolders(v)
	}
}

// prepared folds what a build's tree turned out to be.
func (q *Queue) prepared(f *eventsv1.BuildPrepared) {
	if q.builds.byID[f.Build] != nil {
		return
	}
	ref := keyOf(f.Change)
	b := &build{change: ref, assumed: f.Assumed}
	if ref.change == "" {
		for _, v := range f.Versions {
			at := evidence.Version{Target: v.Target, Hash: v.Hash}
			if v.Trivial {
				q.markUnobserved(at)
			} else if !v.Absent {
				b.versions = append(b.versions, at)
			}
		}
		q.builds.put(f.Build, b)
		q.unverifiable(f)
		q.foreign.Prepared(f)
		q.allDirty = true
		q.progress(f.Build, b)
		return
	}
	if q.Lineup.PendingAt(f.Change) == nil {
		return
	}
	q.dirty[ref.change] = true
	sequence, knownBase := q.history.sequences[f.Base]
	var assumed []refKey
	for _, k := range f.Assumed {
		assumed = append(assumed, keyOf(k))
	}
	if f.Outcome != eventsv1.PreparationOutcome_PREPARATION_OUTCOME_PREPARED {
		p := pathObservation{assumed: assumed, sequence: sequence, outcome: f.Outcome, message: f.Message}
		if knownBase && !q.mendedSince(ref, p) {
			st := q.state[ref.change]
			st.paths = append(st.paths, p)
		}
		q.builds.put(f.Build, b)
		q.progress(f.Build, b)
		return
	}
	a := q.analyses[ref.change]
	held := append(append([]refKey(nil), assumed...), ref)
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
		s := q.history.at(v.Target, sequence).plus(a.digests[v.Part])
		summed := []refKey{ref}
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
		if complete {
			q.observe(&observation{label: label{v.Target, s}, hash: hash, sequence: sequence, held: held, summed: summed}, v.Trivial)
		}
	}
	q.builds.put(f.Build, b)
	q.progress(f.Build, b)
}

// unverifiable counts how often a head of the mainline could not be prepared: it may have no targets that anybody
// can know, and would be built over and over.
func (q *Queue) unverifiable(f *eventsv1.BuildPrepared) {
	switch {
	case f.Outcome == eventsv1.PreparationOutcome_PREPARATION_OUTCOME_PREPARED:
		q.unverified = unverified{}
	case q.unverified.head == f.Base:
		q.unverified.times++
	default:
		q.unverified = unverified{f.Base, 1}
	}
}

// maxUnverified is how often in a row a head is built that cannot be prepared. Then each tick gives it one more try:
// a disk may have been full.
const maxUnverified = 8

// verifiable says that another build of the mainline itself is worth a try.
func (q *Queue) verifiable() bool {
	return q.unverified.head != q.Lineup.Head || q.unverified.times < maxUnverified
}

// analysisOf is the analysis of a revision that is pending or left not long ago.
func (q *Queue) analysisOf(k refKey) *analysis {
	if a := q.analyses[k.change]; a != nil && a.ref == k {
		return a
	}
	return q.departed[k]
}

// finished folds the end of an attempt at a version.
func (q *Queue) finished(f *eventsv1.StepFinished) {
	v := evidence.Version{Target: f.Target, Hash: f.Hash}
	if !q.ledger.Apply(f) {
		return
	}
	if f.Outcome == eventsv1.StepOutcome_STEP_OUTCOME_PASSED {
		q.out.durations = append(q.out.durations, &eventsv1.StepDuration{Target: f.Target, DurationUs: max(0, f.FinishedUs-f.StartedUs)})
	}
	q.dirtyHolders(v)
	if q.foreign.Has(v) {
		q.allDirty = true
	}
	for _, id := range q.builds.with(v) {
		if b := q.builds.byID[id]; q.over(b) {
			q.progress(id, b)
		}
	}
}

// forget folds what is not known any more. A build that was over for it is not taken back: a path that has lost what
// was known of it is built again.
func (q *Queue) forget(f *eventsv1.EvidenceForgotten) {
	q.ledger.Forget(f, func(v evidence.Version) {
		q.dirtyHolders(v)
		if q.foreign.Has(v) {
			q.allDirty = true
		}
	})
}
