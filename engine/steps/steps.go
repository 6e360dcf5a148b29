package steps

import eventsv1 "landfall.build/events/v1"

// Step is one attempt at a target version that somebody should make.
type Step struct {
	Version
	// Attempt is the number of the next attempt at the version.
	Attempt uint32
	// Part is the landing commit (1-based) at whose tree the target has the version; 0 is the whole tree.
	Part uint32
	// Build is the most valuable one that wants it, Origin the record that scheduled it.
	Build  *eventsv1.BuildScheduled
	Origin Origin
	// Claims is what running it takes besides a worker; nil for nothing.
	Claims *eventsv1.StepClaims
}

// Preparation is a build whose tree is to be made.
type Preparation struct {
	Build  *eventsv1.BuildScheduled
	Origin Origin
}

// Preparations returns the builds that have to be prepared, the most valuable first.
func (q *Queue) Preparations() []Preparation {
	var list []Preparation
	for _, b := range q.order {
		if !b.prepared {
			list = append(list, Preparation{b.scheduled, b.origin})
		}
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

// Next returns at most limit steps that nobody has the right to run at a time (microseconds since 1970), in the order in
// which they should be started. Versions that taken reports true for are left out; nil takes none. So are those that have to
// wait for what another step has to itself, and those for whose resources fits reports false; nil fits all.
//
// An aborted build that lingers starts nothing: what it alone wants is probably no longer needed.
func (q *Queue) Next(nowUs int64, limit int, taken func(Version) bool, fits func([]*eventsv1.ResourceAmount) bool) []Step {
	held := q.held(taken)
	var list []Step
	listed := map[Version]bool{}
	for _, b := range q.order {
		if len(list) >= limit {
			break
		}
		if b.successor != "" {
			continue
		}
		for i := b.first; i < len(b.open) && len(list) < limit; i++ {
			a := b.asked[i]
			if !b.open[i] || listed[a.Version] || taken != nil && taken(a.Version) {
				continue
			}
			if l := q.leases[a.Version]; l != nil && l.UntilUs >= nowUs {
				continue
			}
			if !q.free(a.Version, a.claims.GetExclusive(), nowUs) || overlap(held, a.claims.GetExclusive()) {
				continue
			}
			if amounts := a.claims.GetResources(); len(amounts) > 0 && fits != nil && !fits(amounts) {
				continue
			}
			held = append(held, a.claims.GetExclusive()...)
			listed[a.Version] = true
			list = append(list, Step{Version: a.Version, Attempt: q.ledger.NextAttempt(a.Version), Part: a.part, Build: b.scheduled, Origin: b.origin, Claims: a.claims})
		}
	}
	return list
}

// held returns what the versions that are taken have to themselves, though no lease of theirs may have been read.
func (q *Queue) held(taken func(Version) bool) []string {
	var names []string
	for v, c := range q.claims {
		if len(c.GetExclusive()) > 0 && taken != nil && taken(v) {
			names = append(names, c.GetExclusive()...)
		}
	}
	return names
}

// Wants reports whether some build needs a result about a version. A build that lingers needs those of the steps that run
// already.
func (q *Queue) Wants(v Version) bool {
	for _, b := range q.asking[v] {
		if b.open[b.index[v]] && (b.successor == "" || q.leases[v] != nil) {
			return true
		}
	}
	return false
}

// foldFinished folds the end of an attempt. The first record of one stands; it counts whoever asked for it.
func (q *Queue) foldFinished(f *eventsv1.StepFinished) {
	if !q.ledger.Apply(f) {
		return
	}
	v := Version{Target: f.GetTarget(), Hash: f.GetHash()}
	if f.GetOutcome() == eventsv1.StepOutcome_STEP_OUTCOME_PASSED {
		q.addDuration(f)
	}
	if l := q.leases[v]; l != nil && l.Attempt <= f.GetAttempt() {
		delete(q.leases, v)
	}
	q.updateAll(v)
}
