package work

import (
	"cmp"
	"slices"

	eventsv1 "landfall.build/events/v1"
	"landfall.build/services/evidence"
)

// build is one that was scheduled and is not over.
type build struct {
	scheduled *eventsv1.BuildScheduled
	origin    Origin
	sequence  uint64
	prepared  bool
	// versions are what its tree has to be verified for, in the order in which they are to be started;
	// open[i] says that versions[i] is not settled. Those before first are settled.
	versions []Step
	index    map[Version]int
	open     []bool
	left     int
	first    int
	// heir is set once it was aborted in favour of a build that is not prepared yet: until that one is,
	// its running steps go on, since the heir may share them.
	heir string
	// revived: it was over, and evidence for that was withdrawn. Nobody may abort it any more.
	revived bool
}

func (b *build) policy() *eventsv1.StepPolicy { return b.scheduled.GetSteps() }

// decide folds what the selector did at one position. Schedules come before aborts in a record, so that a
// build that goes on in another's place is known when that one is aborted.
func (q *Queue) decide(d *eventsv1.Decision, origin Origin) {
	for _, item := range d.GetItems() {
		switch x := item.GetItem().(type) {
		case *eventsv1.DecisionItem_BuildScheduled:
			q.schedule(x.BuildScheduled, origin)
		case *eventsv1.DecisionItem_BuildAborted:
			q.abort(x.BuildAborted)
		}
	}
	q.dropLapsed(d.GetStampUs())
}

func (q *Queue) schedule(s *eventsv1.BuildScheduled, origin Origin) {
	id := s.GetBuild()
	if id == "" || q.builds[id] != nil {
		return
	}
	q.sequence++
	b := &build{scheduled: s, origin: origin, sequence: q.sequence}
	q.builds[id] = b
	at, _ := slices.BinarySearchFunc(q.order, b, before)
	q.order = slices.Insert(q.order, at, b)
	if p := q.early[id]; p != nil {
		delete(q.early, id)
		q.prepared(p)
	}
}

// before orders builds: the most valuable first, then as they were scheduled.
func before(a, b *build) int {
	return cmp.Or(cmp.Compare(b.scheduled.GetValue(), a.scheduled.GetValue()), cmp.Compare(a.sequence, b.sequence))
}

// abort ends a build, or lets it linger for the one that goes on in its place.
func (q *Queue) abort(a *eventsv1.BuildAborted) {
	id := a.GetBuild()
	delete(q.early, id)
	b := q.builds[id]
	heir := a.GetSupersededBy()
	if h := q.builds[heir]; h == nil || h.prepared || h == b {
		heir = "" // nothing to wait for: what the heir shares is wanted by itself
	}
	// What lingered for this one lingers for its heir: the mainline may move faster than trees are made.
	for _, other := range q.lingeringFor(id) {
		if heir == "" {
			q.drop(other)
		} else {
			other.heir = heir
		}
	}
	if b == nil {
		q.forgetClosed(func(o *build) bool { return o.scheduled.GetBuild() == id })
		return
	}
	if heir == "" || !b.prepared {
		q.drop(b)
		return
	}
	b.heir = heir
}

func (q *Queue) lingeringFor(heir string) []*build {
	var list []*build
	for _, b := range q.order {
		if heir != "" && b.heir == heir {
			list = append(list, b)
		}
	}
	return list
}

// prepared folds what a build's tree turned out to be. The first record of a build stands.
func (q *Queue) prepared(p *eventsv1.BuildPrepared) {
	id := p.GetBuild()
	b := q.builds[id]
	if b == nil {
		if id != "" && q.early[id] == nil {
			q.early[id] = p
		}
		return
	}
	if b.prepared {
		return
	}
	b.prepared = true
	if p.GetOutcome() == eventsv1.PreparationOutcome_PREPARATION_OUTCOME_PREPARED {
		q.ask(b, p.GetVersions())
	}
	for _, other := range q.lingeringFor(id) {
		q.drop(other)
	}
	if q.over(b) {
		q.close(b)
	}
}

// ask notes what has to be verified for a build, longest first by what is predicted now (M27). What has no
// prediction comes before all: it may be the longest.
func (q *Queue) ask(b *build, versions []*eventsv1.TargetVersion) {
	b.index = map[Version]int{}
	for _, t := range versions {
		v := Version{Target: t.GetTarget(), Hash: t.GetHash()}
		if _, had := b.index[v]; had || t.GetTrivial() || t.GetAbsent() || v.Hash == "" {
			continue
		}
		b.index[v] = 0
		b.versions = append(b.versions, Step{Version: v, Part: t.GetPart(), Build: b.scheduled, Origin: b.origin})
	}
	slices.SortStableFunc(b.versions, func(x, y Step) int {
		return cmp.Or(
			cmp.Compare(q.predicted(y.Target), q.predicted(x.Target)),
			cmp.Compare(x.Target, y.Target), cmp.Compare(x.Hash, y.Hash))
	})
	for i, s := range b.versions {
		b.index[s.Version] = i
	}
	q.enlist(b)
}

// enlist counts what is outstanding for a build and has it hear of results.
func (q *Queue) enlist(b *build) {
	b.open, b.left, b.first = make([]bool, len(b.versions)), 0, 0
	for i, s := range b.versions {
		q.asking[s.Version] = append(q.asking[s.Version], b)
		b.open[i] = q.ledger.State(s.Version, b.policy()) == evidence.Unknown
		if b.open[i] {
			b.left++
		}
	}
}

// over says that nothing of a build is outstanding, or that something is red and the rest would prove
// nothing.
func (q *Queue) over(b *build) bool {
	unknown := false
	for _, s := range b.versions {
		switch q.ledger.State(s.Version, b.policy()) {
		case evidence.Red:
			return true
		case evidence.Unknown:
			unknown = true
		}
	}
	return !unknown
}

// restate takes over the new state of one version.
func (q *Queue) restate(b *build, v Version) {
	i := b.index[v]
	state := q.ledger.State(v, b.policy())
	switch open := state == evidence.Unknown; {
	case open && !b.open[i]:
		b.open[i], b.first = true, 0
		b.left++
	case !open && b.open[i]:
		b.open[i] = false
		b.left--
	}
	if state == evidence.Red || b.left == 0 {
		q.close(b)
	}
}

// drop forgets a build, and what only it asked for.
func (q *Queue) drop(b *build) {
	delete(q.builds, b.scheduled.GetBuild())
	if at, found := slices.BinarySearchFunc(q.order, b, before); found {
		q.order = slices.Delete(q.order, at, at+1)
	}
	for _, s := range b.versions {
		left := slices.DeleteFunc(q.asking[s.Version], func(o *build) bool { return o == b })
		if q.asking[s.Version] = left; len(left) == 0 {
			delete(q.asking, s.Version)
		}
	}
}
