package speculation

import (
	"slices"

	"google.golang.org/protobuf/proto"

	eventsv1 "landfall.build/events/v1"
	"landfall.build/services/evidence"
	"landfall.build/services/lineup"
)

// Apply folds one fact at the stamp of its record. offset is the fact's place among the facts of the
// queue; it only has to rise.
func (q *Queue) Apply(fact *eventsv1.Fact, offset int64) {
	switch f := fact.GetFact().(type) {
	case *eventsv1.Fact_Settings:
		q.settings = f.Settings
		q.allDirty = true
		q.setHubs(f.Settings.GetHubs())
	case *eventsv1.Fact_Tick:
		q.out.tick = true
		if !q.verifiable() {
			q.unverified.times, q.allDirty = maxUnverified-1, true
		}
	case *eventsv1.Fact_ModelPromoted, *eventsv1.Fact_ModelRolledBack:
		q.out.tick = true // it changes nothing here; those behind predict anew
	case *eventsv1.Fact_ChangeAnalyzed:
		q.analyzed(f.ChangeAnalyzed)
	case *eventsv1.Fact_MainlineAnalyzed:
		q.mainlineAnalyzed(f.MainlineAnalyzed)
	case *eventsv1.Fact_BuildPrepared:
		q.prepared(f.BuildPrepared)
	case *eventsv1.Fact_StepFinished:
		q.finished(f.StepFinished)
	case *eventsv1.Fact_EvidenceForgotten:
		q.forget(f.EvidenceForgotten)
	case nil:
	default:
		if m := Message(fact); m != nil {
			q.lineupFact(m, offset)
		}
	}
}

// lineupFact folds a fact of landfall.changes and draws from its effect what the graph needs.
func (q *Queue) lineupFact(m proto.Message, offset int64) {
	head := q.Lineup.Head
	eff := q.Lineup.Apply(m, offset)
	if !eff.Applied {
		return
	}
	if eff.Left != nil {
		q.left(eff)
	}
	if eff.Entered != nil {
		q.state[eff.Entered.ID()] = &changeState{}
		q.dirty[eff.Entered.ID()] = true
		q.dirtyRequirers(eff.Entered.ID()) // it may have been away
	}
	if eff.Reordered {
		q.allDirty = true
		q.leadAnew()
	}
	switch f := m.(type) {
	case *eventsv1.ChangeHeld:
		q.dirty[f.Change] = true
	case *eventsv1.ChangeReleased:
		q.dirty[f.Change] = true
	case *eventsv1.LandIntended:
		q.dirty[f.Change.Change] = true
	case *eventsv1.LandVoid:
		q.dirty[f.Change.Change] = true
		q.out.answered = append(q.out.answered, &eventsv1.Answered{Change: f.Change, Decision: f.Decision})
	case *eventsv1.Refused:
		q.state[f.Change.Change].guard = f
		q.guarded[f.Change.Change] = true
		q.dirty[f.Change.Change] = true
		q.out.answered = append(q.out.answered, &eventsv1.Answered{Change: f.Change, Decision: f.Decision})
		for _, v := range f.Versions {
			if v.Trivial {
				q.markUnobserved(evidence.Version{Target: v.Target, Hash: v.Hash})
			}
		}
	case *eventsv1.ChangeRejected:
		q.withdraw(f.Reason)
	case *eventsv1.ChangeEjected:
		q.withdraw(f.Reason)
	case *eventsv1.MainlineMoved:
		q.history.move(f.To, q.Lineup.Sequence)
		q.cameBack(f.To)
		q.foreign.Moved(f, q.Lineup.Sequence)
		q.allDirty = true
	case *eventsv1.ChangeLanded:
		q.landedOver(f)
	}
	if q.Lineup.Head != head {
		q.dirty[""] = true
		for id, a := range q.analyses {
			if a.overtaken { // red where it was looked at, and not known elsewhere
				q.dirty[id] = true
			}
		}
		q.forgetPast()
	}
}

// landedOver tells what came past the queue of a landing. Over what it lands nobody is blocked any more, and that may
// be more than the analysis said: then those who were are no neighbours of the change.
func (q *Queue) landedOver(f *eventsv1.ChangeLanded) {
	open := slices.ContainsFunc(f.Deleted, q.foreign.Open) ||
		slices.ContainsFunc(f.Proof, func(p *eventsv1.Proof) bool { return q.foreign.Open(p.GetVersion().GetTarget()) })
	q.foreign.Landed(f, q.Lineup.Sequence)
	q.allDirty = q.allDirty || open
}

func (q *Queue) withdraw(r *eventsv1.Reason) {
	for _, p := range r.GetFailed() {
		v := evidence.Version{Target: p.GetVersion().GetTarget(), Hash: p.GetVersion().GetHash()}
		q.ledger.Withdraw(v, p.GetAttempt())
		q.dirtyHolders(v)
	}
}

// left takes a revision out of the graph; if it landed, "holds it" becomes part of the mainline.
func (q *Queue) left(eff lineup.Effect) {
	id, ref := eff.Left.ID(), keyOf(eff.Left.Ref())
	how := eventsv1.GoneHow_GONE_HOW_CANCELLED
	switch {
	case eff.Revised:
		how = eventsv1.GoneHow_GONE_HOW_REVISED
	case eff.As == lineup.Landed:
		how = eventsv1.GoneHow_GONE_HOW_LANDED
	case eff.As == lineup.Rejected:
		how = eventsv1.GoneHow_GONE_HOW_REJECTED
	case eff.As == lineup.Ejected:
		how = eventsv1.GoneHow_GONE_HOW_EJECTED
	}
	q.out.gone = append(q.out.gone, &eventsv1.NodeGone{Change: eff.Left.Ref(), How: how})
	for other := range q.edges[id] {
		q.dirty[other] = true
	}
	// Requirements, and being analysed, reach beyond the conflict graph.
	q.dirtyRequirers(id)
	a := q.analyses[id]
	if a == nil {
		q.allDirty = true // those behind waited for its analysis
	} else {
		a.structural = map[string]bool{}
		for other, r := range q.edges[id] {
			if r.structural {
				for t := range q.analyses[other].targets {
					a.structural[t] = true
				}
			}
		}
		q.dirtyLabels(a)
		if how == eventsv1.GoneHow_GONE_HOW_LANDED {
			q.history.move(q.Lineup.Head, q.Lineup.Sequence)
			q.overtake(a)
			q.landedInto(a, a.wholeDigest(), q.Lineup.Sequence, ref)
		}
		q.forgetLabels(a, how == eventsv1.GoneHow_GONE_HOW_LANDED)
		q.depart(a)
	}
	if how == eventsv1.GoneHow_GONE_HOW_LANDED {
		if a == nil {
			q.history.move(q.Lineup.Head, q.Lineup.Sequence)
		}
		q.dropGuards()
	}
	var overtaken []string
	if how == eventsv1.GoneHow_GONE_HOW_LANDED {
		overtaken = q.landedInHubs(eff.Left, a)
	}
	q.dropAnalysis(id)
	delete(q.insisting, id)
	for _, other := range overtaken {
		q.setAnalysis(q.analyses[other])
	}
	delete(q.state, id)
	delete(q.guarded, id)
	delete(q.dirty, id)
	delete(q.published, id)
	q.builds.dropOf(ref)
	q.forgetUntouched(a)
}

// forgetLabels drops what was observed of the targets that a affects and can no longer come about.
func (q *Queue) forgetLabels(a *analysis, landed bool) {
	if a.all {
		for t := range q.observed {
			q.forgetUnreachable(t, a.ref, landed)
		}
		return
	}
	q.forgetUnreachable(WholeRepository, a.ref, landed)
	for t := range a.targets {
		q.forgetUnreachable(t, a.ref, landed)
	}
	for _, more := range []map[string]bool{a.deleted, a.structural} {
		for t := range more {
			q.forgetUnreachable(t, a.ref, landed)
		}
	}
}

// landedInto makes "holds a" part of the mainline, as of a move of it, for every target that a affects.
func (q *Queue) landedInto(a *analysis, whole sum, sequence uint64, ref refKey) {
	q.history.repository.add(sequence, whole)
	if a.all {
		q.history.everything.add(sequence, whole)
	} else {
		for t := range a.targets {
			q.history.landed(t, sequence, a.heldIn(t))
		}
		for t := range a.deleted {
			if len(a.targets[t]) == 0 {
				q.history.landed(t, sequence, whole)
			}
		}
		for t := range a.structural {
			if !a.touches(t) {
				q.history.landed(t, sequence, whole)
			}
		}
	}
	for other := range q.edges[ref.change] {
		if st := q.state[other]; st != nil {
			st.landedNeighbours = append(st.landedNeighbours, landedNeighbour{sequence, ref})
		}
	}
}

func (q *Queue) depart(a *analysis) {
	if _, had := q.departed[a.ref]; !had {
		q.leftFIFO = append(q.leftFIFO, a.ref)
	}
	q.departed[a.ref] = a
	if len(q.leftFIFO) > keptDeparted {
		delete(q.departed, q.leftFIFO[0])
		q.leftFIFO = slices.Delete(q.leftFIFO, 0, 1)
	}
}

// dropGuards forgets what the guard asked for on a mainline that is no more.
func (q *Queue) dropGuards() {
	for id := range q.guarded {
		if st := q.state[id]; st.guard.Base != q.Lineup.Head {
			st.guard = nil
			q.dirty[id] = true
			delete(q.guarded, id)
		}
	}
}

// forgetUntouched drops the labels of targets that no pending change affects any more. What is proven of
// their versions stays until the builder, which knows it too and would not run them again, has it forgotten.
func (q *Queue) forgetUntouched(a *analysis) {
	if a == nil {
		return
	}
	for t := range a.targets {
		if len(q.byTarget[t]) > 0 {
			continue
		}
		if q.foreign.Open(t) {
			continue
		}
		for _, o := range q.observed[t] {
			v := evidence.Version{Target: t, Hash: o.hash}
			delete(q.labels, o.label)
			delete(q.byVersion, v)
			q.ledger.ForgetTrivial(v)
		}
		delete(q.observed, t)
		q.history.forget(t)
	}
}

func (q *Queue) analyzed(f *eventsv1.ChangeAnalyzed) {
	c := q.Lineup.PendingAt(f.Change)
	if c == nil {
		return
	}
	// The first record of (change, revision, base) stands, and an older base does not replace a newer.
	if old := q.analyses[c.ID()]; old != nil {
		at, known := q.history.sequences[f.Base]
		if old.base == f.Base || (known && at < q.history.sequences[old.base]) {
			return
		}
	} else {
		q.awaited(c)
	}
	a := newAnalysis(f, len(c.Admission.LandingCommits))
	q.setAnalysis(a)
	q.dirty[c.ID()] = true
	sequence, ok := q.history.sequences[f.Base]
	a.overtaken = !a.known() && q.overtakenSince(a, sequence)
	if !ok || !a.known() {
		return
	}
	// The analysis itself names the versions of (c, {}).
	for _, v := range f.GetAffected().GetTargets() {
		if a.all || v.Part == 0 || int(v.Part) >= len(a.digests) {
			continue
		}
		q.observe(&observation{
			label: label{v.Target, q.history.at(v.Target, sequence).plus(a.digests[v.Part])},
			hash:  v.Hash, sequence: sequence, held: []refKey{a.ref}, summed: []refKey{a.ref},
		}, v.Trivial)
	}
}

// awaited marks who may have waited for a change's first analysis: those behind it, and those that require
// it. Whom it meets is marked when their edge is made.
func (q *Queue) awaited(c *lineup.Change) {
	q.dirty[""] = true
	for _, o := range q.Lineup.Order() {
		if o.Position > c.Position || slices.Contains(o.Admission.Requires, c.ID()) {
			q.dirty[o.ID()] = true
		}
	}
}

// mainlineAnalyzed makes a direct push part of the mainline, like a change that was not asked for. Pushes
// are analysed in any order.
func (q *Queue) mainlineAnalyzed(f *eventsv1.MainlineAnalyzed) {
	sequence, awaited := q.foreign.Analyzed(f)
	if !awaited {
		return
	}
	q.allDirty = true
	pushed := newAnalysis(&eventsv1.ChangeAnalyzed{
		Change:   &eventsv1.ChangeRef{Change: "\x00" + f.To},
		Outcome:  eventsv1.AnalysisOutcome_ANALYSIS_OUTCOME_ANALYZED,
		Affected: f.Affected,
	}, 1)
	pushed.digests = []sum{digest("mainline", f.To, 0, 0), digest("mainline", f.To, 0, 0)}
	if sequence+keptMoves < q.history.sequence {
		// It scrolled out of what is kept: every label moves, nothing is confused.
		pushed.all, sequence = true, q.history.sequence
	}
	pushed.structural = map[string]bool{}
	for id, a := range q.analyses {
		r := relate(pushed, a, nil) // a push that alters a hub makes what was built of it another mainline's
		if r == nil {
			continue
		}
		if r.structural {
			for t := range a.targets {
				pushed.structural[t] = true
			}
		}
		st := q.state[id]
		st.epoch++
		st.landedNeighbours = append(st.landedNeighbours, landedNeighbour{sequence: sequence})
	}
	q.pushedOver(sequence)
	q.landedInto(pushed, pushed.wholeDigest(), sequence, refKey{})
	for _, v := range f.GetAffected().GetTargets() {
		if v.Trivial && !v.Absent {
			q.markUnobserved(evidence.Version{Target: v.Target, Hash: v.Hash})
		}
	}
	q.dropGuards()
}

// IsModel says that a fact is about which models predict: it comes from landfall.models, and from nowhere else.
func IsModel(fact *eventsv1.Fact) bool {
	return fact.GetModelPromoted() != nil || fact.GetModelRolledBack() != nil
}

// Message is the fact's own message, nil for an empty fact.
func Message(fact *eventsv1.Fact) proto.Message {
	r := fact.ProtoReflect()
	d := r.WhichOneof(r.Descriptor().Oneofs().ByName("fact"))
	if d == nil {
		return nil
	}
	return r.Get(d).Message().Interface()
}

// FactOf wraps a message of landfall.changes, landfall.builds or landfall.models; ok is false for one that is no fact of a queue.
func FactOf(m proto.Message) (fact *eventsv1.Fact, ok bool) {
	fact = &eventsv1.Fact{}
	r := fact.ProtoReflect()
	fields := r.Descriptor().Fields()
	for i := range fields.Len() {
		if d := fields.Get(i); d.Message().FullName() == m.ProtoReflect().Descriptor().FullName() {
			r.Set(d, protoreflectValue(m))
			return fact, true
		}
	}
	return nil, false
}
