package ranking

import (
	"cmp"
	"math"
	"slices"

	eventsv1 "landfall.build/events/v1"
	"landfall.build/services/graph"
	"landfall.build/services/memberset"
)

// searchNodes is the node budget of one ranking (M18).
const searchNodes = 1 << 20

// contender is a change in the merge of the searches: its next path is worth at most key, or exactly that if it is
// listed.
type contender struct {
	key float64
	c   *change
}

// turn is where a change stands in the merge: its i-th path is next.
type turn struct {
	i     int
	build *eventsv1.RankedBuild
	cut   bool
}

// before puts the builds in the order of M17; what may still become a better one comes before them.
func (a *contender) before(b *contender) bool {
	if a.key != b.key {
		return a.key > b.key
	}
	return a.c.comesBefore(b.c)
}

// comesBefore is the order of two changes that are worth the same.
func (c *change) comesBefore(o *change) bool {
	if listed := c.turn.build != nil; listed != (o.turn.build != nil) {
		return !listed
	}
	return c.node.Position < o.node.Position
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

// settle puts the top of the heap where it belongs, or takes it out if nothing is to come of it.
func (h *contenders) settle() {
	if (*h)[0].key < 0 {
		last := len(*h) - 1
		(*h)[0] = (*h)[last]
		*h = (*h)[:last]
	}
	h.sink(0)
}

// add puts one more into the heap.
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

// sink moves a contender that may come too early to its place.
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

// best is the K best builds that are still to be done, in the order of M17.
func (r *Ranking) best() *eventsv1.Ranking {
	out := &eventsv1.Ranking{Exact: true}
	want := r.wanted()
	out.Best = r.urgent()
	r.fitBudget()
	h := r.contenders[:0]
	bar := math.Inf(1)
	for len(out.Best) < want {
		if len(h) == 0 || h[0].key < bar {
			if bar = r.lower(bar); bar < 0 && len(h) == 0 {
				break
			}
			r.admit(&h, bar)
			continue
		}
		c := h[0].c
		switch t := &c.turn; {
		case t.build != nil:
			out.Best = append(out.Best, t.build)
			t.i++
			h[0].key = r.advanceTurn(c, max(h.second(), bar))
		case t.cut:
			out.Exact = false
			h[0].key = -1
		default:
			if c.search == nil {
				r.begin(c)
			}
			h[0].key = r.advanceTurn(c, max(h.second(), bar))
		}
		h.settle()
	}
	r.dismiss(h)
	if r.last = 0; len(out.Best) == want {
		r.last = out.Best[want-1].Value
	}
	return out
}

// lower gives the next bar: who may be worth that much is let into the merge. It is no matter of what is found, but of how much is
// looked at in vain: too low a bar has changes looked at that are not among the best, too high a one is soon lowered. It is
// negative if nobody is left.
func (r *Ranking) lower(bar float64) float64 {
	most := -1.0
	for i, key := range r.keys {
		if key > most && !r.entered[i] {
			most = key
		}
	}
	switch {
	case most < tiny: // there the half of it may be all of it
		return min(most, 0)
	case math.IsInf(bar, 1) && r.last > 0:
		return min(most, r.last*nearly)
	}
	return most / 2
}

// tiny is far less than any build can be worth that somebody waits for, nearly the part of what the last of the best was worth that the
// last of the next is still worth, most of the time.
const (
	tiny   = 1e-200
	nearly = 0.75
)

// admit lets those into the merge that may be worth at least the bar.
func (r *Ranking) admit(h *contenders, bar float64) {
	if bar < 0 {
		return
	}
	for i, key := range r.keys {
		if key < bar || r.entered[i] {
			continue
		}
		c := r.pending[i]
		if c.search == nil {
			r.lookOut(c, bar)
		}
		if r.keys[i] < bar {
			continue
		}
		r.entered[i], c.turn = true, turn{}
		r.inside = append(r.inside, c)
		h.add(contender{r.keys[i], c})
	}
}

// dismiss ends the merge.
func (r *Ranking) dismiss(h contenders) {
	for _, c := range r.inside {
		r.entered[c.slot], c.turn = false, turn{}
	}
	clear(r.inside)
	r.inside = r.inside[:0]
	clear(h[:cap(h)])
	r.contenders = h[:0]
}

// advanceTurn goes on with a change's search, and gives what its next path is worth at most.
func (r *Ranking) advanceTurn(c *change, enough float64) (key float64) {
	s := r.advance(c, c.turn.i, enough)
	if c.turn.build, c.turn.cut = s.build, s.cut; c.turn.i == 0 {
		r.keys[c.slot] = s.bound
	}
	return s.bound
}

// wanted is K of M18.
func (r *Ranking) wanted() int {
	if k := int(r.graph.Settings.GetBest()); k > 0 {
		return k
	}
	return 64
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
	for c := range r.guarded {
		if n := c.node; len(n.Guard.Missing) > 0 && n.Path(memberset.New(len(n.Ahead))) == graph.Unknown {
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
