package decision

import (
	"slices"

	"landfall.build/engine/graph"
	eventsv1 "landfall.build/events/v1"
)

// inPool returns what the workers of a pool take a build to be worth (M15a).
func (s *Selection) inPool(b *eventsv1.RankedBuild) float64 {
	if s.graph.Settings.GetPoolWorkers() == 0 {
		return b.Value
	}
	n := s.graph.NodeAt(b.Change)
	if n == nil {
		return b.Value
	}
	id := n.Change.Change
	factor, known := s.inPoolFactor[id]
	if !known {
		factor = s.graph.PoolFactor(n)
		s.inPoolFactor[id] = factor
	}
	return graph.PoolWorth(n, b.Value, b.Needed) * factor
}

// forgetFactors forgets what rests on who waits for whom, if a delta that is not folded yet changes that.
func (s *Selection) forgetFactors(d *eventsv1.GraphDelta) {
	changes := len(d.GetGone()) > 0 || slices.ContainsFunc(d.GetNodes(), func(n *eventsv1.Node) bool {
		old := s.graph.Node(n.GetChange().GetChange())
		return old == nil || !slices.EqualFunc(old.Ahead, n.Ahead, func(a, b *eventsv1.Ahead) bool { return graph.SameRef(a.Change, b.Change) })
	})
	if changes {
		clear(s.inPoolFactor)
	}
}
