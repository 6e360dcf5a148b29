package work

import (
	"slices"

	eventsv1 "landfall.build/events/v1"
	"landfall.build/services/evidence"
)

// keptClosed bounds how many builds that are over may still be revived.
const keptClosed = 256

// close takes a build out that is over. If something other than success ended it, it can come back: the
// enumerator may read what withdraws that before it reads that the build is prepared, and then waits for
// its steps. The two stand in different topics, so only the more cautious reading is safe.
func (q *Queue) close(b *build) {
	q.drop(b)
	if b.heir != "" || !slices.ContainsFunc(b.versions, func(s Step) bool { return q.ledger.State(s.Version, b.policy()) != evidence.Green }) {
		return
	}
	q.closed = append(q.closed, b)
	if len(q.closed) > keptClosed {
		q.closed = slices.Delete(q.closed, 0, 1)
	}
}

// withdraw takes back what speaks against the versions of a reason: it has had its effect.
func (q *Queue) withdraw(r *eventsv1.Reason) {
	for _, p := range r.GetFailed() {
		v := Version{Target: p.GetVersion().GetTarget(), Hash: p.GetVersion().GetHash()}
		q.ledger.Withdraw(v, p.GetAttempt())
		q.restateAll(v)
		q.reviveFor(v)
	}
}

// reviveFor brings back those of the closed builds that ask for a version which is not settled any more, if their
// change is pending. What is asked of the mainline itself is asked for again as it stands.
func (q *Queue) reviveFor(v Version) {
	for _, b := range slices.Clone(q.closed) {
		if _, asks := b.index[v]; asks && q.lineup.PendingAt(b.scheduled.GetChange().GetChange()) != nil && !q.over(b) {
			q.revive(b)
		}
	}
}

func (q *Queue) revive(b *build) {
	q.forgetClosed(func(o *build) bool { return o == b })
	id := b.scheduled.GetBuild()
	if q.builds[id] != nil {
		return
	}
	b.revived = true
	q.builds[id] = b
	at, _ := slices.BinarySearchFunc(q.order, b, before)
	q.order = slices.Insert(q.order, at, b)
	q.enlist(b)
}

// left forgets the closed builds of a change that is no longer pending at a revision, and ends those that
// were revived: the selector, for which they are over, aborts them no more.
func (q *Queue) left(change string, revision uint64) {
	delete(q.memory.pending, change)
	of := func(b *build) bool {
		c := b.scheduled.GetChange().GetChange()
		return c.GetChange() == change && c.GetRevision() <= revision
	}
	q.forgetClosed(of)
	for _, b := range slices.Clone(q.order) {
		if b.revived && of(b) {
			q.drop(b)
		}
	}
}

func (q *Queue) forgetClosed(which func(*build) bool) {
	q.closed = slices.DeleteFunc(q.closed, which)
}
