package policy

import (
	eventsv1 "landfall.build/events/v1"
	"landfall.build/services/graph"
	"landfall.build/services/memberset"
)

func newOracle(s Settings) Policy {
	return &direct{graph.New(), func(g *graph.Graph) (best []*eventsv1.RankedBuild) {
		for _, n := range g.Order() {
			if !n.Analyzed || s.cancelled(n.Change.Change) {
				continue
			}
			b := &eventsv1.RankedBuild{Change: n.Change}
			set := memberset.New(len(n.Ahead))
			for i, a := range n.Ahead {
				if k := s.Lookup(a.Change.Change); k != nil && s.Truth.Lands(k.Number) {
					set.Add(i)
					b.Assumed = append(b.Assumed, a.Change)
				}
			}
			if n.Path(set) == graph.Unknown {
				best = append(best, b)
			}
			if len(best) == s.Workers {
				break
			}
		}
		return best
	}}
}

// cancelled says that the oracle knows that a change will be cancelled: nothing of it need be built.
func (s Settings) cancelled(id string) bool {
	k := s.Lookup(id)
	return k != nil && k.Cancelled > 0
}

func newSingleQueue(s Settings) Policy {
	return &direct{graph.New(), func(g *graph.Graph) (best []*eventsv1.RankedBuild) {
		for _, n := range g.Order() {
			if n.Analyzed && len(n.Ahead) == 0 && n.Path(memberset.New(0)) == graph.Unknown && len(best) < s.Workers {
				best = append(best, &eventsv1.RankedBuild{Change: n.Change})
			}
		}
		return best
	}}
}
