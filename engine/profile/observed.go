package profile

import (
	"slices"

	"landfall.build/engine/graph"
	"landfall.build/engine/memberset"
	eventsv1 "landfall.build/events/v1"
)

// appendObserved adds the pairs of a change that were not published and of which it is now known whether they break each other. They
// do if a target is red on top of the other one alone and green without it. They do not if each class that both affect is green on
// some path with the other one.
func (p *published) appendObserved(out []*eventsv1.PairObserved, n *graph.Node) []*eventsv1.PairObserved {
	if len(n.Ahead) == 0 || !slices.ContainsFunc(n.Classes, func(k graph.Class) bool { return len(k.Class.Outcomes) > 0 }) {
		return out
	}
	// By index in A(c): the classes that the member is in, those of them that are green with it, and whether one is red with it alone.
	shared, green, broken := map[int]int{}, map[int]int{}, map[int]bool{}
	for _, k := range n.Classes {
		for _, m := range k.Members {
			shared[int(m)]++
		}
		alone := k.Outcome(memberset.New(len(k.Members)))
		greenWith := map[int]bool{}
		for _, o := range k.Outcomes {
			set := memberset.FromBytes(len(k.Members), o.Members)
			var members []int
			for i, m := range k.Members {
				if set.Has(i) {
					members = append(members, int(m))
				}
			}
			switch {
			case o.State == eventsv1.OutcomeState_OUTCOME_STATE_GREEN:
				for _, m := range members {
					greenWith[m] = true
				}
			case o.State == eventsv1.OutcomeState_OUTCOME_STATE_RED && len(members) == 1 && alone.GetState() == eventsv1.OutcomeState_OUTCOME_STATE_GREEN:
				broken[members[0]] = true
			}
		}
		for m := range greenWith {
			green[m]++
		}
	}
	for i, a := range n.Ahead {
		q := p.pairs[a.Change.Change]
		if q == nil || keyOf(q.Ahead) != keyOf(a.Change) || q.Features == nil || a.MergeConflict || p.observed[keyOf(a.Change)] {
			continue
		}
		if broken[i] || shared[i] > 0 && green[i] == shared[i] {
			out = append(out, &eventsv1.PairObserved{Behind: n.Change, Ahead: a.Change, Conflict: broken[i]})
		}
	}
	return out
}
