package decision

import (
	"math"
	"slices"

	"landfall.build/engine/graph"
	eventsv1 "landfall.build/events/v1"
)

// behindShare is what a change that waits for another one alone adds to the worth of that one.
const behindShare = 0.1

// inPool returns what the workers of a pool take a build to be worth (M15a): what it is worth by the ranking, or half of what it is
// needed for if that is for a bypass; less if its change waits for many, and more if many wait for it.
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
		factor = s.factorOf(n)
		s.inPoolFactor[id] = factor
	}
	value := b.Value
	if half := b.Needed * graph.Benefit(n.Node) / 2; half > value {
		value = half
	}
	return value * factor
}

// factorOf adds in whole numbers: those behind come in no order, and sums of fractions depend on it.
func (s *Selection) factorOf(n *graph.Node) float64 {
	const one = 1 << 32
	var behind uint64
	s.graph.EachBehind(n.Change.Change, func(f *graph.Node) { behind += one / uint64(len(f.Ahead)) })
	ahead := float64(1 + len(n.Ahead))
	return (1 + behindShare*float64(behind)/one) / (ahead * math.Sqrt(ahead))
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
