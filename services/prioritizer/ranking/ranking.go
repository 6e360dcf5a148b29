// Package ranking is the prioritizer's core: the builds that are worth most, best first, over all pending
// changes and all of their paths, without enumerating the paths (M8, M9, M14–M18).
//
// An input costs what it changes. Each change keeps its own search, which has listed as many of its best
// paths as were asked for; it holds until something is said of the change, of one of its members, or of what
// a member's chances rest on. The ranking merges the searches, best first, and wakes only those whose bound
// says that they may have something among the best. Everything that is kept is a function of the graph
// and the predictions: a ranking that has kept nothing says the same, to the last bit.
package ranking

import (
	"math"
	"slices"

	eventsv1 "landfall.build/events/v1"
	"landfall.build/services/graph"
)

// Instant is how long the ranking's clock stands still, in microseconds: F of M11 moves with every input,
// and no choice hangs on less.
const Instant = 1 << 18

// Ranking is the state of one queue.
type Ranking struct {
	graph       *graph.Graph
	changes     map[string]*change
	predictions map[string]*eventsv1.Prediction
	pairs       map[string]map[string]pair // behind → ahead
	runs        map[string]*run            // by build
	ordered     []*run                     `snapshot:"-"` // the same by name, made when it is first asked for
	// unweighed are changes with runs whose worth may have moved.
	unweighed []*change
	// now is the clock as far as finishing times go, glanced as far as what is left of a build does.
	now, glanced int64
	// paced counts, from 1, the periods to the last look at when all changes are decided, typical how long a build took then, in microseconds, and bar
	// what a path beside the likeliest was worth at least.
	paced        int64
	typical, bar float64

	// pending are the changes with a node, in no order; keys[i] is the most that a build of pending[i] can be
	// worth, negative if none is to be built.
	pending []*change
	keys    []float64
	// fundedPerClass is how many bypassable members of one class are built for both ways.
	fundedPerClass int
	// byModel ranks by M15 alone and lets go on what M26 does, as the model has it.
	byModel bool
	// leastLoss is what a path beside the likeliest is worth at least (late.go), 0 if none waits.
	leastLoss float64
	// gap is how many nodes a search may visit from one listed path to the next.
	gap int
	// contenders and inside are the merge's (best.go), entered says of which pending[i] it is inside. last is what the last of the best
	// was worth.
	contenders contenders
	inside     []*change
	entered    []bool
	last       float64
	// guarded are the pending changes of which the land guard asked for something.
	guarded map[*change]bool
	doubted []doubt // a heap
	scratch scratch
	marks   int

	delta     *eventsv1.GraphDelta
	published *eventsv1.Ranking
	// edits have followed the last whole ranking.
	edits int

	// estimates are nil if none are wanted.
	estimates *estimates
}

// pair is what is predicted of two revisions.
type pair struct {
	behind, ahead uint64
	conflict      float64 // r
}

// New is a ranking of which nothing is known.
func New() *Ranking {
	r := funding(MaxFunded)
	r.leastLoss = leastLoss
	return r
}

// NewFundingAll is one that follows the model to the letter, as the policies of the papers do: it funds every bypass (M14),
// builds are worth what they are needed with (M15), whoever waits, whatever a late start costs, and one that is nearly done goes on (M26).
func NewFundingAll() *Ranking {
	r := funding(math.MaxInt)
	r.byModel = true
	return r
}

func funding(perClass int) *Ranking {
	return &Ranking{
		fundedPerClass: perClass,
		graph:          graph.New(), changes: map[string]*change{}, predictions: map[string]*eventsv1.Prediction{},
		pairs: map[string]map[string]pair{}, runs: map[string]*run{}, guarded: map[*change]bool{},
	}
}

// Apply folds one profile.
func (r *Ranking) Apply(p *eventsv1.Profile) {
	r.delta = p.Delta
	r.estimates.apply(p)
	paused, settings := r.graph.Mainline.GetPaused(), r.graph.Settings
	shed := r.shed(p.Delta, r.graph.Fold(p.Delta))
	touched := newChangeSet()
	for _, q := range p.Predictions {
		r.predictions[q.Change.Change] = q
		touched.add(r.named(q.Change.Change))
	}
	for _, q := range p.Pairs {
		r.applyPair(q, touched)
	}
	for _, b := range p.Delta.GetBuilds() {
		r.progress(b, p.StampUs)
		touched.add(r.named(b.Change.GetChange()))
	}
	for _, g := range p.Delta.GetGone() {
		c := r.named(g.Change.Change)
		r.left(g, touched)
		touched.add(c)
		if r.graph.Node(c.id) != nil {
			continue
		}
		delete(r.predictions, c.id)
		delete(r.pairs, c.id)
		for _, b := range c.behind {
			delete(r.pairs[b.of.id], c.id)
		}
		r.replace(c, nil)
	}
	for _, e := range p.Delta.GetNodes() {
		if n := r.graph.Node(e.Change.GetChange()); n != nil && n.Node == e {
			c := r.named(n.Change.Change)
			r.replace(c, n)
			touched.add(c)
		}
	}
	if r.graph.Settings != settings || r.graph.Mainline.GetPaused() != paused {
		for _, c := range r.pending {
			touched.add(c)
		}
	}
	r.tick(p.StampUs)
	r.retimeAll(touched)
	r.touchShed(shed, touched)
	for _, c := range touched.list {
		r.touch(c)
	}
	r.keepPace(p)
	r.settleMarginals()
}

// applyPair takes the probability that a change is red with another one ahead of it.
func (r *Ranking) applyPair(q *eventsv1.PairPrediction, touched *changeSet) {
	c := r.named(q.Behind.Change)
	of := r.pairs[c.id]
	if of == nil {
		of = map[string]pair{}
		r.pairs[c.id] = of
	}
	p := pair{q.Behind.Revision, q.Ahead.Revision, q.Conflict}
	of[q.Ahead.Change] = p
	touched.add(c)
	if c.node == nil || c.node.Change.Revision != p.behind {
		return
	}
	if j := c.node.IndexOf(q.Ahead.Change); j >= 0 && j < len(c.members) && c.members[j].ahead.Change.Revision == p.ahead {
		c.members[j].conflict = p.conflict
		c.couple()
	}
}

// Decide gives the priorities for the last profile, nil if it has nothing for the selector.
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

// sameRanking says whether two rankings say the same.
func sameRanking(a, b *eventsv1.Ranking) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Exact == b.Exact && slices.EqualFunc(a.Best, b.Best, sameBuild)
}

func sameBuild(x, y *eventsv1.RankedBuild) bool {
	return x == y || graph.SameRef(x.Change, y.Change) && slices.EqualFunc(x.Assumed, y.Assumed, graph.SameRef) && x.Needed == y.Needed && x.Value == y.Value
}

// Fold takes priorities as published.
func (r *Ranking) Fold(p *eventsv1.Priority) {
	if p.GetRanking() != nil {
		r.edits = 0
	} else if p.GetEdit() != nil {
		r.edits++
	}
	r.foldRunning(p)
	if after, err := graph.EditedRanking(r.published, p); err == nil {
		r.published = after
	}
	r.delta = nil
	r.estimates.fold(p)
}
