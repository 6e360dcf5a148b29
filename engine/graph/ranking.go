package graph

import (
	"cmp"
	"fmt"
	"math"

	eventsv1 "landfall.build/events/v1"
)

// EditedRanking returns the ranking that a priority makes of the one before it, which is not changed. Builds that stay are the
// same objects. An edit that does not fit is an error: a record before it is missing.
func EditedRanking(before *eventsv1.Ranking, p *eventsv1.Priority) (*eventsv1.Ranking, error) {
	if p.GetRanking() != nil {
		return p.Ranking, nil
	}
	e := p.GetEdit()
	if e == nil {
		return before, nil
	}
	old := before.GetBest()
	out := &eventsv1.Ranking{Exact: e.Exact, Best: make([]*eventsv1.RankedBuild, 0, len(old)+8)}
	at := 0
	for _, s := range e.Splices {
		from, to := int(s.At), int(s.At)+int(s.Removed)
		if from < at || to > len(old) {
			return before, fmt.Errorf("the edit of the ranking replaces builds %d to %d of %d", from, to, len(old))
		}
		out.Best = append(append(out.Best, old[at:from]...), s.Inserted...)
		at = to
	}
	out.Best = append(out.Best, old[at:]...)
	return out, nil
}

// Benefit returns the value of a build of a pending change that is needed for certain (M15). The more changes have to be decided
// before the change can be, the later is soon enough: it falls with the square root of their number.
func Benefit(n *eventsv1.Node) float64 {
	return cmp.Or(n.GetBenefit(), 1) / math.Sqrt(float64(1+len(n.GetAhead())))
}

// behindShare is what a change that waits for another one alone adds to the worth of that one.
const behindShare = 0.5

// PoolFactor returns what builds of a pending change count with where workers run steps, for each unit of their worth (M15a): less if it
// waits for many, and more if many wait for it. It adds in whole numbers: those behind come in no order, and sums of fractions depend on it.
func (g *Graph) PoolFactor(n *Node) float64 {
	const one = 1 << 32
	var behind uint64
	g.EachBehind(n.Change.Change, func(f *Node) { behind += one / uint64(len(f.Ahead)) })
	ahead := float64(1 + len(n.Ahead))
	return (1 + behindShare*float64(behind)/one) / (ahead * math.Sqrt(ahead))
}

// PoolWorth returns what a build is worth to a pool with a factor of 1 (M15a): what it is worth by the ranking, or half of what it is needed
// for if that is for a bypass.
func PoolWorth(n *Node, value, needed float64) float64 {
	return max(value, needed*Benefit(n.Node)/2)
}
