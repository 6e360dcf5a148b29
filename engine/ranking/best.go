package ranking

import (
	"cmp"
	"math"
	"slices"

	"landfall.build/engine/graph"
	"landfall.build/engine/memberset"
	eventsv1 "landfall.build/events/v1"
)

// searchNodes is how many nodes all searches of one ranking may visit together (M18).
const searchNodes = 1 << 20

// contender is a change in the merge of the searches. Its next path is worth key if it is listed, else at most key.
type contender struct {
	key float64
	c   *change
}

// turn is the position of a change in the merge: its i-th path is next.
type turn struct {
	i     int
	build *eventsv1.RankedBuild
	cut   bool
}

// before is the order of M17. A search that may still find a better path comes before a listed path of the same worth.
func (a *contender) before(b *contender) bool {
	if a.key != b.key {
		return a.key > b.key
	}
	return a.c.comesBefore(b.c)
}

// comesBefore orders two changes that are worth the same.
func (c *change) comesBefore(o *change) bool {
	if listed := c.turn.build != nil; listed != (o.turn.build != nil) {
		return !listed
	}
	return c.node.Position < o.node.Position
}

// contenders is a heap, the best on top.
type contenders []contender

// second returns the highest key below the top.
func (h contenders) second() float64 {
	most := -1.0
	for _, i := range [2]int{1, 2} {
		if i < len(h) {
			most = max(most, h[i].key)
		}
	}
	return most
}

// settle moves the top of the heap to its place after its key has changed, or removes it if the key is negative.
func (h *contenders) settle() {
	if (*h)[0].key < 0 {
		last := len(*h) - 1
		(*h)[0] = (*h)[last]
		*h = (*h)[:last]
	}
	h.sink(0)
}

// add adds a contender to the heap.
func (h *contenders) add(x contender) {
	*h = append(*h, x)
	l := *h
	i := len(l) - 1
	for i > 0 {
		up := (i - 1) / 2
		if !x.before(&l[up]) {
			break
		}
		l[i] = l[up]
		i = up
	}
	l[i] = x
}

// sink moves a contender down to its place.
func (h contenders) sink(i int) {
	if i >= len(h) {
		return
	}
	x := h[i]
	for {
		down := 2*i + 1
		if down >= len(h) {
			break
		}
		if down+1 < len(h) && h[down+1].before(&h[down]) {
			down++
		}
		if !h[down].before(&x) {
			break
		}
		h[i] = h[down]
		i = down
	}
	h[i] = x
}

// best returns the K best builds that are still to be done, in the order of M17. Of an author's they are no more than its share of K
// (M33b).
func (r *Ranking) best() *eventsv1.Ranking {
	out := &eventsv1.Ranking{Exact: true}
	urgent, dead := r.urgent()
	want := r.wanted() + dead
	out.Best = urgent
	r.fitBudget()
	r.crowd = newCrowd(r.graph.Settings, r.wanted())
	h := r.contenders[:0]
	bar := math.Inf(1)
	for len(out.Best) < want {
		if len(h) == 0 || h[0].key < bar {
			if bar = r.nextBar(bar); bar < 0 && len(h) == 0 {
				break
			}
			r.admit(&h, bar)
			continue
		}
		c := h[0].c
		switch t := &c.turn; {
		case r.crowd.isFull(c):
			h[0].key = -1
		case t.build != nil:
			r.crowd.add(c)
			out.Best = append(out.Best, t.build)
			t.i++
			h[0].key = r.advanceTurn(c, max(h.second(), bar))
		case t.cut:
			out.Exact = false
			h[0].key = -1
		default:
			if c.search == nil {
				r.beginSearch(c)
			}
			h[0].key = r.advanceTurn(c, max(h.second(), bar))
		}
		h.settle()
	}
	r.endMerge(h)
	if r.lastWorth = 0; len(out.Best) == want {
		r.lastWorth = out.Best[want-1].Value
	}
	return out
}

// nextBar returns the next bar: changes that may be worth that much enter the merge. The bar does not influence the
// result, only the work: if it is too low, changes enter that are not among the best; if it is too high, it is lowered
// again. It is negative if no change is left.
func (r *Ranking) nextBar(bar float64) float64 {
	most := -1.0
	for i, key := range r.keys {
		if key > most && !r.isMerging[i] {
			most = key
		}
	}
	switch {
	case most < tiny: // half of it may be 0
		return min(most, 0)
	case math.IsInf(bar, 1) && r.lastWorth > 0:
		return min(most, r.lastWorth*lastShare)
	}
	return most / 2
}

// tiny is far less than the worth of any build. lastShare is the part of the last ranking's lowest value that the
// lowest value of the next one mostly exceeds.
const (
	tiny      = 1e-200
	lastShare = 0.75
)

// admit adds the changes to the merge that may be worth at least the bar.
func (r *Ranking) admit(h *contenders, bar float64) {
	if bar < 0 {
		return
	}
	for i, key := range r.keys {
		if key < bar || r.isMerging[i] {
			continue
		}
		c := r.pending[i]
		if r.crowd.isFull(c) {
			r.isMerging[i] = true
			r.merging = append(r.merging, c)
			continue
		}
		if c.search == nil {
			r.tightenBound(c, bar)
		}
		if r.keys[i] < bar {
			continue
		}
		r.isMerging[i], c.turn = true, turn{}
		r.merging = append(r.merging, c)
		h.add(contender{r.keys[i], c})
	}
}

// endMerge empties the merge.
func (r *Ranking) endMerge(h contenders) {
	for _, c := range r.merging {
		r.isMerging[c.pendingAt], c.turn = false, turn{}
	}
	clear(r.merging)
	r.merging = r.merging[:0]
	clear(h[:cap(h)])
	r.contenders = h[:0]
}

// advanceTurn continues a change's search, and returns a bound of its next path.
func (r *Ranking) advanceTurn(c *change, enough float64) (key float64) {
	s := r.advance(c, c.turn.i, enough)
	if c.turn.build, c.turn.cut = s.build, s.cut; c.turn.i == 0 {
		r.keys[c.pendingAt] = s.bound
	}
	return s.bound
}

// wanted returns K of M18.
func (r *Ranking) wanted() int {
	if k := int(r.graph.Settings.GetBest()); k > 0 {
		return k
	}
	return 64
}

// urgent returns the builds that come before all others: the check of direct pushes, and what the land guard asked for
// (M21). dead counts those among them whose paths are dead (M9): they get no slot, so they take nobody's place among the best.
func (r *Ranking) urgent() (list []*eventsv1.RankedBuild, dead int) {
	if n := r.graph.Check; n != nil {
		if v, _ := n.Outstanding(none); len(v) > 0 {
			list = append(list, &eventsv1.RankedBuild{Change: n.Change, Needed: 1, Value: 1})
		}
	}
	var guarded []*graph.Node
	for c := range r.guarded {
		n, alone := c.node, memberset.New(len(c.node.Ahead))
		if len(n.Guard.Missing) == 0 || n.Path(alone) != graph.Unknown {
			continue
		}
		guarded = append(guarded, n)
		if !r.graph.LivePath(n, alone) {
			dead++
		}
	}
	slices.SortFunc(guarded, func(a, b *graph.Node) int { return cmp.Compare(a.Position, b.Position) })
	for _, n := range guarded {
		list = append(list, &eventsv1.RankedBuild{Change: n.Change, Needed: 1, Value: 1})
	}
	return list, dead
}

// fitBudget gives each search its share of the node budget.
func (r *Ranking) fitBudget() {
	gap := gapFor(len(r.pending))
	if gap == r.searchGap {
		return
	}
	for _, c := range r.pending {
		if s := c.search; s != nil && s.maxVisited >= min(gap, r.searchGap) {
			r.dropSearch(c)
		}
	}
	r.searchGap = gap
}
