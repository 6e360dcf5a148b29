// Package ranking is the prioritizer's core. It ranks the builds that are worth most, best first, over all pending
// changes and all of their paths, without enumerating the paths (M8, M9, M14–M18).
//
// The cost of an event is that of what it changes. Each change keeps its own search, which has listed as many of its
// best paths as were needed so far. A search holds until an event is about the change, one of its members, or a change
// that a member's chances depend on. The ranking merges the searches, best first, and continues only those whose bound
// leaves room for a path among the best. All that is kept is a function of the graph and the predictions: a ranking
// without any of it publishes the same, to the last bit.
package ranking

import (
	"slices"

	"landfall.build/engine/graph"
	eventsv1 "landfall.build/events/v1"
)

// Instant is the step of the ranking's clock, in microseconds. F of M11 changes with every tick of it, and no choice
// depends on less than this.
const Instant = 1 << 18

// Ranking ranks the builds of one queue.
type Ranking struct {
	graph       *graph.Graph
	changes     map[string]*change
	predictions map[string]*eventsv1.Prediction
	pairs       map[string]map[string]pair // behind → ahead
	runs        map[string]*run            // by build
	runsByName  []*run                     `snapshot:"-"` // the same by name, made when it is first needed
	// unweighed holds the changes whose builds may have become worthless, or may no longer be: their worth may have
	// changed.
	unweighed []*change `snapshot:"index"`
	// now is log time for finishing times, remainingAsOf is when the remaining durations of running builds were last
	// refreshed.
	now, remainingAsOf int64
	// pacePeriod is the period of log time, counted from 1, in which the pace of all changes was last computed.
	// typicalUS is the typical duration of a build then, in microseconds, and lossThreshold the loss from which on a
	// path beside the likeliest was worth a slot.
	pacePeriod               int64
	typicalUS, lossThreshold float64

	// pending holds the changes that have a node, in no order. keys[i] bounds what a build of pending[i] can be worth;
	// it is negative if none is to be built.
	pending []*change
	keys    []float64 `snapshot:"index"`
	// byModel ranks by the model alone: builds by M15, and abortion by M26.
	byModel bool `snapshot:"index"`
	// leastLoss is the loss from which on a path beside the likeliest is worth a slot while all are taken (late.go).
	// It is 0 if no path waits.
	leastLoss float64
	// searchGap is how many nodes a search may visit between two listed paths.
	searchGap int `snapshot:"index"`
	// contenders and merging belong to the merge of the searches (best.go): its heap, and the changes in it.
	// isMerging[i] reports whether pending[i] is in it. lastWorth is the value of the last build of the previous
	// ranking.
	contenders contenders `snapshot:"index"`
	merging    []*change  `snapshot:"index"`
	isMerging  []bool
	crowd      *crowd  `snapshot:"index"`
	lastWorth  float64 `snapshot:"index"`
	// guarded holds the pending changes that the land guard asked something for.
	guarded        map[*change]bool `snapshot:"index"`
	staleMarginals []staleMarginal  `snapshot:"index"` // a heap
	scratch        scratch          `snapshot:"index"`
	marks          int              `snapshot:"index"`

	delta     *eventsv1.GraphDelta
	published *eventsv1.Ranking
	// editsSinceWhole counts the edits that were published since the last whole ranking.
	editsSinceWhole int

	// estimates is nil if none are made.
	estimates *estimates
}

// pair is what is predicted of two revisions.
type pair struct {
	behind, ahead uint64
	conflict      float64 // r
}

// New returns the ranking of a queue that is empty.
func New() *Ranking {
	r := empty()
	r.leastLoss = leastLoss
	return r
}

// NewFundingAll returns a ranking that follows the model to the letter, as the policies of the papers do: it funds
// every bypass (M14), values builds by how likely they are needed (M15), whatever waits and whatever a late start
// costs, and lets a build go on that is nearly done (M26).
func NewFundingAll() *Ranking {
	r := empty()
	r.byModel = true
	return r
}

func empty() *Ranking {
	return &Ranking{
		graph: graph.New(), changes: map[string]*change{}, predictions: map[string]*eventsv1.Prediction{},
		pairs: map[string]map[string]pair{}, runs: map[string]*run{}, guarded: map[*change]bool{},
	}
}

// Apply folds a profile.
func (r *Ranking) Apply(p *eventsv1.Profile) {
	r.delta = p.Delta
	r.estimates.apply(p)
	paused, settings := r.graph.Mainline.GetPaused(), r.graph.Settings
	shrunk := r.removeDeparted(p.Delta, r.graph.Fold(p.Delta))
	touched := newChangeSet()
	for _, q := range p.Predictions {
		r.predictions[q.Change.Change] = q
		touched.add(r.changeOf(q.Change.Change))
	}
	for _, q := range p.Pairs {
		r.applyPair(q, touched)
	}
	for _, b := range p.Delta.GetBuilds() {
		r.applyProgress(b, p.StampUs)
		touched.add(r.changeOf(b.Change.GetChange()))
	}
	for _, g := range p.Delta.GetGone() {
		c := r.changeOf(g.Change.Change)
		r.removeFromRuns(g, touched)
		touched.add(c)
		if r.graph.Node(c.id) != nil {
			continue
		}
		delete(r.predictions, c.id)
		delete(r.pairs, c.id)
		for _, b := range c.behind {
			r.dropPair(b.of, c)
		}
		r.replaceNode(c, nil)
	}
	for _, e := range p.Delta.GetNodes() {
		if n := r.graph.Node(e.Change.GetChange()); n != nil && n.Node == e {
			c := r.changeOf(n.Change.Change)
			r.replaceNode(c, n)
			touched.add(c)
		}
	}
	if r.graph.Settings != settings || r.graph.Mainline.GetPaused() != paused {
		for _, c := range r.pending {
			touched.add(c)
		}
	}
	r.advanceClock(p.StampUs)
	r.updateTimes(touched)
	r.updateShrunk(shrunk, touched)
	for _, c := range touched.list {
		r.update(c)
	}
	r.updatePaces(p)
	r.updateMarginals()
}

// applyPair folds the probability that a change is red with another one ahead of it.
func (r *Ranking) applyPair(q *eventsv1.PairPrediction, touched *changeSet) {
	c := r.changeOf(q.Behind.Change)
	p := pair{q.Behind.Revision, q.Ahead.Revision, q.Conflict}
	r.pair(c.id, q.Ahead.Change, p)
	touched.add(c)
	if c.node == nil || c.node.Change.Revision != p.behind {
		return
	}
	if j := c.node.IndexOf(q.Ahead.Change); j >= 0 && j < len(c.members) && c.members[j].ahead.Change.Revision == p.ahead {
		c.members[j].conflict = p.conflict
		c.findCoupled()
	}
}

// pair stores what is predicted of a pair.
func (r *Ranking) pair(behind, ahead string, p pair) {
	of := r.pairs[behind]
	if of == nil {
		of = map[string]pair{}
		r.pairs[behind] = of
	}
	of[ahead] = p
}

// dropPair deletes what is predicted of a pair.
func (r *Ranking) dropPair(behind, ahead *change) {
	of := r.pairs[behind.id]
	if delete(of, ahead.id); len(of) == 0 {
		delete(r.pairs, behind.id)
	}
}

// Decide returns the answer to the last profile, nil if it is already folded.
func (r *Ranking) Decide() *eventsv1.Priority {
	if r.delta == nil {
		return nil
	}
	out := &eventsv1.Priority{Delta: r.delta}
	best := r.best()
	r.publish(out, best)
	out.Worthless, out.Recovered = r.weighRunning()
	if r.estimates != nil {
		out.Estimates = r.estimate(best)
	}
	return out
}

// sameRanking reports whether two rankings are equal.
func sameRanking(a, b *eventsv1.Ranking) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Exact == b.Exact && slices.EqualFunc(a.Best, b.Best, sameBuild)
}

func sameBuild(x, y *eventsv1.RankedBuild) bool {
	return x == y || graph.SameRef(x.Change, y.Change) && slices.EqualFunc(x.Assumed, y.Assumed, graph.SameRef) && x.Needed == y.Needed && x.Value == y.Value
}

// Fold folds an answer as published.
func (r *Ranking) Fold(p *eventsv1.Priority) {
	if p.GetRanking() != nil {
		r.editsSinceWhole = 0
	} else if p.GetEdit() != nil {
		r.editsSinceWhole++
	}
	r.foldRunning(p)
	if after, err := graph.EditedRanking(r.published, p); err == nil {
		r.published = after
	}
	r.delta = nil
	r.estimates.fold(p)
}
