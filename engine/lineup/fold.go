package lineup

import (
	"fmt"
	"slices"

	"google.golang.org/protobuf/proto"

	eventsv1 "landfall.build/events/v1"
)

// Consequence is what a fact did to the lineup.
type Consequence struct {
	// Applied is false for a fact that changes nothing: a repeat, or one that came too late.
	Applied bool
	// Why tells the person who asked for the fact why it was not applied.
	Why string
	// Left is the revision that is no longer pending because of the fact, nil if none.
	Left *Change
	// As is how it left. A revision that a newer one replaced is Cancelled, and Revised is set.
	As      State
	Revised bool
	// Entered is the revision that is pending because of the fact, nil if none.
	Entered *Change
	// Reordered is set when positions of pending changes moved.
	Reordered bool
}

func ignored(why string) Consequence { return Consequence{Why: why} }

// Apply folds one counted fact of landfall.changes at its offset. Analyses are no facts of the lineup and do nothing.
func (q *Queue) Apply(m proto.Message, offset int64) Consequence {
	switch f := m.(type) {
	case *eventsv1.ChangeAdmitted:
		return q.admit(f.Admission, offset)
	case *eventsv1.ChangeRevised:
		return q.admit(f.Admission, offset)
	case *eventsv1.ChangeCancelled:
		return q.cancel(f)
	case *eventsv1.ChangeMoved:
		return q.move(f)
	case *eventsv1.ChangeHeld:
		return q.hold(f)
	case *eventsv1.ChangeReleased:
		return q.release(f)
	case *eventsv1.QueuePaused:
		q.Paused = &Pause{f.Who, f.Why, f.StampUs}
		return Consequence{Applied: true}
	case *eventsv1.QueueResumed:
		q.Paused = nil
		return Consequence{Applied: true}
	case *eventsv1.LandingsPaused:
		q.RefusedByRemote = f
		return Consequence{Applied: true}
	case *eventsv1.LandingsResumed:
		if q.RefusedByRemote == nil {
			return ignored("the landings are not paused by the remote")
		}
		q.RefusedByRemote = nil
		return Consequence{Applied: true}
	case *eventsv1.LandIntended:
		return q.intend(f, offset)
	case *eventsv1.LandVoid:
		if q.Intention == nil || q.Intention.Tip() != f.Commit {
			return ignored("no such intention is open")
		}
		q.Intention = nil
		return Consequence{Applied: true}
	case *eventsv1.ChangeLanded:
		return q.land(f)
	case *eventsv1.ChangeRejected:
		return q.settleWithoutLanding(f.Change, Rejected)
	case *eventsv1.ChangeEjected:
		return q.settleWithoutLanding(f.Change, Ejected)
	case *eventsv1.Refused:
		return q.concern(f.Change)
	case *eventsv1.ChangeRetried:
		if f.Change.GetChange() == "" { // the mainline itself
			return Consequence{Applied: true}
		}
		return q.concern(f.Change)
	case *eventsv1.MainlineMoved:
		q.Head = f.To
		q.Sequence++
		return Consequence{Applied: true}
	}
	return ignored("not a fact of the lineup")
}

// concern folds a fact about a pending revision that changes nothing in the lineup.
func (q *Queue) concern(c *eventsv1.ChangeRef) Consequence {
	if q.PendingAt(c) == nil {
		return ignored("the change is not pending at that revision")
	}
	return Consequence{Applied: true}
}

// admit puts a revision at the end of the queue and removes an older one. Of two records of a revision the first counts.
func (q *Queue) admit(a *eventsv1.Admission, offset int64) Consequence {
	if a == nil || a.Change == "" || a.Revision == 0 || len(a.LandingCommits) == 0 {
		return ignored("an admission without change, revision or landing commits")
	}
	if a.Revision <= q.Known(a.Change) {
		return ignored("that revision was admitted before")
	}
	if q.Intended(a.Change) {
		return ignored("too late: the change is being landed")
	}
	consequence := Consequence{Applied: true}
	// An older revision that is no longer pending, because it landed or was rejected, may have dependants too.
	dependants := q.dependantsOf(a.Change)
	if old := q.pending[a.Change]; old != nil {
		consequence.Left, consequence.As, consequence.Revised = old, Cancelled, true
		q.remove(old)
	}
	c := &Change{Admission: a, AdmittedOffset: offset}
	if consequence.Left != nil {
		c.Holds = consequence.Left.Holds // a hold is on the change, whatever its revision
	}
	q.pending[a.Change] = c
	q.append(c)
	consequence.Entered = c
	// Changes that require this one cannot stay ahead of it. They follow it, in their own order.
	for _, d := range dependants {
		if d != c {
			q.unlink(d)
			q.append(d)
			consequence.Reordered = true
		}
	}
	return consequence
}

func (q *Queue) append(c *Change) {
	c.Position = positionStep
	if n := len(q.order); n > 0 {
		c.Position = q.order[n-1].Position + positionStep
	}
	q.order = append(q.order, c)
}

func (q *Queue) unlink(c *Change) {
	i := slices.Index(q.order, c)
	q.order = slices.Delete(q.order, i, i+1)
}

func (q *Queue) remove(c *Change) {
	q.unlink(c)
	delete(q.pending, c.ID())
}

func (q *Queue) settle(c *Change, s State) {
	q.remove(c)
	q.settled[digestOf(c.ID())] = Settled{Revision: c.Revision(), State: s}
}

// dependantsOf returns, in queue order, the pending changes that require a change, directly or through others.
func (q *Queue) dependantsOf(id string) []*Change {
	var out []*Change
	for _, c := range q.order {
		if c.ID() != id && q.Requires(c, id) {
			out = append(out, c)
		}
	}
	return out
}

func (q *Queue) cancel(f *eventsv1.ChangeCancelled) Consequence {
	c := q.pending[f.Change]
	if c == nil {
		return ignored("the change is not pending")
	}
	if f.Revision != 0 && f.Revision != c.Revision() {
		return ignored(fmt.Sprintf("the change is pending at revision %d, and not at %d", c.Revision(), f.Revision))
	}
	if q.Intended(f.Change) {
		return ignored("too late: the change is being landed")
	}
	q.settle(c, Cancelled)
	return Consequence{Applied: true, Left: c, As: Cancelled}
}

func (q *Queue) hold(f *eventsv1.ChangeHeld) Consequence {
	c := q.pending[f.Change]
	if c == nil {
		return ignored("the change is not pending")
	}
	h := Hold{f.Hold, f.Who, f.Why}
	if i := slices.IndexFunc(c.Holds, func(x Hold) bool { return x.Name == f.Hold }); i >= 0 {
		c.Holds[i] = h
	} else {
		c.Holds = append(c.Holds, h)
	}
	return Consequence{Applied: true}
}

func (q *Queue) release(f *eventsv1.ChangeReleased) Consequence {
	c := q.pending[f.Change]
	if c == nil {
		return ignored("the change is not pending")
	}
	i := slices.IndexFunc(c.Holds, func(x Hold) bool { return x.Name == f.Hold })
	if i < 0 {
		return ignored("the change has no hold of that name")
	}
	c.Holds = slices.Delete(c.Holds, i, i+1)
	return Consequence{Applied: true}
}

// intend opens an intention. One that stands behind a cancellation or a newer revision opens nothing.
func (q *Queue) intend(f *eventsv1.LandIntended, offset int64) Consequence {
	if q.PendingAt(f.Change) == nil || len(f.Commits) == 0 {
		return ignored("the change is not pending at that revision")
	}
	if q.Intention != nil {
		return ignored("another intention is open")
	}
	q.Intention = &Intention{Fact: f, Offset: offset}
	return Consequence{Applied: true}
}

func (q *Queue) land(f *eventsv1.ChangeLanded) Consequence {
	c := q.PendingAt(f.Change)
	if c == nil || q.Intention == nil || len(f.Commits) == 0 || f.Commits[len(f.Commits)-1] != q.Intention.Tip() {
		return ignored("no intention of these commits is open")
	}
	q.Intention = nil
	q.settle(c, Landed)
	q.Head = f.Commits[len(f.Commits)-1]
	q.Sequence++
	return Consequence{Applied: true, Left: c, As: Landed}
}

// settleWithoutLanding takes a rejected or ejected change out of the queue.
func (q *Queue) settleWithoutLanding(ref *eventsv1.ChangeRef, s State) Consequence {
	c := q.PendingAt(ref)
	if c == nil {
		return ignored("the change is not pending at that revision")
	}
	if q.Intended(c.ID()) {
		return ignored("the change is being landed")
	}
	q.settle(c, s)
	return Consequence{Applied: true, Left: c, As: s}
}

// move puts a change before another one, or at the front. What it requires goes with it, ahead of it.
func (q *Queue) move(f *eventsv1.ChangeMoved) Consequence {
	c := q.pending[f.Change]
	if c == nil {
		return ignored("the change is not pending")
	}
	if f.Before == f.Change {
		return ignored("a change cannot be moved before itself")
	}
	if f.Before != "" && q.pending[f.Before] == nil {
		return ignored("the change to move before, " + f.Before + ", is not pending")
	}
	if f.Before != "" && q.Requires(c, f.Before) {
		return ignored("the change requires the one to move before")
	}
	var moving []*Change
	for _, r := range q.order {
		if r == c || (q.Requires(c, r.ID()) && r.ID() != f.Before) {
			moving = append(moving, r)
		}
	}
	anchor := 0
	if f.Before != "" {
		anchor = slices.Index(q.order, q.pending[f.Before])
	}
	// Requirements that are ahead of that place stay where they are.
	moving = slices.DeleteFunc(moving, func(r *Change) bool { return r != c && slices.Index(q.order, r) < anchor })
	for _, r := range moving {
		r.Urgent = r.Urgent || f.Before == ""
		q.unlink(r)
	}
	if f.Before != "" {
		anchor = slices.Index(q.order, q.pending[f.Before])
	}
	q.order = slices.Insert(q.order, anchor, moving...)
	q.spread(anchor, anchor+len(moving))
	q.repairDependants(c)
	return Consequence{Applied: true, Reordered: true}
}

// spread gives order[from:to] positions between those of their neighbours. It renumbers the queue if there is no room.
func (q *Queue) spread(from, to int) {
	n := int64(to - from)
	var low, high int64
	switch {
	case from == 0 && to == len(q.order):
		low, high = 0, (n+1)*positionStep
	case from == 0:
		high = q.order[to].Position
		low = high - (n+1)*positionStep
	case to == len(q.order):
		low = q.order[from-1].Position
		high = low + (n+1)*positionStep
	default:
		low, high = q.order[from-1].Position, q.order[to].Position
	}
	if step := (high - low) / (n + 1); step > 0 {
		for i := from; i < to; i++ {
			q.order[i].Position = low + int64(i-from+1)*step
		}
		return
	}
	for i, c := range q.order {
		c.Position = int64(i+1) * positionStep
	}
}

// repairDependants moves the changes that require c and now stand ahead of it right behind it, in their own order.
func (q *Queue) repairDependants(c *Change) {
	moved := 0
	for _, d := range q.dependantsOf(c.ID()) {
		if slices.Index(q.order, d) < slices.Index(q.order, c) {
			q.unlink(d)
			moved++
			at := slices.Index(q.order, c) + moved
			q.order = slices.Insert(q.order, at, d)
			q.spread(at, at+1)
		}
	}
}
