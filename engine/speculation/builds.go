package speculation

import (
	"maps"
	"slices"

	"landfall.build/engine/evidence"
	eventsv1 "landfall.build/events/v1"
)

// builds holds the builds that are prepared and have an outcome to wait for.
type builds struct {
	byID map[string]*build
	// of holds the ids by revision, waiting by the versions that a build waits for.
	of      map[revision]map[string]bool
	waiting map[evidence.Version]map[string]bool
	// checks are those of the mainline itself, oldest first. The log does not tell when one is aborted, and no departure
	// ends it, so their number is bounded.
	checks []string
}

// build is a prepared build of a pending change, or of the mainline.
type build struct {
	of       revision
	assumed  []*eventsv1.ChangeRef
	versions []evidence.Version
	// No version before open was outstanding as of seen. Both only save time, and are not in snapshots.
	open int    `snapshot:"-"`
	seen states `snapshot:"-"`
}

// states identifies the states of all versions, apart from what attempts have changed since.
type states struct {
	looked     bool
	generation uint64
	policy     *eventsv1.StepPolicy
}

// keptChecks bounds the builds of the mainline itself: the selector runs one at a time.
const keptChecks = 16

func newBuilds() builds {
	return builds{byID: map[string]*build{}, of: map[revision]map[string]bool{}, waiting: map[evidence.Version]map[string]bool{}}
}

// restore adds a build without counting it among the checks.
func (s *builds) restore(id string, b *build) {
	s.byID[id] = b
	insert(s.of, b.of, id)
	for _, v := range b.versions {
		insert(s.waiting, v, id)
	}
}

func (s *builds) add(id string, b *build) {
	s.restore(id, b)
	if b.of.kind != ofMainline {
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
	remove(s.of, b.of, id)
	for _, v := range b.versions {
		remove(s.waiting, v, id)
	}
}

// dropOf drops the builds of a revision that has left.
func (s *builds) dropOf(r revision) {
	for id := range s.of[r] {
		s.drop(id)
	}
}

// waitingFor returns the ids of the builds that wait for a version, sorted.
func (s *builds) waitingFor(v evidence.Version) []string {
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

// isOver reports whether no version of a build is outstanding, or a red one makes the rest pointless.
func (q *Queue) isOver(b *build) bool {
	over := true
	for _, v := range b.versions {
		switch q.known.ledger.State(v, q.settings.GetSteps()) {
		case evidence.Red:
			return true
		case evidence.Unknown:
			over = false
		}
	}
	return over
}

// isOverAfter returns isOver(b) after an attempt at v. If nothing but attempts has happened since b was looked at, it looks only at v and at
// the versions that were outstanding: an attempt changes the state of its own version alone, and never back to outstanding.
func (q *Queue) isOverAfter(b *build, v evidence.Version) bool {
	policy := q.settings.GetSteps()
	if now := (states{true, q.known.ledger.Generation(), policy}); b.seen != now {
		b.open, b.seen = 0, now
		return q.isOver(b)
	}
	if q.known.ledger.State(v, policy) == evidence.Red {
		return true
	}
	for b.open < len(b.versions) && q.known.ledger.State(b.versions[b.open], policy) != evidence.Unknown {
		b.open++
	}
	return b.open == len(b.versions)
}

// reportProgress tells the selector that a build is prepared, or over. It drops one that is over, and so reports that once.
func (q *Queue) reportProgress(id string, b *build) {
	p := &eventsv1.BuildProgress{
		Build: id, State: eventsv1.BuildState_BUILD_STATE_PREPARED, Assumed: b.assumed,
		Change: b.of.ref(),
	}
	if q.isOver(b) {
		p.State, p.Assumed = eventsv1.BuildState_BUILD_STATE_FINISHED, nil
		q.builds.drop(id)
		if b.of.kind == ofMainline {
			q.proving.survey.End()
		}
	}
	q.delta.builds = append(q.delta.builds, p)
}
