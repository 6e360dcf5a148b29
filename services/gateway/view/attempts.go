package view

import (
	"cmp"
	"slices"
	"time"

	eventsv1 "landfall.build/events/v1"
)

// Attempts lists the runs that concern a revision of a change, 0 the present one: of the versions that its builds
// wanted, and that its landing or rejection names. The one that is shown as its fault comes first, of a change that landed those that
// prove it, then those that did not pass, by target; of one target the newest first. Runs that failed before the revision was admitted come last: they were of
// the one before, and no longer count against it. So do those that were ended, or could not run, of a version that has passed. Runs that
// have not finished follow, by target. It is false if the change is not kept, or never had that revision.
func (q *Queue) Attempts(id string, revision uint64) ([]Attempt, bool) {
	c := q.changes[id]
	if c == nil || revision > c.admission.Revision {
		return nil, false
	}
	of := c.ref()
	present := revision == 0 || revision == of.revision
	if !present {
		of.revision = revision
	}
	versions := map[version]bool{}
	for _, b := range q.builds.ofChange[of] {
		for _, w := range b.prepared.GetVersions() {
			versions[version{w.Target, w.Hash}] = true
		}
	}
	var fault *Fault
	proves := map[version]uint32{}
	if present {
		for _, p := range c.end.landed.GetProof() {
			proves[version{p.GetVersion().GetTarget(), p.GetVersion().GetHash()}] = p.Attempt
		}
		for _, p := range append(slices.Clone(c.end.landed.GetProof()), c.end.reason.GetFailed()...) {
			versions[version{p.GetVersion().GetTarget(), p.GetVersion().GetHash()}] = true
		}
		fault = q.fault(c)
	}
	const (
		first = iota
		failed
		passed
		old
	)
	hasPassed := map[version]bool{}
	rank := func(a Attempt) int {
		switch {
		case fault != nil && a.Target == fault.Target && a.Hash == fault.Hash && a.Number == fault.Attempt:
			return first
		case a.Number > 0 && proves[version{a.Target, a.Hash}] == a.Number:
			return first
		case a.Outcome == StepPassed:
			return passed
		case (a.Outcome == StepAborted || a.Outcome == StepCouldNotRun) && hasPassed[version{a.Target, a.Hash}]:
			return old
		case present && of.revision > 1 && a.FinishedAt.Before(c.admittedAt):
			return old
		}
		return failed
	}
	out := q.attemptsAt(versions)
	for i, a := range out {
		if a.Outcome == StepPassed {
			hasPassed[version{a.Target, a.Hash}] = true
		}
		if b := q.builds.byID[a.build]; b != nil && rank(a) != first {
			out[i].With = slices.DeleteFunc(append(b.assumed(), b.of.change), func(k string) bool { return k == id || k == "" })
		}
	}
	slices.SortFunc(out, func(a, b Attempt) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a.Target, b.Target),
			b.FinishedAt.Compare(a.FinishedAt), cmp.Compare(b.Number, a.Number), cmp.Compare(a.Hash, b.Hash))
	})
	return append(out, q.runningAt(versions)...), true
}

// MainlineAttempts lists the runs of steps of the mainline itself: those that made a target red there first, the last one
// before those that it repeats, then others by target, then those that have not finished.
func (q *Queue) MainlineAttempts() []Attempt {
	last := map[version]uint32{}
	for _, v := range q.redVersionsOfMainline() {
		if a := q.steps.settling(v); a != nil {
			last[v] = a.number
		}
	}
	rank := func(a Attempt) int {
		switch number, is := last[version{a.Target, a.Hash}]; {
		case is && number == a.Number:
			return 0
		case is:
			return 1
		}
		return 2
	}
	versions := q.onMainline()
	out := q.attemptsAt(versions)
	slices.SortFunc(out, func(a, b Attempt) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a.Target, b.Target),
			b.FinishedAt.Compare(a.FinishedAt), cmp.Compare(a.Number, b.Number), cmp.Compare(a.Hash, b.Hash))
	})
	return append(out, q.runningAt(versions)...)
}

// attemptsAt lists the finished runs at some versions, in no order.
func (q *Queue) attemptsAt(versions map[version]bool) []Attempt {
	out := []Attempt{}
	for v := range versions {
		for _, a := range q.steps.attempts[v] {
			out = append(out, a.run())
		}
	}
	return out
}

func (a *attempt) run() Attempt {
	return Attempt{
		Target: a.version.target, Hash: a.version.hash, Number: a.number, Outcome: outcomeName(a.outcome), Step: a.command,
		Log: a.log, Tail: a.tail, Bytes: a.bytes, FinishedAt: a.finished, build: a.build,
	}
}

// runningAt lists the runs at some versions that have not finished, by target.
func (q *Queue) runningAt(versions map[version]bool) (out []Attempt) {
	for v := range versions {
		if l := q.steps.leases[v]; l != nil {
			out = append(out, runOf(l))
		}
	}
	slices.SortFunc(out, func(a, b Attempt) int {
		return cmp.Or(cmp.Compare(a.Target, b.Target), cmp.Compare(a.Hash, b.Hash))
	})
	return out
}

func runOf(l *eventsv1.StepLeased) Attempt {
	return Attempt{Target: l.Target, Hash: l.Hash, Number: l.Attempt, Outcome: StepRunning, Lease: l.Lease, Until: stamp(l.UntilUs, time.Time{})}
}

// Run returns a run of a step; false if it is not known.
func (q *Queue) Run(target, hash string, number uint32) (Attempt, bool) {
	v := version{target, hash}
	if a := q.steps.find(v, number); a != nil {
		return a.run(), true
	}
	if l := q.steps.leases[v]; l != nil && l.Attempt == number {
		return runOf(l), true
	}
	return Attempt{}, false
}
