package view

import (
	"cmp"
	"slices"
)

// Attempts lists the finished runs that concern a revision of a change, 0 the present one: of the versions that its builds
// wanted, and that its landing or rejection names. The one that is shown as its fault comes first, then those that did not
// pass, by target; of one target the newest first. Runs that failed before the revision was admitted come last: they were of
// the one before, and no longer count against it. It is false if the change is not kept, or never had that revision.
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
	if present {
		for _, p := range append(slices.Clone(c.end.landed.GetProof()), c.end.reason.GetFailed()...) {
			versions[version{p.GetVersion().GetTarget(), p.GetVersion().GetHash()}] = true
		}
		fault = q.fault(c)
	}
	const (
		atFault = iota
		failed
		passed
		old
	)
	rank := func(a Attempt) int {
		switch {
		case fault != nil && a.Target == fault.Target && a.Hash == fault.Hash && a.Number == fault.Attempt:
			return atFault
		case a.Outcome == StepPassed:
			return passed
		case present && of.revision > 1 && a.FinishedAt.Before(c.admittedAt):
			return old
		}
		return failed
	}
	out := []Attempt{}
	for v := range versions {
		for _, a := range q.steps.attempts[v] {
			out = append(out, Attempt{
				Target: v.target, Hash: v.hash, Number: a.number, Outcome: outcomeName(a.outcome), Step: a.command,
				Log: a.log, Tail: a.tail, Bytes: a.bytes, FinishedAt: a.finished,
			})
		}
	}
	slices.SortFunc(out, func(a, b Attempt) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a.Target, b.Target),
			b.FinishedAt.Compare(a.FinishedAt), cmp.Compare(b.Number, a.Number), cmp.Compare(a.Hash, b.Hash))
	})
	return out, true
}
