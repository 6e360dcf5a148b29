package view

import (
	"slices"
	"time"

	"landfall.build/engine/targets"
	eventsv1 "landfall.build/events/v1"
)

// maxEarlierRuns bounds how many earlier runs are shown of the steps of one build.
const maxEarlierRuns = 200

// diedAt is when a build was aborted, could not be prepared, or its change left the queue; the zero time while it lives. What began later
// says nothing of the build.
func (q *Queue) diedAt(b *build) time.Time {
	end := b.endedAt
	if c := q.keptAt(b.of); c != nil && !c.pending() && (end.IsZero() || c.end.at.Before(end)) {
		end = c.end.at
	}
	return end
}

// inLife reports whether something had begun when a build died, at the zero time if it lives.
func inLife(began, died time.Time) bool { return died.IsZero() || !began.After(died) }

// leaseIn returns the lease of a version that was given before a time, unless that is zero; nil if there is none.
func (s *stepStore) leaseIn(v version, died time.Time) *eventsv1.StepLeased {
	if l := s.leases[v]; l != nil && inLife(stamp(l.StampUs, time.Time{}), died) {
		return l
	}
	return nil
}

// toleratedIn is tolerated for a build that died at some time, or lives: a quarantine that came later changes nothing of what it was.
func (q *Queue) toleratedIn(b *build, a *attempt, died time.Time) bool {
	c := q.keptAt(b.of)
	if died.IsZero() || c == nil || c.pending() {
		return q.tolerated(a)
	}
	named := func(p *eventsv1.Proof) bool {
		return p.GetVersion().GetTarget() == a.version.target && p.GetVersion().GetHash() == a.version.hash
	}
	if i := slices.IndexFunc(c.end.landed.GetProof(), named); i >= 0 {
		return c.end.landed.Proof[i].Quarantined
	}
	if slices.ContainsFunc(c.end.reason.GetFailed(), named) || !q.tolerated(a) {
		return false
	}
	return slices.ContainsFunc(q.quarantines.List(), func(f *eventsv1.TargetQuarantined) bool {
		return inLife(stamp(f.StampUs, time.Time{}), died) && targets.NewNamePatterns([]string{f.Target}).Has(a.version.target)
	})
}

// toleratedSince says which steps failed before their targets were quarantined, and when the first of these was; "" if none did.
func (q *Queue) toleratedSince(steps []Step) string {
	var list []string
	var at time.Time
	for _, s := range steps {
		if s.State != StepFailed && s.State != StepTimedOut || !q.quarantines.Has(s.Target) {
			continue
		}
		if since := stamp(q.quarantines.Of(s.Target).StampUs, time.Time{}); since.After(s.FinishedAt) {
			if list = append(list, s.Target); at.IsZero() || since.Before(at) {
				at = since
			}
		}
	}
	if len(list) == 0 {
		return ""
	}
	list = sortedUnique(list)
	return names(list) + " failed, and " + verb(len(list), "is", "are") + " tolerated since " + verb(len(list), "its quarantine", "their quarantines") + " at " + at.Format(time.DateTime) + " UTC"
}

// endOf is when a build that is over ended: one that failed with its first failure, or with the last of its own runs if those went on.
func (q *Queue) endOf(b *build, t tally) time.Time {
	died := q.diedAt(b)
	end := t.last
	switch {
	case t.failed > 0:
		end = time.Time{}
		var own time.Time
		for _, w := range b.wants() {
			v := version{w.Target, w.Hash}
			if a := q.steps.settlingIn(v, died); a != nil && a.outcome == eventsv1.StepOutcome_STEP_OUTCOME_FAILED && !q.toleratedIn(b, a, died) && (end.IsZero() || a.finished.Before(end)) {
				end = a.finished
			}
			for _, a := range q.steps.attempts[v] {
				if a.build == b.id && inLife(a.began(), died) {
					own = Later(own, a.finished)
				}
			}
		}
		end = Later(Later(end, own), b.at)
	case !b.settled(t) && b.aborted != "":
		end = b.endedAt
	}
	if !died.IsZero() && (end.IsZero() || end.After(died)) {
		end = died
	}
	return end
}

// earlierRuns lists the runs of a build's steps, while it lived, that are not those in steps, by target and attempt.
func (q *Queue) earlierRuns(b *build, steps []Step) (out []Step) {
	died := q.diedAt(b)
	for _, s := range steps {
		for _, a := range q.steps.attempts[version{s.Target, s.Hash}] {
			if a.number == s.Attempt || !inLife(a.began(), died) || a.build != b.id && a.finished.Before(b.at) || len(out) >= maxEarlierRuns {
				continue
			}
			run := a.shown()
			run.Commit, run.Lines = s.Commit, nil
			out = append(out, run)
		}
	}
	return out
}

// settleBuilds looks again at the builds of a change that leaves the queue: steps that began later may have been read before.
func (q *Queue) settleBuilds(of ref) {
	for _, b := range q.builds.ofChange[of] {
		b.progress = progress{}
		if b.passed && q.ranLater(b) {
			b.passed = false
			q.builds.index(b)
		}
	}
}

// ranLater reports whether a step of a build passed only in a run that began after the build died.
func (q *Queue) ranLater(b *build) bool {
	died := q.diedAt(b)
	return slices.ContainsFunc(b.wants(), func(w *eventsv1.TargetVersion) bool {
		first := q.steps.passing(version{w.Target, w.Hash})
		return first != nil && !inLife(first.began(), died)
	})
}
