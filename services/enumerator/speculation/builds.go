package speculation

import (
	"slices"
	"sort"

	eventsv1 "landfall.build/events/v1"
	"landfall.build/services/evidence"
)

// buildsWith lists the prepared, unfinished builds that wait for a version, by id.
func (q *Queue) buildsWith(v evidence.Version) []string {
	var ids []string
	for id, b := range q.builds {
		if slices.Contains(b.versions, v) {
			ids = append(ids, id)
		}
	}
	sort.Strings(ids)
	return ids
}

// over says that nothing of a build is outstanding, or that one red version makes the rest pointless.
func (q *Queue) over(b *build) bool {
	over := true
	for _, v := range b.versions {
		switch q.ledger.State(v, q.settings.GetSteps()) {
		case evidence.Red:
			return true
		case evidence.Unknown:
			over = false
		}
	}
	return over
}

// progress tells the selector that a build is prepared, or over; the latter it is told once.
func (q *Queue) progress(id string, b *build) {
	p := &eventsv1.BuildProgress{
		Build: id, State: eventsv1.BuildState_BUILD_STATE_PREPARED, Assumed: b.assumed,
		Change: &eventsv1.ChangeRef{Change: b.change.change, Revision: b.change.revision},
	}
	if q.over(b) {
		p.State, p.Assumed = eventsv1.BuildState_BUILD_STATE_FINISHED, nil
		delete(q.builds, id)
	}
	q.out.builds = append(q.out.builds, p)
}
