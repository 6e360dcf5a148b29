package speculation

import (
	"slices"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"landfall.build/engine/evidence"
	"landfall.build/engine/lineup"
	eventsv1 "landfall.build/events/v1"
)

// Apply folds one fact. offset is the fact's place among the facts of the queue; it only has to rise.
func (q *Queue) Apply(fact *eventsv1.Fact, offset int64) {
	switch f := fact.GetFact().(type) {
	case *eventsv1.Fact_Settings:
		q.settings = f.Settings
		q.delta.allDirty = true
		q.setHubs(f.Settings.GetHubs())
		q.settleSurvey()
	case *eventsv1.Fact_Tick:
		q.delta.tick = true
		q.dropGuards(func(st *changeState) bool { return lacksTree(st.guard) && q.worthMaking(st) })
		if !q.checkWorthTrying() {
			q.proving.failed.times, q.delta.allDirty = maxFailedChecks-1, true
		}
	case *eventsv1.Fact_ModelPromoted, *eventsv1.Fact_ModelRolledBack:
		q.delta.tick = true // nothing here changes, but the stages behind predict again
	case *eventsv1.Fact_ChangeAnalyzed:
		q.analyzed(f.ChangeAnalyzed)
	case *eventsv1.Fact_MainlineAnalyzed:
		q.mainlineAnalyzed(f.MainlineAnalyzed)
	case *eventsv1.Fact_MainlineSurveyed:
		q.surveyed(f.MainlineSurveyed)
	case *eventsv1.Fact_BuildPrepared:
		q.prepared(f.BuildPrepared)
	case *eventsv1.Fact_StepFinished:
		q.finished(f.StepFinished)
	case *eventsv1.Fact_EvidenceForgotten:
		q.forget(f.EvidenceForgotten)
	case *eventsv1.Fact_TargetQuarantined:
		q.quarantine(f.TargetQuarantined)
	case *eventsv1.Fact_QuarantineEnded:
		q.quarantine(f.QuarantineEnded)
	case nil:
	default:
		if m := Message(fact); m != nil {
			q.lineupFact(m, offset)
		}
	}
}

// lineupFact folds a fact of landfall.changes: first the lineup, then what follows from the consequence.
func (q *Queue) lineupFact(m proto.Message, offset int64) {
	head := q.Lineup.Head
	consequence := q.Lineup.Apply(m, offset)
	if !consequence.Applied {
		return
	}
	if consequence.Left != nil {
		q.remove(consequence)
	}
	if consequence.Entered != nil {
		q.changes[consequence.Entered.ID()] = &changeState{}
		q.delta.dirty[consequence.Entered.ID()] = true
		q.dirtyRequirers(consequence.Entered.ID()) // they missed it if an older revision had left
	}
	if consequence.Reordered {
		q.delta.allDirty = true
		q.relinkLeading()
	}
	switch f := m.(type) {
	case *eventsv1.ChangeHeld:
		q.delta.dirty[f.Change] = true
	case *eventsv1.ChangeReleased:
		q.delta.dirty[f.Change] = true
	case *eventsv1.LandIntended:
		q.delta.dirty[f.Change.Change] = true
	case *eventsv1.LandVoid:
		q.delta.dirty[f.Change.Change] = true
		q.delta.answered = append(q.delta.answered, &eventsv1.Answered{Change: f.Change, Decision: f.Decision})
	case *eventsv1.Refused:
		q.refused(f)
	case *eventsv1.ChangeRejected, *eventsv1.ChangeEjected:
		q.withdraw(m)
	case *eventsv1.ChangeRetried:
		q.withdraw(m)
		if id := f.Change.GetChange(); id != "" {
			q.delta.dirty[id] = true
		}
	case *eventsv1.MainlineMoved:
		q.landed.move(f.To, q.Lineup.Sequence)
		q.refreshOn(f.To)
		q.pushes.Moved(f, q.Lineup.Sequence)
		q.delta.allDirty = true
	case *eventsv1.ChangeLanded:
		q.landOverPushes(f)
	}
	if q.Lineup.Head != head {
		q.delta.check = true
		for id, a := range q.analyses.pending {
			if a.outdated { // red on its base, unknown on any other head
				q.delta.dirty[id] = true
			}
		}
		q.sweepLanded()
	}
}

// refused folds what the land guard asks for.
func (q *Queue) refused(f *eventsv1.Refused) {
	id := f.Change.Change
	st := q.changes[id]
	st.guard = f
	q.guarded[id] = true
	q.delta.dirty[id] = true
	q.delta.answered = append(q.delta.answered, &eventsv1.Answered{Change: f.Change, Decision: f.Decision})
	q.withdraw(f)
	if len(f.BaseUnproven) > 0 && f.Base == q.Lineup.Head {
		q.pushes.Doubted(f.BaseUnproven)
		q.proving.survey.Drop(namesOf(f.BaseUnproven)...)
		q.delta.allDirty, q.delta.check = true, true
	}
	for _, v := range f.Versions {
		if v.Trivial {
			q.markTrivialUnlabelled(evidence.Version{Target: v.Target, Hash: v.Hash})
		}
	}
	if st.unmade++; !lacksTree(f) {
		st.unmade = 0
	}
}

// lacksTree reports whether the lander could not make the tree that it refuses: nobody gives out the change's commits.
func lacksTree(f *eventsv1.Refused) bool {
	return f.Tree == "" && f.Class == 0 && len(f.Versions) == 0
}

// worthMaking reports whether the lander shall try again to make a tree that it could not make. It gets as many tries as a
// build whose tree cannot be made.
func (q *Queue) worthMaking(st *changeState) bool {
	return st.unmade <= q.settings.GetSteps().GetInfrastructureRetries()
}

// landOverPushes folds a landing into the direct pushes: the targets that it lands block nobody any more. They may be more than
// the analysis knew of, so those whom they blocked need not be neighbours of the change.
func (q *Queue) landOverPushes(f *eventsv1.ChangeLanded) {
	open := slices.ContainsFunc(f.Deleted, q.pushes.Open) ||
		slices.ContainsFunc(f.Proof, func(p *eventsv1.Proof) bool { return q.pushes.Open(p.GetVersion().GetTarget()) })
	q.pushes.Landed(f, q.Lineup.Sequence)
	q.surveyLandedOver(f)
	q.delta.allDirty = q.delta.allDirty || open
}

// withdraw folds which attempts a record takes back.
func (q *Queue) withdraw(m proto.Message) {
	for _, v := range q.known.ledger.TakeBack(m) {
		q.dirtyHolders(v)
		if q.pushes.Has(v) { // it is proven on the mainline again
			q.delta.allDirty = true
		}
	}
}

// quarantine folds a TargetQuarantined or QuarantineEnded. What is red, or was tolerated, differs then for all whose trees have
// the target, and for the mainline.
func (q *Queue) quarantine(m proto.Message) {
	versions := q.known.ledger.Quarantine(m)
	if len(versions) == 0 {
		return
	}
	q.delta.allDirty, q.delta.check = true, true
	q.settleSurvey()
	for _, v := range versions {
		for _, id := range q.builds.waitingFor(v) {
			if b := q.builds.byID[id]; q.isOver(b) {
				q.reportProgress(id, b)
			}
		}
	}
}

// remove takes a revision that left out of the graph; if it landed, it becomes part of the mainline's labels.
func (q *Queue) remove(consequence lineup.Consequence) {
	id, landed := consequence.Left.ID(), consequence.As == lineup.Landed
	q.delta.gone = append(q.delta.gone, &eventsv1.NodeGone{Change: consequence.Left.Ref(), How: goneHow(consequence)})
	for other := range q.conflicts.edges[id] {
		q.delta.dirty[other] = true
	}
	// Requirements, and being analysed, reach beyond the conflict graph.
	q.dirtyRequirers(id)
	if landed {
		q.landed.move(q.Lineup.Head, q.Lineup.Sequence)
	}
	a := q.analyses.pending[id]
	if a == nil {
		q.delta.allDirty = true // those behind waited for its analysis
		// The analysis was forgotten while the change landed, so it may have altered any target.
		if landed {
			q.landed.addUnknown(q.Lineup.Sequence, digest("change", id, consequence.Left.Revision(), 0))
		}
	} else {
		a.structural = q.affectedThroughEdges(id)
		q.dirtyLabels(a)
		if landed {
			q.outdateBy(a)
			q.land(a, q.Lineup.Sequence)
			for other := range q.conflicts.edges[id] {
				q.changes[other].addLanding(landing{q.Lineup.Sequence, a.revision})
			}
		}
		q.forgetLabels(a, landed)
		q.keepDeparted(a)
	}
	var insisting []string
	if landed {
		q.dropGuards(q.guardedOnOldHead)
		insisting = q.landInHubs(consequence.Left, a)
	}
	q.dropAnalysis(id)
	delete(q.conflicts.insisting, id)
	for _, other := range insisting {
		q.setAnalysis(q.analyses.pending[other])
	}
	delete(q.changes, id)
	delete(q.guarded, id)
	delete(q.delta.dirty, id)
	delete(q.delta.known, id)
	delete(q.published.nodes, id)
	q.builds.dropOf(revisionOf(consequence.Left.Ref()))
	q.forgetUntouched(a)
}

func goneHow(consequence lineup.Consequence) eventsv1.GoneHow {
	switch {
	case consequence.Revised:
		return eventsv1.GoneHow_GONE_HOW_REVISED
	case consequence.As == lineup.Landed:
		return eventsv1.GoneHow_GONE_HOW_LANDED
	case consequence.As == lineup.Rejected:
		return eventsv1.GoneHow_GONE_HOW_REJECTED
	case consequence.As == lineup.Ejected:
		return eventsv1.GoneHow_GONE_HOW_EJECTED
	}
	return eventsv1.GoneHow_GONE_HOW_CANCELLED
}

// affectedThroughEdges returns the targets of the changes that are in structural conflict with a pending one.
func (q *Queue) affectedThroughEdges(id string) map[string]bool {
	affected := map[string]bool{}
	for other := range q.conflicts.structural[id] {
		for t := range q.analyses.pending[other].targets {
			affected[t] = true
		}
	}
	return affected
}

// forgetLabels drops the observations of the targets that a affects that no path can have any more.
func (q *Queue) forgetLabels(a *analysis, landed bool) {
	if a.all {
		for t := range q.known.observed {
			q.forgetUnreachable(t, a.revision, landed)
		}
		return
	}
	q.forgetUnreachable(WholeRepository, a.revision, landed)
	for t := range a.targets {
		q.forgetUnreachable(t, a.revision, landed)
	}
	for _, more := range []map[string]bool{a.deleted, a.structural} {
		for t := range more {
			q.forgetUnreachable(t, a.revision, landed)
		}
	}
}

// land adds a to the mainline's label of every target that it affects, as of a move of the mainline.
func (q *Queue) land(a *analysis, sequence uint64) {
	whole := a.wholeDigest()
	q.landed.repository.add(sequence, whole)
	if a.all {
		q.landed.everything.add(sequence, whole)
	} else {
		for t := range a.targets {
			q.landed.add(t, sequence, a.heldIn(t))
		}
		for t := range a.deleted {
			if len(a.targets[t]) == 0 {
				q.landed.add(t, sequence, whole)
			}
		}
		for t := range a.structural {
			if !a.touches(t) {
				q.landed.add(t, sequence, whole)
			}
		}
	}
}

func (q *Queue) keepDeparted(a *analysis) {
	d := &q.analyses
	if old, had := d.departed[a.revision]; had {
		d.names -= old.names()
	} else {
		d.departedOrder = append(d.departedOrder, a.revision)
	}
	d.departed[a.revision] = a
	d.names += a.names()
	for len(d.departedOrder) > keptDeparted || d.names > keptNames && len(d.departedOrder) > 1 {
		first := d.departedOrder[0]
		d.names -= d.departed[first].names()
		delete(d.departed, first)
		d.departedOrder = slices.Delete(d.departedOrder, 0, 1)
	}
}

// guardedOnOldHead reports whether the land guard refused a tree on a head that is no longer the mainline's.
func (q *Queue) guardedOnOldHead(st *changeState) bool { return st.guard.Base != q.Lineup.Head }

// dropGuards forgets what the land guard asked for of the changes for which over holds.
func (q *Queue) dropGuards(over func(*changeState) bool) {
	for id := range q.guarded {
		if st := q.changes[id]; over(st) {
			st.guard = nil
			q.delta.dirty[id] = true
			delete(q.guarded, id)
		}
	}
}

// forgetUntouched drops the labels of those of a's targets that no pending change touches any more. What is proven of their
// versions stays until the builder, which would not run them again, forgets it too.
func (q *Queue) forgetUntouched(a *analysis) {
	if a == nil {
		return
	}
	for t := range a.targets {
		if len(q.conflicts.byTarget[t]) > 0 {
			continue
		}
		if q.pushes.Open(t) {
			continue
		}
		for _, o := range q.known.observed[t] {
			v := evidence.Version{Target: t, Hash: o.hash}
			delete(q.known.labels, o.label)
			delete(q.known.byVersion, v)
			q.known.ledger.ForgetTrivial(v)
		}
		delete(q.known.observed, t)
		q.landed.forget(t)
	}
}

func (q *Queue) analyzed(f *eventsv1.ChangeAnalyzed) {
	c := q.Lineup.PendingAt(f.Change)
	if c == nil {
		return
	}
	// The first record of (change, revision, base) stands, and an older base does not replace a newer.
	if old := q.analyses.pending[c.ID()]; old != nil {
		at, known := q.landed.sequences[f.Base]
		if old.base == f.Base || (known && at < q.landed.sequences[old.base]) {
			return
		}
	} else {
		q.dirtyAwaiting(c)
	}
	a := newAnalysis(revisionOf(f.Change), f, len(c.Admission.LandingCommits))
	q.setAnalysis(a)
	q.delta.dirty[c.ID()] = true
	sequence, ok := q.landed.sequences[f.Base]
	a.outdated = !a.known() && q.mayBeMendedSince(a, sequence)
	if !ok || !a.known() {
		return
	}
	// The analysis names the versions of (c, {}).
	alone := []revision{a.revision}
	for _, v := range f.GetAffected().GetTargets() {
		if a.all || v.Part == 0 || int(v.Part) >= len(a.digests) {
			continue
		}
		q.observe(&observation{
			label: label{v.Target, q.landed.at(v.Target, sequence).plus(a.digests[v.Part])},
			hash:  v.Hash, sequence: sequence, held: alone, summed: alone,
		}, v.Trivial)
	}
}

// dirtyAwaiting marks the changes that may have waited for another one's first analysis: those behind it, and those that
// require it. Those that conflict with it are marked when their edge is made.
func (q *Queue) dirtyAwaiting(c *lineup.Change) {
	q.delta.check = true
	for _, o := range q.Lineup.Order() {
		if o.Position > c.Position || slices.Contains(o.Admission.Requires, c.ID()) {
			q.delta.dirty[o.ID()] = true
		}
	}
}

// mainlineAnalyzed makes a direct push part of the mainline, like a change that was not asked for. Pushes
// are analysed in any order.
func (q *Queue) mainlineAnalyzed(f *eventsv1.MainlineAnalyzed) {
	sequence, awaited := q.pushes.Analyzed(f)
	if !awaited {
		return
	}
	q.delta.allDirty = true
	q.surveyPushedOver(f.GetAffected())
	pushed := newPush(f)
	if sequence+keptMoves < q.landed.sequence {
		// The move is older than those that are kept. It counts as of the present one, in every target: so no two
		// versions get one label.
		pushed.all, sequence = true, q.landed.sequence
	}
	for id, a := range q.analyses.pending {
		r := relate(pushed, a, nil) // in hubs too: builds of what was there before the push are of another mainline
		if r == nil {
			continue
		}
		if r.structural {
			for t := range a.targets {
				pushed.structural[t] = true
			}
		}
		st := q.changes[id]
		st.epoch++
		st.addLanding(landing{sequence, pushed.revision})
	}
	q.outdateByPush(sequence)
	q.land(pushed, sequence)
	for _, v := range f.GetAffected().GetTargets() {
		if v.Trivial && !v.Absent {
			q.markTrivialUnlabelled(evidence.Version{Target: v.Target, Hash: v.Hash})
		}
	}
	q.dropGuards(q.guardedOnOldHead)
}

// IsModel reports whether a fact is about which models predict. Such facts come from landfall.models only.
func IsModel(fact *eventsv1.Fact) bool {
	return fact.GetModelPromoted() != nil || fact.GetModelRolledBack() != nil
}

// Message returns the fact's own message, nil for an empty fact.
func Message(fact *eventsv1.Fact) proto.Message {
	r := fact.ProtoReflect()
	d := r.WhichOneof(r.Descriptor().Oneofs().ByName("fact"))
	if d == nil {
		return nil
	}
	return r.Get(d).Message().Interface()
}

// FactOf wraps a message of landfall.changes, landfall.builds or landfall.models. ok is false for one that is no fact of a
// queue.
func FactOf(m proto.Message) (fact *eventsv1.Fact, ok bool) {
	fact = &eventsv1.Fact{}
	r := fact.ProtoReflect()
	fields := r.Descriptor().Fields()
	for i := range fields.Len() {
		if d := fields.Get(i); d.Message().FullName() == m.ProtoReflect().Descriptor().FullName() {
			r.Set(d, protoreflect.ValueOfMessage(m.ProtoReflect()))
			return fact, true
		}
	}
	return nil, false
}
