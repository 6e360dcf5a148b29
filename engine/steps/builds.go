package steps

import (
	"cmp"
	"slices"

	"google.golang.org/protobuf/reflect/protoreflect"

	"landfall.build/engine/evidence"
	"landfall.build/engine/quota"
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
	demand
	// successor is set once the build was aborted in favour of one that is not prepared yet. Until that is prepared the build
	// lingers: its running steps go on, since the successor may share them.
	successor string
	// revived is set if it was over and evidence for that was withdrawn.
	revived bool
	// value is what the build is worth now (M15), and sinceUs when its change began to wait for a worker.
	value   float64
	sinceUs int64
	share   share
	// author is the author that its steps count for (M33b), as of its schedule. payer has the accounts while the build is live.
	author string
	payer  *payer `snapshot:"-"`
	// urgent is set while an operator wants the change first.
	urgent   bool `snapshot:"index"`
	standing `snapshot:"-"`
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
			q.schedule(x.BuildScheduled, origin, d.GetStampUs())
		case *eventsv1.DecisionItem_BuildAborted:
			q.abort(x.BuildAborted)
		case *eventsv1.DecisionItem_BuildRevalued:
			if b := q.live[x.BuildRevalued.GetBuild()]; b != nil {
				q.setWorth(b, x.BuildRevalued.GetValue())
				q.changeEntry(b)
			}
		}
	}
	q.dropLapsed(d.GetStampUs())
}

func (q *Queue) schedule(s *eventsv1.BuildScheduled, origin Origin, stampUs int64) {
	id := s.GetBuild()
	if id == "" || q.live[id] != nil {
		return
	}
	if q.hasLeft(s.GetChange().GetChange()) {
		delete(q.early, id)
		return
	}
	q.schedules++
	author := ""
	if c := q.lineup.PendingAt(s.GetChange().GetChange()); c != nil {
		author = quota.AuthorOf(c.Admission.Author)
		if c.Admission.Trace != "" {
			origin.Trace = c.Admission.Trace // one decision schedules builds of several changes
		}
	}
	q.insert(&build{
		author:    author,
		scheduled: s, origin: origin, schedule: q.schedules, value: s.GetValue(),
		sinceUs: q.memory.waitingSince(s.GetChange().GetChange(), stampUs),
		share:   share{beganUs: q.fair.givenUs, sinceUs: stampUs},
	})
	if p := q.early[id]; p != nil {
		delete(q.early, id)
		q.foldPrepared(p)
	}
}

// insert makes a build live.
func (q *Queue) insert(b *build) {
	q.live[b.id()] = b
	b.urgent = q.isUrgent(b)
	q.choice.latestUs = max(q.choice.latestUs, b.sinceUs)
	at, _ := slices.BinarySearchFunc(q.order, b, before)
	q.order = slices.Insert(q.order, at, b)
	mine := q.ofChange[b.change().GetChange()]
	at, _ = slices.BinarySearchFunc(mine, b, before)
	q.ofChange[b.change().GetChange()] = slices.Insert(mine, at, b)
	q.addPayer(b)
}

// noteUrgency notes for some builds whether they are urgent now.
func (q *Queue) noteUrgency(builds []*build) {
	for _, b := range builds {
		b.urgent = q.isUrgent(b)
		q.changeEntry(b)
	}
}

// isUrgent reports whether an operator has moved a build's change to the front (M35).
func (q *Queue) isUrgent(b *build) bool {
	c := q.lineup.PendingAt(b.change())
	return c != nil && c.Urgent
}

// before orders builds as they were scheduled.
func before(a, b *build) int { return cmp.Compare(a.schedule, b.schedule) }

// abort ends a build, or lets it linger for its successor.
func (q *Queue) abort(a *eventsv1.BuildAborted) {
	id := a.GetBuild()
	delete(q.early, id)
	b := q.live[id]
	successor := a.GetSupersededBy()
	s := q.live[successor]
	if s == nil || s.prepared || s == b {
		successor = "" // nothing to wait for: what the successor shares, it asks for itself
	}
	if successor != "" && b != nil {
		s.share = b.share
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
		return
	}
	b.stale = true
	q.changeEntry(b)
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
		b.set(demandOf(p))
		q.start(b)
		if !b.scheduled.GetIdle() {
			q.estimates.addWork(b.workUs)
		}
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

// start makes a live build ask for its versions.
func (q *Queue) start(b *build) {
	q.starts++
	b.started = q.starts
	q.want(b)
	b.sort()
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

// updateAll takes over the state of a version in all live builds that ask for it. One that is over by that is closed.
func (q *Queue) updateAll(v Version) {
	w := q.wanted[v]
	if w == nil {
		return
	}
	if risk := q.risk(v); (risk == failedOnce) != (w.risk == failedOnce) {
		w.risk = risk
		for _, b := range w.askers {
			b.sort()
		}
	}
	for _, b := range slices.Clone(w.askers) {
		state := q.ledger.State(v, b.policy())
		b.setOpen(b.place, state == evidence.Unknown)
		q.changeEntry(b.build)
		if state == evidence.Red || b.outstanding == 0 {
			q.close(b.build)
		}
	}
}

// drop takes a build out of those that are live, with what only it asked for.
func (q *Queue) drop(b *build) {
	delete(q.live, b.id())
	if at, found := slices.BinarySearchFunc(q.order, b, before); found {
		q.order = slices.Delete(q.order, at, at+1)
		mine := slices.DeleteFunc(q.ofChange[b.change().GetChange()], func(o *build) bool { return o == b })
		if q.ofChange[b.change().GetChange()] = mine; len(mine) == 0 {
			delete(q.ofChange, b.change().GetChange())
		}
	}
	if b.sinceUs == q.choice.latestUs {
		q.choice.latestUs = 0
		for _, o := range q.order {
			q.choice.latestUs = max(q.choice.latestUs, o.sinceUs)
		}
	}
	q.release(b)
	q.dropPayer(b)
}
