package ranking

import (
	"cmp"
	"slices"

	eventsv1 "landfall.build/events/v1"
	"landfall.build/services/graph"
	"landfall.build/services/memberset"
)

// searchNodes is the node budget of one ranking (M18).
const searchNodes = 1 << 20

// contender is a change in the merge of the searches: its i-th path is next, worth at most key, or exactly
// that if it is listed.
type contender struct {
	key   float64
	c     *change
	i     int
	build *eventsv1.RankedBuild
	cut   bool
}

// before puts the builds in the order of M17; what may still become a better one comes before them.
func (a *contender) before(b *contender) bool {
	switch {
	case a.key != b.key:
		return a.key > b.key
	case (a.build == nil) != (b.build == nil):
		return a.build == nil
	}
	return a.c.node.Position < b.c.node.Position
}

// contenders is a heap.
type contenders []contender

// second is the highest key below the top.
func (h contenders) second() float64 {
	most := -1.0
	for _, i := range [2]int{1, 2} {
		if i < len(h) {
			most = max(most, h[i].key)
		}
	}
	return most
}

// best is the K best builds that are still to be done, in the order of M17.
func (r *Ranking) best() *eventsv1.Ranking {
	out := &eventsv1.Ranking{Exact: true}
	want := r.wanted()
	out.Best = r.urgent()
	r.fitBudget()
	h := r.contenders[:0]
	for i, key := range r.keys {
		if key >= 0 {
			h = append(h, contender{key: key, c: r.pending[i]})
		}
	}
	r.contenders = h
	for i := len(h)/2 - 1; i >= 0; i-- {
		sink(h, i)
	}
	for len(h) > 0 && len(out.Best) < want {
		top := &h[0]
		switch {
		case top.build != nil:
			out.Best = append(out.Best, top.build)
			top.i++
		case top.cut:
			out.Exact = false
			top.key = -1
			r.settle(&h)
			continue
		}
		if top.c.search == nil {
			r.begin(top.c)
		}
		s := r.advance(top.c, top.i, h.second())
		if top.key, top.build, top.cut = s.bound, s.build, s.cut; top.i == 0 {
			r.keys[top.c.slot] = top.key
		}
		r.settle(&h)
	}
	clear(r.contenders)
	return out
}

// wanted is K of M18.
func (r *Ranking) wanted() int {
	if k := int(r.graph.Settings.GetBest()); k > 0 {
		return k
	}
	return 64
}

// settle puts the top of the heap where it belongs, or takes it out if nothing is to come of it.
func (r *Ranking) settle(h *contenders) {
	if (*h)[0].key < 0 {
		last := len(*h) - 1
		(*h)[0] = (*h)[last]
		*h = (*h)[:last]
	}
	sink(*h, 0)
}

// urgent are the builds that come before all others: of what came past the queue, and what the land guard
// asked for (M21).
func (r *Ranking) urgent() (list []*eventsv1.RankedBuild) {
	if n := r.graph.Check; n != nil {
		if v, _ := n.Outstanding(none); len(v) > 0 {
			list = append(list, &eventsv1.RankedBuild{Change: n.Change, Needed: 1, Value: 1})
		}
	}
	var guarded []*graph.Node
	for _, c := range r.pending {
		if n := c.node; n.Guard != nil && len(n.Guard.Missing) > 0 && n.Path(memberset.New(len(n.Ahead))) == graph.Unknown {
			guarded = append(guarded, n)
		}
	}
	slices.SortFunc(guarded, func(a, b *graph.Node) int { return cmp.Compare(a.Position, b.Position) })
	for _, n := range guarded {
		list = append(list, &eventsv1.RankedBuild{Change: n.Change, Needed: 1, Value: 1})
	}
	return list
}

// fitBudget gives each search its part of the budget.
func (r *Ranking) fitBudget() {
	gap := gapFor(len(r.pending))
	if gap == r.gap {
		return
	}
	for _, c := range r.pending {
		if s := c.search; s != nil && s.most >= min(gap, r.gap) {
			r.drop(c)
		}
	}
	r.gap = gap
}
