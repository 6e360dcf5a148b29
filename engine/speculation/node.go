package speculation

import (
	"cmp"
	"slices"
	"sort"

	"landfall.build/engine/evidence"
	"landfall.build/engine/graph"
	"landfall.build/engine/lineup"
	"landfall.build/engine/memberset"
	"landfall.build/engine/quota"
	eventsv1 "landfall.build/events/v1"
)

// node returns what the later stages see of a pending change.
func (q *Queue) node(c *lineup.Change) *eventsv1.Node {
	id := c.ID()
	st := q.changes[id]
	n := &eventsv1.Node{
		Change: c.Ref(), Position: c.Position, Benefit: c.Admission.Benefit, AdmittedUs: c.Admission.ReceivedUs,
		LandingCommits: c.Admission.LandingCommits, Epoch: st.epoch,
		Intended: q.Lineup.Intended(id), MissingRequirement: q.Lineup.MissingRequirement(c),
		Urgent: c.Urgent && q.settings.GetPoolWorkers() > 0,
	}
	if q.settings.GetQuotas() != nil {
		n.Author = quota.AuthorOf(c.Admission.Author)
	}
	for _, h := range c.Holds {
		n.Holds = append(n.Holds, &eventsv1.Hold{Name: h.Name, Who: h.Who, Why: h.Why})
	}
	a := q.analyses.pending[id]
	ahead, analyzed := q.ahead(c, a)
	n.Analyzed = analyzed && a != nil
	for _, m := range ahead {
		n.Ahead = append(n.Ahead, m.ahead)
	}
	if !n.Analyzed {
		return n
	}
	n.Guard = q.guard(st)
	n.Paths = q.pathsWithoutTree(st, ahead)
	if !a.known() {
		n.Classes = []*eventsv1.Class{unmergeableClass(a, len(ahead), a.outdated && a.base != q.Lineup.Head)}
		return n
	}
	n.Classes = q.classes(a, ahead)
	return n
}

// nodeKnowing returns the published node of a change with the outcomes made again of the classes that have one of some targets.
func (q *Queue) nodeKnowing(c *lineup.Change, a *analysis, published *eventsv1.Node, some map[string]bool) *eventsv1.Node {
	ahead, _ := q.ahead(c, a)
	var classes []*eventsv1.Class
	for i, k := range published.Classes {
		if !slices.ContainsFunc(k.Targets, func(t *eventsv1.TargetVersion) bool { return some[t.Target] }) {
			continue
		}
		if classes == nil {
			classes = slices.Clone(published.Classes)
		}
		classes[i] = &eventsv1.Class{Targets: k.Targets, Members: k.Members, Through: k.Through, Outcomes: q.outcomes(a, k, ahead)}
	}
	if classes == nil {
		return published
	}
	n := graph.Copy(published)
	n.Classes = classes
	return n
}

// member is a change of A(c).
type member struct {
	ahead    *eventsv1.Ahead
	analysis *analysis
	position int64
}

// ahead returns A(c) in queue order: the pending changes ahead that conflict with c, and those that it requires. The list is
// complete only if all changes ahead are analysed, which analyzed reports.
func (q *Queue) ahead(c *lineup.Change, a *analysis) (members []member, analyzed bool) {
	analyzed = q.analyzedBefore(c.Position)
	add := func(k *lineup.Change, r *relation) {
		m := &eventsv1.Ahead{Change: k.Ref(), Required: slices.Contains(c.Admission.Requires, k.ID())}
		if r != nil {
			m.Conflicts, m.MergeConflict, m.Targets = true, r.merge, r.shared
		}
		members = append(members, member{m, q.analyses.pending[k.ID()], k.Position})
	}
	if a != nil {
		for id, r := range q.conflicts.edges[c.ID()] {
			if k := q.Lineup.Pending(id); k != nil && k.Position < c.Position {
				add(k, r)
			}
		}
	}
	for _, id := range c.Admission.Requires {
		if k := q.Lineup.Pending(id); k != nil && (a == nil || q.conflicts.edges[c.ID()][id] == nil || k.Position > c.Position) {
			// A required change that stands behind (a cycle of revisions) counts too: no path without it exists.
			add(k, nil)
		}
	}
	slices.SortFunc(members, func(a, b member) int { return cmp.Compare(a.position, b.position) })
	return members, analyzed
}

// analyzedBefore reports whether every pending change ahead of a position is analysed.
func (q *Queue) analyzedBefore(position int64) bool {
	if len(q.analyses.pending) == len(q.Lineup.Order()) {
		return true
	}
	for _, c := range q.Lineup.Order() {
		if c.Position >= position {
			return true
		}
		if q.analyses.pending[c.ID()] == nil {
			return false
		}
	}
	return true
}

// unmergeableClass returns the one class of a change that does not merge, or is invalid, on the mainline. It depends on all
// members, so that nothing is built on any path: the targets there are not known before a member has landed. (c, {}) is red,
// unless the analysis is outdated: then only the next one can tell.
func unmergeableClass(a *analysis, ahead int, outdated bool) *eventsv1.Class {
	k := &eventsv1.Class{}
	for i := range ahead {
		k.Members = append(k.Members, uint32(i))
	}
	if outdated {
		return k
	}
	reason := eventsv1.ReasonClass_REASON_CLASS_MERGE_CONFLICT
	if a.outcome == eventsv1.AnalysisOutcome_ANALYSIS_OUTCOME_INVALID {
		reason = eventsv1.ReasonClass_REASON_CLASS_INVALID
	}
	k.Outcomes = []*eventsv1.Outcome{{State: eventsv1.OutcomeState_OUTCOME_STATE_RED, Message: a.message, Class: reason}}
	return k
}

// pathsWithoutTree returns the paths whose tree could not be made, as of the present mainline: each conflicting change that
// landed since was assumed, and nothing assumed was rejected.
func (q *Queue) pathsWithoutTree(st *changeState, ahead []member) []*eventsv1.Outcome {
	index := map[revision]int{}
	for i, m := range ahead {
		index[revisionOf(m.ahead.Change)] = i
	}
	type failures struct {
		set       memberset.Set
		worst     eventsv1.PreparationOutcome
		fruitless int
		message   string
	}
	byPath := map[string]*failures{}
	var keys []string
	for _, p := range st.failedTrees {
		set, ok := currentPath(p, st.landings, index, len(ahead))
		if !ok {
			continue
		}
		k := byPath[set.Key()]
		if k == nil {
			k = &failures{set: set}
			byPath[set.Key()] = k
			keys = append(keys, set.Key())
		}
		if p.outcome == eventsv1.PreparationOutcome_PREPARATION_OUTCOME_INFRASTRUCTURE {
			k.fruitless++
		} else if k.worst == 0 {
			k.worst = p.outcome
		}
		k.message = p.message
	}
	sort.Strings(keys)
	var out []*eventsv1.Outcome
	for _, key := range keys {
		k := byPath[key]
		o := &eventsv1.Outcome{Members: k.set.Bytes(), Message: k.message, State: eventsv1.OutcomeState_OUTCOME_STATE_RED}
		switch {
		case k.worst == eventsv1.PreparationOutcome_PREPARATION_OUTCOME_UNMERGEABLE:
			o.Class = eventsv1.ReasonClass_REASON_CLASS_MERGE_CONFLICT
		case k.worst == eventsv1.PreparationOutcome_PREPARATION_OUTCOME_INVALID:
			o.Class = eventsv1.ReasonClass_REASON_CLASS_INVALID
		case k.fruitless > int(q.settings.GetSteps().GetInfrastructureRetries()):
			o.Class, o.State = eventsv1.ReasonClass_REASON_CLASS_INFRASTRUCTURE, eventsv1.OutcomeState_OUTCOME_STATE_EXHAUSTED
		default:
			continue
		}
		out = append(out, o)
	}
	return out
}

// currentPath returns the path that an old tree stands for now; ok is false if it stands for none.
func currentPath(tree failedTree, landings []landing, index map[revision]int, n int) (set memberset.Set, ok bool) {
	set = memberset.New(n)
	isLanded := map[revision]bool{}
	for _, l := range landings {
		if l.sequence <= tree.sequence {
			continue
		}
		if !slices.Contains(tree.assumed, l.revision) { // as a direct push never is
			return set, false
		}
		isLanded[l.revision] = true
	}
	for _, k := range tree.assumed {
		if i, pending := index[k]; pending {
			set.Add(i)
		} else if !isLanded[k] {
			return set, false
		}
	}
	return set, true
}

// guard returns what the land guard asked for on the present head, with what is known of it; nil if it asked for nothing.
func (q *Queue) guard(st *changeState) *eventsv1.Guard {
	r := st.guard
	if r == nil || r.Base != q.Lineup.Head {
		return nil
	}
	g := &eventsv1.Guard{Base: r.Base, Versions: r.Versions}
	if r.Class != 0 {
		g.State = eventsv1.OutcomeState_OUTCOME_STATE_RED
		g.Reason = &eventsv1.Reason{Class: r.Class, Message: r.Message}
		return g
	}
	if lacksTree(r) {
		// Nothing is known of (c, {}) until the tree is tried again, at the next tick.
		if !q.worthMaking(st) {
			g.State = eventsv1.OutcomeState_OUTCOME_STATE_EXHAUSTED
			g.Reason = &eventsv1.Reason{Class: eventsv1.ReasonClass_REASON_CLASS_INFRASTRUCTURE, Message: r.Message}
		}
		return g
	}
	green := true
	for _, v := range r.Versions {
		ev := evidence.Version{Target: v.Target, Hash: v.Hash}
		s := q.known.ledger.State(ev, q.settings.GetSteps())
		if s == evidence.Green {
			continue
		}
		green = false
		switch {
		case s == evidence.Unknown:
			g.Missing = append(g.Missing, v)
		case s == evidence.Red && q.isBlocked(v.Target):
			g.State = max(g.State, eventsv1.OutcomeState_OUTCOME_STATE_BLOCKED)
		case s == evidence.Red && g.State != eventsv1.OutcomeState_OUTCOME_STATE_RED:
			o := outcomeOf(eventsv1.OutcomeState_OUTCOME_STATE_RED, v, v.Hash, q.known.ledger.Result(ev))
			g.State, g.Reason = o.State, &eventsv1.Reason{Class: o.Class, Message: o.Message, Failed: []*eventsv1.Proof{{Version: o.Version}}}
		case s == evidence.Exhausted && g.State == 0:
			o := outcomeOf(eventsv1.OutcomeState_OUTCOME_STATE_EXHAUSTED, v, v.Hash, q.known.ledger.Result(ev))
			g.State, g.Reason = o.State, &eventsv1.Reason{Class: o.Class, Message: o.Message, Failed: []*eventsv1.Proof{{Version: o.Version}}}
		}
	}
	if green {
		g.State = eventsv1.OutcomeState_OUTCOME_STATE_GREEN
	}
	return g
}

// check returns the pseudo-change that asks for versions of the mainline to be verified, which came past the queue or were there
// before it; nil if there never was anything.
func (q *Queue) check() *eventsv1.Node {
	n := &eventsv1.Node{Change: &eventsv1.ChangeRef{}, Mainline: true, Analyzed: q.pushes.Known()}
	policy := q.settings.GetSteps()
	if unproven := q.pushes.Unproven(q.known.ledger, policy); len(unproven) > 0 && q.checkWorthTrying() {
		n.Classes = append(n.Classes, &eventsv1.Class{Targets: unproven})
	}
	for _, v := range q.pushes.Red(q.known.ledger, policy) {
		r := q.known.ledger.Result(evidence.Version{Target: v.Target, Hash: v.Hash})
		n.Classes = append(n.Classes, &eventsv1.Class{
			Targets:  []*eventsv1.TargetVersion{v},
			Outcomes: []*eventsv1.Outcome{outcomeOf(eventsv1.OutcomeState_OUTCOME_STATE_RED, v, v.Hash, r)},
		})
	}
	if len(n.Classes) == 0 && q.published.check == nil {
		return nil
	}
	for _, k := range n.Classes {
		for _, v := range k.Targets {
			if q.pushes.Inherited(v.Target) {
				n.Inherited = append(n.Inherited, v.Target)
			}
		}
	}
	return n
}
