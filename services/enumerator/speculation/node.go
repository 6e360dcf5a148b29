package speculation

import (
	"cmp"
	"slices"
	"sort"

	eventsv1 "landfall.build/events/v1"
	"landfall.build/services/evidence"
	"landfall.build/services/lineup"
	"landfall.build/services/memberset"
)

// node makes what the later stages see of a pending change, or (id "") of what came past the queue.
func (q *Queue) node(id string) *eventsv1.Node {
	if id == "" {
		return q.mainlineNode()
	}
	c := q.Lineup.Pending(id)
	if c == nil {
		return nil
	}
	st := q.state[id]
	n := &eventsv1.Node{
		Change: c.Ref(), Position: c.Position, Benefit: c.Admission.Benefit, AdmittedUs: c.Admission.ReceivedUs,
		LandingCommits: c.Admission.LandingCommits, Epoch: st.epoch,
		Intended: q.Lineup.Intended(id), MissingRequirement: q.Lineup.MissingRequirement(c),
	}
	for _, h := range c.Holds {
		n.Holds = append(n.Holds, &eventsv1.Hold{Name: h.Name, Who: h.Who, Why: h.Why})
	}
	a := q.analyses[id]
	ahead, analyzed := q.ahead(c, a)
	n.Analyzed = analyzed && a != nil
	for _, m := range ahead {
		n.Ahead = append(n.Ahead, m.ahead)
	}
	if !n.Analyzed {
		return n
	}
	n.Guard = q.guard(st)
	n.Paths = q.paths(st, ahead)
	if !a.known() {
		n.Classes = []*eventsv1.Class{unmergeableClass(a, len(ahead), a.overtaken && a.base != q.Lineup.Head)}
		return n
	}
	n.Classes = q.classes(a, ahead)
	return n
}

// member is a member of A(c).
type member struct {
	ahead    *eventsv1.Ahead
	analysis *analysis
	position int64
}

// ahead is A(c) in queue order: pending changes ahead that conflict with c, or that it requires. It is
// complete only if all changes ahead are analysed.
func (q *Queue) ahead(c *lineup.Change, a *analysis) (members []member, analyzed bool) {
	analyzed = q.analyzedBefore(c.Position)
	add := func(k *lineup.Change, r *relation) {
		m := &eventsv1.Ahead{Change: k.Ref(), Required: slices.Contains(c.Admission.Requires, k.ID())}
		if r != nil {
			m.Conflicts, m.MergeConflict, m.Targets = true, r.merge, r.shared
		}
		members = append(members, member{m, q.analyses[k.ID()], k.Position})
	}
	if a != nil {
		for id, r := range q.edges[c.ID()] {
			if k := q.Lineup.Pending(id); k != nil && k.Position < c.Position {
				add(k, r)
			}
		}
	}
	for _, id := range c.Admission.Requires {
		if k := q.Lineup.Pending(id); k != nil && (a == nil || q.edges[c.ID()][id] == nil || k.Position > c.Position) {
			// One that was required and came to stand behind (a cycle of revisions) still counts:
			// no path without it exists.
			add(k, nil)
		}
	}
	slices.SortFunc(members, func(a, b member) int { return cmp.Compare(a.position, b.position) })
	return members, analyzed
}

// analyzedBefore says whether every pending change ahead of a position is analysed.
func (q *Queue) analyzedBefore(position int64) bool {
	if len(q.analyses) == len(q.Lineup.Order()) {
		return true
	}
	for _, c := range q.Lineup.Order() {
		if c.Position >= position {
			return true
		}
		if q.analyses[c.ID()] == nil {
			return false
		}
	}
	return true
}

// unmergeableClass says that (c, {}) is red, and that nothing can be built on any path: what its targets
// would be there is not known before one of those ahead has landed. If one has, only the next analysis says
// whether it is red still.
func unmergeableClass(a *analysis, ahead int, overtaken bool) *eventsv1.Class {
	k := &eventsv1.Class{}
	for i := range ahead {
		k.Members = append(k.Members, uint32(i))
	}
	if overtaken {
		return k
	}
	reason := eventsv1.ReasonClass_REASON_CLASS_MERGE_CONFLICT
	if a.outcome == eventsv1.AnalysisOutcome_ANALYSIS_OUTCOME_INVALID {
		reason = eventsv1.ReasonClass_REASON_CLASS_INVALID
	}
	k.Outcomes = []*eventsv1.Outcome{{State: eventsv1.OutcomeState_OUTCOME_STATE_RED, Message: a.message, Class: reason}}
	return k
}

// paths is the evidence about whole paths that holds on the present mainline: each conflicting change
// that landed since was assumed, and nothing assumed was rejected.
func (q *Queue) paths(st *changeState, ahead []member) []*eventsv1.Outcome {
	index := map[refKey]int{}
	for i, m := range ahead {
		index[keyOf(m.ahead.Change)] = i
	}
	type known struct {
		set       memberset.Set
		worst     eventsv1.PreparationOutcome
		fruitless int
		message   string
	}
	byPath := map[string]*known{}
	var keys []string
	for _, p := range st.paths {
		set, ok := currentPath(p, st.landedNeighbours, index, len(ahead))
		if !ok {
			continue
		}
		k := byPath[set.Key()]
		if k == nil {
			k = &known{set: set}
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

// currentPath is the path that an old tree stands for now; ok is false if it stands for none.
func currentPath(p pathObservation, landed []landedNeighbour, index map[refKey]int, n int) (memberset.Set, bool) {
	set := memberset.New(n)
	isLanded := map[refKey]bool{}
	for _, l := range landed {
		if l.sequence <= p.sequence {
			continue
		}
		if l.ref == (refKey{}) || !slices.Contains(p.assumed, l.ref) {
			return set, false
		}
		isLanded[l.ref] = true
	}
	for _, k := range p.assumed {
		if i, pending := index[k]; pending {
			set.Add(i)
		} else if !isLanded[k] {
			return set, false
		}
	}
	return set, true
}

// guard is what the land guard wants to know, with what is known by now.
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
	green := true
	for _, v := range r.Versions {
		ev := evidence.Version{Target: v.Target, Hash: v.Hash}
		s := q.ledger.State(ev, q.settings.GetSteps())
		if s == evidence.Green {
			continue
		}
		green = false
		switch {
		case s == evidence.Unknown:
			g.Missing = append(g.Missing, v)
		case s == evidence.Red && q.mainlineBlocks(v.Target):
			g.State = max(g.State, eventsv1.OutcomeState_OUTCOME_STATE_BLOCKED)
		case s == evidence.Red && g.State != eventsv1.OutcomeState_OUTCOME_STATE_RED:
			o := outcomeOf(eventsv1.OutcomeState_OUTCOME_STATE_RED, v, v.Hash, q.ledger.Result(ev))
			g.State, g.Reason = o.State, &eventsv1.Reason{Class: o.Class, Message: o.Message, Failed: []*eventsv1.Proof{{Version: o.Version}}}
		case s == evidence.Exhausted && g.State == 0:
			o := outcomeOf(eventsv1.OutcomeState_OUTCOME_STATE_EXHAUSTED, v, v.Hash, q.ledger.Result(ev))
			g.State, g.Reason = o.State, &eventsv1.Reason{Class: o.Class, Message: o.Message, Failed: []*eventsv1.Proof{{Version: o.Version}}}
		}
	}
	if green {
		g.State = eventsv1.OutcomeState_OUTCOME_STATE_GREEN
	}
	return g
}

// mainlineNode is the pseudo-change that asks for what came past the queue to be verified.
func (q *Queue) mainlineNode() *eventsv1.Node {
	n := &eventsv1.Node{Change: &eventsv1.ChangeRef{}, Mainline: true, Analyzed: q.foreign.Known()}
	policy := q.settings.GetSteps()
	if unproven := q.foreign.Unproven(q.ledger, policy); len(unproven) > 0 && q.verifiable() {
		n.Classes = append(n.Classes, &eventsv1.Class{Targets: unproven})
	}
	for _, v := range q.foreign.Red(q.ledger, policy) {
		r := q.ledger.Result(evidence.Version{Target: v.Target, Hash: v.Hash})
		n.Classes = append(n.Classes, &eventsv1.Class{
			Targets:  []*eventsv1.TargetVersion{v},
			Outcomes: []*eventsv1.Outcome{outcomeOf(eventsv1.OutcomeState_OUTCOME_STATE_RED, v, v.Hash, r)},
		})
	}
	if len(n.Classes) == 0 && q.published[""] == nil {
		return nil
	}
	return n
}
