package lander

import eventsv1 "landfall.build/events/v1"

// unprepared holds, for each revision that is not decided, the builds whose tree a worker could not make, and the decisions
// for which the lander could not make one. A proposal to eject for them takes effect only if the lander counts enough of them.
type unprepared map[revision]map[string]bool

type revision struct {
	change string
	number uint64
}

// add counts a build once. known is the newest revision of the change that the lander has read of, and pending reports
// whether the build's revision is pending. A revision that has left the queue is not counted; one that is to come is.
func (u unprepared) add(f *eventsv1.BuildPrepared, known uint64, pending bool) {
	r := revision{f.Change.GetChange(), f.Change.GetRevision()}
	if f.Outcome != eventsv1.PreparationOutcome_PREPARATION_OUTCOME_INFRASTRUCTURE || r.number < known || (r.number == known && !pending) {
		return
	}
	u.put(r, f.Build)
}

// refused counts a refusal of a pending change whose commits are gone: it names no tree, no versions and no obstacle.
func (u unprepared) refused(f *eventsv1.Refused) {
	if f.Tree == "" && len(f.Versions) == 0 && f.Class == 0 {
		u.put(revision{f.Change.GetChange(), f.Change.GetRevision()}, f.Decision)
	}
}

func (u unprepared) put(r revision, id string) {
	if u[r] == nil {
		u[r] = map[string]bool{}
	}
	u[r][id] = true
}

// count returns how many there were of a revision.
func (u unprepared) count(c *eventsv1.ChangeRef) int {
	return len(u[revision{c.GetChange(), c.GetRevision()}])
}

// forget drops a revision that is decided.
func (u unprepared) forget(c *eventsv1.ChangeRef) {
	delete(u, revision{c.GetChange(), c.GetRevision()})
}
