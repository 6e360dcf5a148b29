package work

import (
	"slices"

	eventsv1 "landfall.build/events/v1"
)

// Step is one attempt at a target version that somebody should make.
type Step struct {
	Version
	// Attempt is what the next attempt at the version is called.
	Attempt uint32
	// Part is the landing commit (1-based) at whose tree the target has the version; 0 is the whole tree.
	Part uint32
	// Build is the most valuable one that wants it, Origin the record that scheduled it.
	Build  *eventsv1.BuildScheduled
	Origin Origin
}

// Preparation is a build whose tree is to be made.
type Preparation struct {
	Build  *eventsv1.BuildScheduled
	Origin Origin
}

// Preparations are the builds that want preparing, the most valuable first.
func (q *Queue) Preparations() []Preparation {
	var list []Preparation
	for _, b := range q.order {
		if !b.prepared {
			list = append(list, Preparation{b.scheduled, b.origin})
		}
	}
	return list
}

// WantsPreparing says whether a build is live and nobody's preparation of it has been read.
func (q *Queue) WantsPreparing(build string) bool {
	b := q.builds[build]
	return b != nil && !b.prepared
}

// Live says whether a build is neither over nor aborted for good.
func (q *Queue) Live(build string) bool { return q.builds[build] != nil }

// Next are at most limit steps that nobody has the right to run at a time (microseconds since 1970), in
// the order in which they should be started. Those that taken says yes to are left out; nil takes none.
//
// An aborted build that lingers starts nothing: what it alone wants is probably no longer needed.
func (q *Queue) Next(nowUs int64, limit int, taken func(Version) bool) []Step {
	var list []Step
	listed := map[Version]bool{}
	for _, b := range q.order {
		if len(list) >= limit {
			break
		}
		if b.heir != "" {
			continue
		}
		for b.first < len(b.versions) && !b.open[b.first] {
			b.first++
		}
		for i := b.first; i < len(b.versions) && len(list) < limit; i++ {
			s := b.versions[i]
			if !b.open[i] || listed[s.Version] || taken != nil && taken(s.Version) {
				continue
			}
			if l := q.leases[s.Version]; l != nil && l.UntilUs >= nowUs {
				continue
			}
			listed[s.Version] = true
			s.Attempt = q.ledger.NextAttempt(s.Version)
			list = append(list, s)
		}
	}
	return list
}

// Wants says whether some build needs a result about a version. A build that lingers needs those of the
// steps that run already.
func (q *Queue) Wants(v Version) bool {
	for _, b := range q.asking[v] {
		if b.open[b.index[v]] && (b.heir == "" || q.leases[v] != nil) {
			return true
		}
	}
	return false
}

// finished folds the end of an attempt. The first record of one stands; it counts whoever asked for it.
func (q *Queue) finished(f *eventsv1.StepFinished) {
	if !q.ledger.Apply(f) {
		return
	}
	v := Version{Target: f.GetTarget(), Hash: f.GetHash()}
	if f.GetOutcome() == eventsv1.StepOutcome_STEP_OUTCOME_PASSED {
		q.learn(f)
	}
	if l := q.leases[v]; l != nil && l.Attempt <= f.GetAttempt() {
		delete(q.leases, v)
	}
	q.restateAll(v)
}

func (q *Queue) restateAll(v Version) {
	for _, b := range slices.Clone(q.asking[v]) {
		q.restate(b, v)
	}
}
