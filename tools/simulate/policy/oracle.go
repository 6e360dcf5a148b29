package policy

import (
	"landfall.build/engine/graph"
	"landfall.build/engine/memberset"
	eventsv1 "landfall.build/events/v1"
)

// oracle keeps the build of a change until the change's node changes: the build depends on its members, and on whether
// they land, alone.
type oracle struct {
	direct
	Settings
	made map[string]made
}

// made is the build of a change as it was, nil if none is to run.
type made struct {
	of    *graph.Node
	build *eventsv1.RankedBuild
}

func newOracle(s Settings) Policy {
	o := &oracle{Settings: s, made: map[string]made{}}
	o.direct = inOrder(o.builds)
	return o
}

func (o *oracle) Plan(p *eventsv1.Profile) *eventsv1.Priority {
	for _, g := range p.Delta.GetGone() {
		delete(o.made, g.Change.Change)
	}
	return o.direct.Plan(p)
}

func (o *oracle) builds(g *graph.Graph) (best []*eventsv1.RankedBuild) {
	for _, n := range g.Order() {
		m := o.made[n.Change.Change]
		if m.of != n {
			m = made{n, o.build(n)}
			o.made[n.Change.Change] = m
		}
		if m.build != nil {
			best = append(best, m.build)
		}
		if len(best) == o.Workers {
			break
		}
	}
	return best
}

// build is the one of the path that comes about.
func (s Settings) build(n *graph.Node) *eventsv1.RankedBuild {
	if !n.Analyzed || s.cancelled(n.Change.Change) {
		return nil
	}
	b := &eventsv1.RankedBuild{Change: n.Change}
	set := memberset.New(len(n.Ahead))
	for i, a := range n.Ahead {
		if k := s.Lookup(a.Change.Change); k != nil && s.Truth.Lands(k.Number) {
			set.Add(i)
			b.Assumed = append(b.Assumed, a.Change)
		}
	}
	if n.Path(set) != graph.Unknown {
		return nil
	}
	return b
}

// cancelled reports whether a change will be cancelled: the oracle builds nothing of it.
func (s Settings) cancelled(id string) bool {
	k := s.Lookup(id)
	return k != nil && k.Cancelled > 0
}

func newSingleQueue(s Settings) Policy {
	d := inOrder(func(g *graph.Graph) (best []*eventsv1.RankedBuild) {
		for _, n := range g.Order() {
			if n.Analyzed && len(n.Ahead) == 0 && n.Path(memberset.New(0)) == graph.Unknown && len(best) < s.Workers {
				best = append(best, &eventsv1.RankedBuild{Change: n.Change})
			}
		}
		return best
	})
	return &d
}
