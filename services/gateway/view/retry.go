package view

import (
	"cmp"
	"slices"
	"time"

	"landfall.build/engine/lineup"
	"landfall.build/engine/targets"
	eventsv1 "landfall.build/events/v1"
)

// Block is what keeps a pending change blocked (M23a).
type Block struct {
	// Targets are red with the change, and red or unproven on the mainline.
	Targets []string
	// Failed holds the last attempt that ended without passing, of each version of the mainline and of the change that keeps it blocked.
	Failed []*eventsv1.Proof
	// OnMainline is set if Failed has a version of the mainline. Without one the mainline is being verified.
	OnMainline bool
	// Unread is set if the change is blocked by runs that were not read yet: none of its own that failed was, or none of the mainline's
	// though the mainline is red.
	Unread bool
}

// BlockOf returns what keeps a change blocked; Targets is empty if nothing does.
func (q *Queue) BlockOf(id string) Block {
	c := q.changes[id]
	if c == nil || !c.pending() {
		return Block{}
	}
	n := q.node(c.ref())
	own := map[version]bool{}
	for _, class := range n.GetClasses() {
		for _, o := range class.Outcomes {
			if o.State == eventsv1.OutcomeState_OUTCOME_STATE_BLOCKED {
				own[version{o.Version.GetTarget(), o.Version.GetHash()}] = true
			}
		}
	}
	if g := n.GetGuard(); g.GetState() == eventsv1.OutcomeState_OUTCOME_STATE_BLOCKED {
		for _, v := range g.Versions {
			own[version{v.Target, v.Hash}] = true
		}
	}
	var b Block
	for v := range own {
		if p := q.failedAt(v); p != nil {
			b.Failed, b.Targets = append(b.Failed, p), append(b.Targets, v.target)
		}
	}
	b.Targets = sortedUnique(b.Targets)
	for v := range q.onMainline() {
		if p := q.failedAt(v); p != nil && slices.ContainsFunc(b.Targets, func(t string) bool { return isHeldTo(t, v.target) }) {
			b.OnMainline = true
			if !own[v] {
				b.Failed = append(b.Failed, p)
			}
		}
	}
	slices.SortFunc(b.Failed, byVersion)
	red := slices.DeleteFunc(q.redVersionsOfMainline(), func(v version) bool {
		return !slices.ContainsFunc(b.Targets, func(t string) bool { return isHeldTo(t, v.target) })
	})
	b.Unread = len(own) > 0 && len(b.Targets) == 0 || len(red) > 0 && !slices.ContainsFunc(red, q.hasFailed)
	return b
}

// MainlineFailed returns the last attempt at each version of the mainline as it stands that is red there or has no result, by target.
// Without any, unread is set if the mainline is red: by runs that were not read yet.
func (q *Queue) MainlineFailed() (failed []*eventsv1.Proof, unread bool) {
	seen := map[version]bool{}
	add := func(v version) {
		a := q.steps.settling(v)
		if seen[v] || a != nil && a.outcome == eventsv1.StepOutcome_STEP_OUTCOME_PASSED {
			return
		}
		seen[v] = true
		if p := q.failedAt(v); p != nil {
			failed = append(failed, p)
		}
	}
	for _, v := range q.redVersionsOfMainline() {
		add(v)
	}
	for _, class := range q.check.GetClasses() {
		for _, v := range class.Targets {
			add(version{v.Target, v.Hash})
		}
	}
	slices.SortFunc(failed, byVersion)
	return failed, len(failed) == 0 && len(q.redVersionsOfMainline()) > 0
}

func byVersion(x, y *eventsv1.Proof) int {
	return cmp.Or(cmp.Compare(x.Version.Target, y.Version.Target), cmp.Compare(x.Version.Hash, y.Version.Hash))
}

// isHeldTo reports whether red in a target is blocked by a version of another one on the mainline: the same target, or either is
// the whole repository.
func isHeldTo(target, mainline string) bool {
	return target == mainline || target == targets.Repository || mainline == targets.Repository
}

// holding returns those of the mainline's targets by which red in one of the targets is blocked. The whole repository is named only
// if no other is.
func holding(blocked, mainline []string) (out []string) {
	for _, m := range mainline {
		if slices.ContainsFunc(blocked, func(t string) bool { return isHeldTo(t, m) }) {
			out = append(out, m)
		}
	}
	if len(out) > 1 {
		out = slices.DeleteFunc(out, func(m string) bool { return m == targets.Repository })
	}
	return out
}

// onMainline returns the versions that were found on the mainline itself.
func (q *Queue) onMainline() map[version]bool {
	found := map[version]bool{}
	for _, b := range q.builds.ofChange[ref{}] {
		for _, w := range b.wants() {
			found[version{w.Target, w.Hash}] = true
		}
	}
	for _, class := range q.check.GetClasses() {
		for _, v := range class.Targets {
			found[version{v.Target, v.Hash}] = true
		}
	}
	return found
}

// verifiesNothing reports whether no build of the mainline itself is wanted or under way.
func (q *Queue) verifiesNothing() bool {
	return !slices.ContainsFunc(q.builds.ofChange[ref{}], q.active) &&
		!slices.ContainsFunc(q.check.GetClasses(), func(k *eventsv1.Class) bool { return len(k.Outcomes) == 0 })
}

// retriable reports whether somebody may have the failures of a version taken back: those of the mainline as it stands, and those for which
// pending changes are blocked by it.
func (q *Queue) retriable(v version) bool {
	in := func(n *eventsv1.Node, state eventsv1.OutcomeState) bool {
		return slices.ContainsFunc(n.GetClasses(), func(k *eventsv1.Class) bool {
			return slices.ContainsFunc(k.Outcomes, func(o *eventsv1.Outcome) bool {
				return o.State == state && o.Version.GetTarget() == v.target && o.Version.GetHash() == v.hash
			})
		})
	}
	if q.check != nil && (in(q.check, eventsv1.OutcomeState_OUTCOME_STATE_RED) || slices.ContainsFunc(q.check.GetClasses(), func(k *eventsv1.Class) bool {
		return slices.ContainsFunc(k.Targets, func(t *eventsv1.TargetVersion) bool { return t.Target == v.target && t.Hash == v.hash })
	})) {
		return true
	}
	return slices.ContainsFunc(q.lineup.Order(), func(entry *lineup.Change) bool {
		c := q.changes[entry.ID()]
		return c != nil && in(q.node(c.ref()), eventsv1.OutcomeState_OUTCOME_STATE_BLOCKED)
	})
}

func (q *Queue) hasFailed(v version) bool { return q.failedAt(v) != nil }

// failedAt names the last attempt at a version that did not pass and counts against it, nil if there is none. One that was aborted has no
// result.
func (q *Queue) failedAt(v version) (p *eventsv1.Proof) {
	for _, a := range q.steps.attempts[v] {
		switch {
		case a.outcome == eventsv1.StepOutcome_STEP_OUTCOME_PASSED, a.outcome == eventsv1.StepOutcome_STEP_OUTCOME_ABORTED, a.forgotten, a.number <= q.steps.withdrawn.upTo[v], a.number < p.GetAttempt():
			continue
		}
		p = &eventsv1.Proof{Version: &eventsv1.TargetVersion{Target: v.target, Hash: v.hash}, Build: a.build, Attempt: a.number}
	}
	return p
}

// unverifiable reports whether a change is blocked by a version of the mainline that has no result, and nothing verifies it.
func (q *Queue) unverifiable(id string) bool { return q.verifiesNothing() && q.BlockOf(id).OnMainline }

// needsRetry reports whether a change is blocked, and nothing goes on until somebody has it retried: the mainline is not known to be
// red, and nothing verifies whether it is.
func (q *Queue) needsRetry(n *eventsv1.Node) bool {
	targets := blockedTargets(n)
	return len(targets) > 0 && len(holding(targets, q.mainlineRed())) == 0 && q.unverifiable(n.GetChange().GetChange())
}

// needRetry returns the first changes that need a retry.
func (q *Queue) needRetry() (out []string) {
	for _, entry := range q.lineup.Order() {
		if len(out) < maxAnalysedShown && q.needsRetry(q.node(q.changes[entry.ID()].ref())) {
			out = append(out, entry.ID())
		}
	}
	return out
}

func (q *Queue) foldRetried(f *eventsv1.ChangeRetried, now time.Time) {
	var list []string
	for _, p := range f.Failed {
		list = append(list, p.GetVersion().GetTarget())
	}
	list = sortedUnique(list)
	q.steps.withdraw(f.Failed)
	q.flakes.TakeBack(f)
	q.steps.generation++
	if f.Change.GetChange() == "" {
		return
	}
	q.noteOn(f.Change.GetChange(), stamp(f.StampUs, now), "retried", "Retried by "+person(f.Who)+because(f.Why)+": failures of "+names(list)+
		", on the mainline and with this change, no longer count; "+verb(len(list), "it runs", "they run")+" again on both.")
}
