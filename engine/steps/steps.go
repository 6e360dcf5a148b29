package steps

import (
	"cmp"
	"slices"

	"landfall.build/engine/lineup"
	eventsv1 "landfall.build/events/v1"
)

// Step is one attempt at a target version that somebody should make.
type Step struct {
	Version
	// Attempt is the number of the next attempt at the version.
	Attempt uint32
	// Part is the landing commit (1-based) at whose tree the target has the version; 0 is the whole tree.
	Part uint32
	// Build is one that wants it, Origin the record that scheduled it.
	Build  *eventsv1.BuildScheduled
	Origin Origin
	// Claims is what running it takes besides a worker; nil for nothing.
	Claims *eventsv1.StepClaims
	// Quotas are for whom a lease of it counts (M33b).
	Quotas []*eventsv1.StepQuota
	// Rank is the step's place among those of all queues that share workers.
	Rank Rank
}

// Preparation is a build whose tree is to be made.
type Preparation struct {
	Build  *eventsv1.BuildScheduled
	Origin Origin
}

// Preparations returns the builds that have to be prepared at a time (microseconds since 1970), by their index (M33).
func (q *Queue) Preparations(nowUs int64) []Preparation {
	var builds []*build
	for _, b := range q.order {
		if !b.prepared {
			builds = append(builds, b)
		}
	}
	slices.SortStableFunc(builds, func(x, y *build) int { return cmp.Compare(q.indexOf(y, nowUs), q.indexOf(x, nowUs)) })
	var list []Preparation
	for _, b := range builds {
		list = append(list, Preparation{b.scheduled, b.origin})
	}
	return list
}

// WantsPreparing reports whether a build is live and nobody's preparation of it has been read.
func (q *Queue) WantsPreparing(build string) bool {
	b := q.live[build]
	return b != nil && !b.prepared
}

// Live reports whether a build is neither over nor dropped.
func (q *Queue) Live(build string) bool { return q.live[build] != nil }

// Wants reports whether some build needs a result about a version. A build that lingers needs those of the steps that run
// already.
func (q *Queue) Wants(v Version) bool {
	w := q.wanted[v]
	return w != nil && slices.ContainsFunc(w.askers, func(b asker) bool {
		return b.open[b.place] && (b.successor == "" || q.leases[v] != nil)
	})
}

// foldFinished folds the end of an attempt. The first record of one stands; it counts whoever asked for it.
func (q *Queue) foldFinished(f *eventsv1.StepFinished) {
	if !q.ledger.Apply(f) {
		return
	}
	v := Version{Target: f.GetTarget(), Hash: f.GetHash()}
	if q.estimates.add(f) {
		q.estimateAgain()
	}
	if l := q.leases[v]; l != nil && l.Attempt <= f.GetAttempt() {
		q.endLease(v)
	}
	done := q.credit(v, workOf(f))
	q.updateAll(v)
	q.giveOut(done, f.GetStartedUs(), f.GetFinishedUs())
}

// Became returns what became of a revision of a change. Of one that a newer revision replaced it is Cancelled.
func (q *Queue) Became(ref *eventsv1.ChangeRef) lineup.State {
	if q.lineup.PendingAt(ref) != nil {
		return lineup.Pending
	}
	if s, settled := q.lineup.SettledAs(ref.GetChange()); settled && s.Revision == ref.GetRevision() {
		return s.State
	}
	return lineup.Cancelled
}
