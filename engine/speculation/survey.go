package speculation

import (
	"maps"
	"slices"

	"landfall.build/engine/evidence"
	eventsv1 "landfall.build/events/v1"
)

// surveyed folds what the mainline had before the queue (M23b), or has since trees are read in another way. A survey of another
// head than the present one does not count, nor does one with another reading while a landing is intended: that is proven by the
// reading before. The analyzer makes another.
func (q *Queue) surveyed(f *eventsv1.MainlineSurveyed) {
	if f.Commit != q.Lineup.Head || f.Again && q.Lineup.Intention != nil {
		return
	}
	otherwise := q.pushes.Surveyed(f)
	if otherwise {
		q.delta.allDirty, q.delta.check = true, true
	}
	switch {
	case !q.proving.survey.Known():
	case otherwise:
		q.forgetTrees()
	default:
		return
	}
	q.proving.survey.Renew(f, func(v evidence.Version) bool {
		return !q.pushes.Open(v.Target) && !q.settings.GetProveWhenNeeded() && q.stateOf(v) != evidence.Green
	})
	q.settleSurvey()
}

// forgetTrees forgets what was found in trees, as these are read in another way now and targets have other versions. Pending changes
// are analysed again, and other builds take over. Results of steps stay: they are about versions.
func (q *Queue) forgetTrees() {
	for v := range q.known.byVersion {
		q.known.ledger.ForgetTrivial(v)
	}
	clear(q.known.labels)
	clear(q.known.observed)
	clear(q.known.byVersion)
	for _, id := range slices.Sorted(maps.Keys(q.changes)) {
		q.dropAnalysis(id)
		st := q.changes[id]
		st.guard, st.unmade, st.failedTrees = nil, 0, nil
	}
	clear(q.guarded)
	q.proving.failed = failedChecks{}
	for _, id := range slices.Sorted(maps.Keys(q.builds.byID)) {
		q.delta.builds = append(q.delta.builds, &eventsv1.BuildProgress{
			Build: id, State: eventsv1.BuildState_BUILD_STATE_OUTDATED, Change: q.builds.byID[id].of.ref(),
		})
		q.builds.drop(id)
	}
}

// toProve returns what there is to tell of the survey, nil if there never was anything.
func (q *Queue) toProve() *eventsv1.Survey {
	if q.proving.survey.Left() == 0 && q.published.survey == nil {
		return nil
	}
	m := &eventsv1.Survey{Unproven: uint32(q.proving.survey.Left())}
	if !q.settings.GetProveWhenNeeded() && q.checkWorthTrying() {
		m.Targets = q.proving.survey.Round()
	}
	return m
}

// settleSurvey takes what is settled by now out of the survey.
func (q *Queue) settleSurvey() {
	for _, v := range q.proving.survey.Settled(q.stateOf) {
		q.settleSurveyed(v)
	}
}

// settleSurveyed takes a version out of the survey once it is settled. If it is red, the mainline has been red in it since before
// the queue; a change that fails there is blocked (M23a).
func (q *Queue) settleSurveyed(v evidence.Version) {
	if !q.proving.survey.Has(v) {
		return
	}
	switch q.stateOf(v) {
	case evidence.Unknown:
	case evidence.Green:
		q.proving.survey.Pass(v)
	case evidence.Red:
		q.proving.survey.Drop(v.Target)
		q.pushes.Doubted([]*eventsv1.TargetVersion{{Target: v.Target, Hash: v.Hash}})
		q.delta.allDirty, q.delta.check = true, true
	default:
		q.proving.survey.Drop(v.Target) // exhausted: the guard asks for it again if something needs it
	}
}

func (q *Queue) stateOf(v evidence.Version) evidence.State {
	return q.known.ledger.State(v, q.settings.GetSteps())
}

// surveyPrepared folds the versions that a build found on the mainline itself. They can differ from those of the survey where a
// landing altered more than its analysis says.
func (q *Queue) surveyPrepared(f *eventsv1.BuildPrepared) {
	if f.Base != q.Lineup.Head {
		return
	}
	for _, v := range f.Versions {
		if v.Trivial || v.Absent {
			q.proving.survey.Drop(v.Target)
			continue
		}
		at := evidence.Version{Target: v.Target, Hash: v.Hash}
		q.proving.survey.Observe(at)
		q.settleSurveyed(at)
	}
}

// surveyLandedOver folds a landing: its targets have proven versions now.
func (q *Queue) surveyLandedOver(f *eventsv1.ChangeLanded) {
	names := slices.Clone(f.Deleted)
	for _, p := range f.Proof {
		names = append(names, p.GetVersion().GetTarget())
	}
	q.proving.survey.Drop(names...)
}

// surveyPushedOver folds what a direct push affects: that is verified as a push (M23a).
func (q *Queue) surveyPushedOver(affected *eventsv1.Affected) {
	if affected.GetAll() {
		q.proving.survey.Clear()
		return
	}
	q.proving.survey.Drop(append(namesOf(affected.GetTargets()), affected.GetDeleted()...)...)
}

func namesOf(versions []*eventsv1.TargetVersion) []string {
	names := make([]string, 0, len(versions))
	for _, v := range versions {
		names = append(names, v.Target)
	}
	return names
}
