package speculation

import (
	"maps"
	"slices"

	eventsv1 "landfall.build/events/v1"
	"landfall.build/services/evidence"
)

// builds are those that are prepared and not over, by what may end them.
type builds struct {
	byID map[string]*build
	// of has the ids of those of each change, waiting those of the builds that have a version.
	of      map[refKey]map[string]bool
	waiting map[evidence.Version]map[string]bool
	// checks are those of the mainline itself, oldest first. Nobody tells of one that was aborted, and no departure
	// takes it out.
	checks []string
}

// keptChecks bounds the builds of the mainline itself: the selector runs one, and a few that it has given up.
const keptChecks = 16

func newBuilds() builds {
	return builds{byID: map[string]*build{}, of: map[refKey]map[string]bool{}, waiting: map[evidence.Version]map[string]bool{}}
}

// put adds a build whose versions are all known.
func (s *builds) put(id string, b *build) {
	s.byID[id] = b
	insert(s.of, b.change, id)
	for _, v := range b.versions {
		insert(s.waiting, v, id)
	}
	if b.change.change != "" {
		return
	}
	if s.checks = append(s.checks, id); len(s.checks) > keptChecks {
		s.drop(s.checks[0])
	}
}

func (s *builds) drop(id string) {
	b := s.byID[id]
	if b == nil {
		return
	}
	delete(s.byID, id)
	if i := slices.Index(s.checks, id); i >= 0 {
		s.checks = slices.Delete(s.checks, i, i+1)
	}
	remove(s.of, b.change, id)
	for _, v := range b.versions {
		remove(s.waiting, v, id)
	}
}

// dropOf drops the builds of a change that has left.
func (s *builds) dropOf(change refKey) {
	for id := range s.of[change] {
		s.drop(id)
	}
}

// with lists the builds that have a version, by id.
func (s *builds) with(v evidence.Version) []string {
	return slices.Sorted(maps.Keys(s.waiting[v]))
}

func insert[K comparable](m map[K]map[string]bool, k K, id string) {
	if m[k] == nil {
		m[k] = map[string]bool{}
	}
	m[k][id] = true
}

func remove[K comparable](m map[K]map[string]bool, k K, id string) {
	if delete(m[k], id); len(m[k]) == 0 {
		delete(m, k)
	}
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
		q.builds.drop(id)
	}
	q.out.builds = append(q.out.builds, p)
}
