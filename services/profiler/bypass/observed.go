package bypass

import (
	"slices"

	eventsv1 "landfall.build/events/v1"
	"landfall.build/services/graph"
	"landfall.build/services/memberset"
)

// appendObserved says of which pairs it came to light whether they break: red on top of the other one alone, where the
// change by itself is green, or green in all that they share.
func (s *story) appendObserved(out []*eventsv1.PairObserved, n *graph.Node) []*eventsv1.PairObserved {
	if len(n.Ahead) == 0 || !slices.ContainsFunc(n.Classes, func(k graph.Class) bool { return len(k.Class.Outcomes) > 0 }) {
		return out
	}
	shared, green, broken := map[int]int{}, map[int]int{}, map[int]bool{}
	for _, k := range n.Classes {
		for _, m := range k.Members {
			shared[int(m)]++
		}
		alone := k.Outcome(memberset.New(len(k.Members)))
		held := map[int]bool{}
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
					held[m] = true
				}
			case o.State == eventsv1.OutcomeState_OUTCOME_STATE_RED && len(members) == 1 && alone.GetState() == eventsv1.OutcomeState_OUTCOME_STATE_GREEN:
				broken[members[0]] = true
			}
		}
		for m := range held {
			green[m]++
		}
	}
	for i, a := range n.Ahead {
		q := s.pairs[a.Change.Change]
		if q == nil || keyOf(q.Ahead) != keyOf(a.Change) || q.Features == nil || a.MergeConflict || s.observed[keyOf(a.Change)] {
			continue
		}
		if broken[i] || shared[i] > 0 && green[i] == shared[i] {
			out = append(out, &eventsv1.PairObserved{Behind: n.Change, Ahead: a.Change, Conflict: broken[i]})
		}
	}
	return out
}
