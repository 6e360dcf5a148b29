package policy

import (
	"landfall.build/engine/graph"
	"landfall.build/engine/memberset"
	eventsv1 "landfall.build/events/v1"
)

// Zuul's defaults for the active window of a dependent pipeline: it begins with 20 changes, grows by one
// with each that lands, halves with each that fails, and never falls below 3.
const (
	firstWindow    = 20
	smallestWindow = 3
	windowShrink   = 2
)

// optimistic is Zuul's: each change is built on the assumption that everything ahead of it lands, except what has failed
// already. A failure restarts everything behind it. A change is in the window if fewer than its size
// are ahead of it; those that do not meet it do not count, as in Zuul changes of other queues do not.
type optimistic struct {
	direct
	window, workers int
}

func newOptimistic(s Settings) Policy {
	o := &optimistic{window: firstWindow, workers: s.Workers}
	o.direct = inOrder(o.paths)
	return o
}

func (o *optimistic) Plan(p *eventsv1.Profile) *eventsv1.Priority {
	for _, g := range p.Delta.GetGone() {
		switch g.How {
		case eventsv1.GoneHow_GONE_HOW_LANDED:
			o.window++
		case eventsv1.GoneHow_GONE_HOW_CANCELLED: // nothing failed
		default:
			o.window = max(smallestWindow, o.window/windowShrink)
		}
	}
	return o.direct.Plan(p)
}

func (o *optimistic) paths(g *graph.Graph) (best []*eventsv1.RankedBuild) {
	for _, n := range g.Order() {
		if !n.Analyzed || len(n.Ahead) >= o.window {
			continue
		}
		b := &eventsv1.RankedBuild{Change: n.Change}
		set := memberset.New(len(n.Ahead))
		for j, a := range n.Ahead {
			if land, _ := g.May(n, set, j); land {
				set.Add(j)
				b.Assumed = append(b.Assumed, a.Change)
			}
		}
		if n.Path(set) == graph.Unknown {
			best = append(best, b)
		}
		if len(best) == o.workers {
			break
		}
	}
	return best
}
