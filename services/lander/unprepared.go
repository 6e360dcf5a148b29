package lander

import eventsv1 "landfall.build/events/v1"

// unprepared holds, for each revision that is not decided, the builds whose tree the machines could not make, and the decisions
// for which the lander could not: it believes nobody who says that there were enough of them.
type unprepared map[revision]map[string]bool

type revision struct {
	change string
	number uint64
}

// add counts a build once. known is the newest revision of the change that the lander has heard of, and pending says
// that it still is: what is over is not counted, what is to come is.
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

// of is how many there were.
func (u unprepared) of(c *eventsv1.ChangeRef) int {
	return len(u[revision{c.GetChange(), c.GetRevision()}])
}

// forget drops a revision that is decided.
func (u unprepared) forget(c *eventsv1.ChangeRef) {
	delete(u, revision{c.GetChange(), c.GetRevision()})
}
