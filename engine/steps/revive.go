package steps

import (
	"slices"

	"google.golang.org/protobuf/proto"

	"landfall.build/engine/evidence"
	eventsv1 "landfall.build/events/v1"
)

// keptClosed bounds how many builds that are over may still be revived.
const keptClosed = 256

// keptHeads bounds how many heads that the mainline has left are known.
const keptHeads = 64

// close drops a build that is over. One that did not end by success can come back: the enumerator may read what withdraws
// the evidence for that before it reads that the build is prepared, and then it waits for the build's steps. The two records
// stand in different topics, so a builder that drops the build for ever could leave it waiting. One of the mainline can come back in
// any case: what was green there can be asked for again (M23c).
func (q *Queue) close(b *build) {
	q.drop(b)
	q.leaveShares(b)
	if b.successor != "" || q.isOfLeftHead(b) || b.change().GetChange() != "" && q.isGreen(b) {
		return
	}
	q.closed = append(q.closed, b)
	if len(q.closed) > keptClosed {
		q.closed = slices.Delete(q.closed, 0, 1)
	}
}

func (q *Queue) isGreen(b *build) bool {
	return !slices.ContainsFunc(b.asked, func(a asked) bool { return q.ledger.State(a.Version, b.policy()) != evidence.Green })
}

// leaveHead forgets the builds of a head that the mainline no longer has: what is asked for again is asked for of the new one. An old tree
// may hold other files that no hash covers (M23c).
func (q *Queue) leaveHead(head string) {
	if q.memory.leftHeads = append(q.memory.leftHeads, head); len(q.memory.leftHeads) > keptHeads {
		q.memory.leftHeads = slices.Clone(q.memory.leftHeads[1:])
	}
	q.forgetClosed(q.isOfLeftHead)
}

func (q *Queue) isOfLeftHead(b *build) bool {
	return b.scheduled.GetBase() != q.lineup.Head && slices.Contains(q.memory.leftHeads, b.scheduled.GetBase())
}

// takeBack folds what a record takes back. A build of the mainline that was over for it comes back too, as those of changes do.
func (q *Queue) takeBack(m proto.Message) {
	for _, v := range q.ledger.TakeBack(m) {
		q.updateAll(v)
		q.reviveFor(v, true)
	}
}

// quarantine folds a TargetQuarantined or QuarantineEnded. A build that was over because of a version that is tolerated now comes
// back: the enumerator may have read the quarantine first, and then it waits for the build's other steps.
func (q *Queue) quarantine(m proto.Message) {
	for _, v := range q.ledger.Quarantine(m) {
		q.updateAll(v)
		q.reviveFor(v, false)
	}
}

// reviveFor brings back the closed builds that ask for a version which is not settled any more, if their change is pending.
// Builds of the mainline itself come back if that is asked for; else the selector schedules new ones.
func (q *Queue) reviveFor(v Version, mainline bool) {
	for _, b := range slices.Clone(q.closed) {
		open := q.lineup.PendingAt(b.change()) != nil || mainline && b.change().GetChange() == ""
		if _, asks := b.index[v]; asks && open && !q.over(b) {
			q.revive(b)
		}
	}
}

func (q *Queue) revive(b *build) {
	q.forgetClosed(func(o *build) bool { return o == b })
	if q.live[b.id()] != nil {
		return
	}
	b.revived = true
	b.share = share{beganUs: q.fair.givenUs, sinceUs: b.share.sinceUs}
	q.insert(b)
	q.start(b)
}

// changeLeft ends and forgets the builds of a change that is no longer pending at a revision. For the selector some of them are
// over, so it does not abort them: those that were revived, and those for whose end the evidence was withdrawn or forgotten
// before it was read here, since the topics have no common order. Of a change that was revised the others go on until they are
// aborted: the next revision's builds may share their steps.
func (q *Queue) changeLeft(change string, revision uint64, revised bool) {
	delete(q.memory.trees, change)
	of := func(b *build) bool { return b.change().GetChange() == change && b.change().GetRevision() <= revision }
	q.forgetClosed(of)
	for _, b := range slices.Clone(q.ofChange[change]) {
		if of(b) && (b.revived || !revised) {
			q.drop(b)
		}
	}
}

// hasLeft reports whether a revision of a change was pending and is no more. A build of it that is scheduled then was over before.
func (q *Queue) hasLeft(c *eventsv1.ChangeRef) bool {
	return c.GetChange() != "" && q.lineup.Known(c.GetChange()) >= c.GetRevision() && q.lineup.PendingAt(c) == nil
}

func (q *Queue) forgetClosed(which func(*build) bool) {
	q.closed = slices.DeleteFunc(q.closed, which)
}
