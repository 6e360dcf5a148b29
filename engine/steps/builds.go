package steps

import (
	"cmp"
	"slices"

	"google.golang.org/protobuf/reflect/protoreflect"

	"landfall.build/engine/evidence"
	eventsv1 "landfall.build/events/v1"
)

// build is one that was scheduled.
type build struct {
	// scheduled has no targets once the build is prepared: its versions say more.
	scheduled *eventsv1.BuildScheduled
	origin    Origin
	// schedule and started are the numbers that it has in Queue.schedules and Queue.starts.
	schedule, started uint64
	prepared          bool
	// asked is what its tree has to be verified for, in the order in which it is to be started; index has the place of each.
	asked []asked
	index map[Version]int
	// While the build is live, open[i] is set if asked[i] is not settled; outstanding counts those, and first is the place
	// of the first.
	open               []bool
	outstanding, first int
	// successor is set once the build was aborted in favour of one that is not prepared yet. Until that is prepared the build
	// lingers: its running steps go on, since the successor may share them.
	successor string
	// revived is set if it was over and evidence for that was withdrawn. Nobody aborts it any more.
	revived bool
}

// asked is a version that a build asks for, at one of its landing commits.
type asked struct {
	Version
	part uint32
	// claims is what running it takes besides a worker, without a place; nil for nothing.
	claims *eventsv1.StepClaims
}

func (b *build) id() string { return b.scheduled.GetBuild() }

func (b *build) policy() *eventsv1.StepPolicy { return b.scheduled.GetSteps() }

func (b *build) change() *eventsv1.ChangeRef { return b.scheduled.GetChange().GetChange() }

// foldDecision folds what the selector decided at one position. Schedules come before aborts in a record, so the build that
// takes over from another is known when that one is aborted.
func (q *Queue) foldDecision(d *eventsv1.Decision, origin Origin) {
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
	if id == "" || q.live[id] != nil {
		return
	}
	q.schedules++
	q.insert(&build{scheduled: s, origin: origin, schedule: q.schedules})
	if p := q.early[id]; p != nil {
		delete(q.early, id)
		q.foldPrepared(p)
	}
}

// insert makes a build live.
func (q *Queue) insert(b *build) {
	q.live[b.id()] = b
	at, _ := slices.BinarySearchFunc(q.order, b, before)
	q.order = slices.Insert(q.order, at, b)
}

// before orders builds: the most valuable first, then as they were scheduled.
func before(a, b *build) int {
	return cmp.Or(cmp.Compare(b.scheduled.GetValue(), a.scheduled.GetValue()), cmp.Compare(a.schedule, b.schedule))
}

// abort ends a build, or lets it linger for its successor.
func (q *Queue) abort(a *eventsv1.BuildAborted) {
	id := a.GetBuild()
	delete(q.early, id)
	b := q.live[id]
	successor := a.GetSupersededBy()
	if s := q.live[successor]; s == nil || s.prepared || s == b {
		successor = "" // nothing to wait for: what the successor shares, it asks for itself
	}
	// What lingered for this one lingers for its successor: the mainline may move faster than trees are made.
	for _, other := range q.lingeringFor(id) {
		q.linger(other, successor)
	}
	switch {
	case b == nil:
		q.forgetClosed(func(o *build) bool { return o.id() == id })
	case !b.prepared:
		q.drop(b)
	default:
		q.linger(b, successor)
	}
}

// linger lets an aborted build linger for another; without one it is dropped.
func (q *Queue) linger(b *build, successor string) {
	if b.successor = successor; successor == "" {
		q.drop(b)
	}
}

func (q *Queue) lingeringFor(successor string) []*build {
	var list []*build
	for _, b := range q.order {
		if successor != "" && b.successor == successor {
			list = append(list, b)
		}
	}
	return list
}

// foldPrepared folds which versions a build's tree has. The first record of a build stands.
func (q *Queue) foldPrepared(p *eventsv1.BuildPrepared) {
	id := p.GetBuild()
	b := q.live[id]
	if b == nil {
		if id != "" && q.early[id] == nil {
			q.early[id] = p
		}
		return
	}
	if b.prepared {
		return
	}
	b.prepared, b.scheduled = true, withoutTargets(b.scheduled)
	if p.GetOutcome() == eventsv1.PreparationOutcome_PREPARATION_OUTCOME_PREPARED {
		b.ask(q.ordered(p.GetVersions(), p.GetNeeds(), p.GetClaims()))
		q.start(b)
	}
	for _, other := range q.lingeringFor(id) {
		q.drop(other)
	}
	if q.over(b) {
		q.close(b)
	}
}

func withoutTargets(s *eventsv1.BuildScheduled) *eventsv1.BuildScheduled {
	out := &eventsv1.BuildScheduled{}
	to := out.ProtoReflect()
	s.ProtoReflect().Range(func(field protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		if field.Name() != "targets" {
			to.Set(field, v)
		}
		return true
	})
	return out
}

// settledByItself reports whether no step is needed for a version: no command verifies it, or the tree lacks the target.
func settledByItself(t *eventsv1.TargetVersion) bool {
	return t.GetTrivial() || t.GetAbsent() || t.GetHash() == ""
}

func (b *build) ask(list []asked) {
	b.asked, b.index = list, make(map[Version]int, len(list))
	for i, a := range list {
		b.index[a.Version] = i
	}
}

// start makes a live build ask for its versions, counts those that are not settled, and has it hear of results.
func (q *Queue) start(b *build) {
	q.starts++
	b.started = q.starts
	q.listen(b)
}

func (q *Queue) listen(b *build) {
	b.open, b.outstanding, b.first = make([]bool, len(b.asked)), 0, len(b.asked)
	for i, a := range b.asked {
		q.asking[a.Version] = append(q.asking[a.Version], b)
		if a.claims != nil {
			q.claims[a.Version] = a.claims
		}
		if q.ledger.State(a.Version, b.policy()) == evidence.Unknown {
			b.open[i] = true
			b.outstanding++
			b.first = min(b.first, i)
		}
	}
}

// over reports whether nothing of a build is outstanding, or something is red and the rest would prove nothing.
func (q *Queue) over(b *build) bool {
	unknown := false
	for _, a := range b.asked {
		switch q.ledger.State(a.Version, b.policy()) {
		case evidence.Red:
			return true
		case evidence.Unknown:
			unknown = true
		}
	}
	return !unknown
}

// updateAll tells all live builds that ask for a version of its state.
func (q *Queue) updateAll(v Version) {
	for _, b := range slices.Clone(q.asking[v]) {
		q.update(b, v)
	}
}

// update takes over the state of one version, and closes the build if it is over by that.
func (q *Queue) update(b *build, v Version) {
	i := b.index[v]
	state := q.ledger.State(v, b.policy())
	switch open := state == evidence.Unknown; {
	case open && !b.open[i]:
		b.open[i], b.first = true, min(b.first, i)
		b.outstanding++
	case !open && b.open[i]:
		b.open[i] = false
		b.outstanding--
		for b.first < len(b.open) && !b.open[b.first] {
			b.first++
		}
	}
	if state == evidence.Red || b.outstanding == 0 {
		q.close(b)
	}
}

// drop takes a build out of those that are live, with what only it asked for.
func (q *Queue) drop(b *build) {
	delete(q.live, b.id())
	if at, found := slices.BinarySearchFunc(q.order, b, before); found {
		q.order = slices.Delete(q.order, at, at+1)
	}
	for _, a := range b.asked {
		left := slices.DeleteFunc(q.asking[a.Version], func(o *build) bool { return o == b })
		if q.asking[a.Version] = left; len(left) == 0 {
			delete(q.asking, a.Version)
			delete(q.claims, a.Version)
		}
	}
	b.open, b.outstanding, b.first = nil, 0, 0
}
