// Package ranking is the prioritizer's core: the builds that are worth most, best first, over all pending
// changes and all of their paths, without enumerating the paths (M8, M9, M14–M18).
package ranking

import (
	"slices"

	eventsv1 "landfall.build/events/v1"
	"landfall.build/services/graph"
)

// searchNodes is the node budget of one ranking (M18).
const searchNodes = 1_000_000

// Ranking is the state of one queue.
type Ranking struct {
	graph       *graph.Graph
	changes     map[string]*change
	predictions map[string]*eventsv1.Prediction
	conflicts   map[string]map[string]float64 // behind → ahead → r
	started     map[string]started            // change → its oldest running build
	now         int64
	// round counts the searches: what a change keeps of an older one does not count.
	round int

	delta     *eventsv1.GraphDelta
	published *eventsv1.Ranking
}

type started struct {
	build string
	at    int64
}

// New is a ranking of which nothing is known.
func New() *Ranking {
	return &Ranking{
		graph: graph.New(), changes: map[string]*change{}, predictions: map[string]*eventsv1.Prediction{},
		conflicts: map[string]map[string]float64{}, started: map[string]started{},
	}
}

// Apply folds one profile.
func (r *Ranking) Apply(p *eventsv1.Profile) {
	r.delta, r.now = p.Delta, p.StampUs
	r.graph.Fold(p.Delta)
	touched := map[string]bool{}
	for _, n := range p.Delta.GetNodes() {
		touched[n.Change.GetChange()] = true
	}
	for _, q := range p.Predictions {
		r.predictions[q.Change.Change] = q
		touched[q.Change.Change] = true
	}
	for _, q := range p.Pairs {
		of := r.conflicts[q.Behind.Change]
		if of == nil {
			of = map[string]float64{}
			r.conflicts[q.Behind.Change] = of
		}
		of[q.Ahead.Change] = q.Conflict
		touched[q.Behind.Change] = true
	}
	for _, b := range p.Delta.GetBuilds() {
		id := b.Change.GetChange()
		was, running := r.started[id]
		switch {
		case b.State == eventsv1.BuildState_BUILD_STATE_PREPARED && !running:
			r.started[id] = started{b.Build, p.StampUs}
		case b.State == eventsv1.BuildState_BUILD_STATE_FINISHED && was.build == b.Build:
			delete(r.started, id)
		}
	}
	for _, g := range p.Delta.GetGone() {
		id := g.Change.Change
		delete(r.started, id)
		if r.graph.Node(id) != nil {
			continue
		}
		delete(r.predictions, id)
		delete(r.conflicts, id)
		for behind, of := range r.conflicts {
			if _, met := of[id]; met {
				delete(of, id)
				touched[behind] = true
			}
		}
		touched[id] = true
	}
	for id := range touched {
		r.refresh(id)
	}
}

// Decide gives the priorities for the last profile, nil if it has nothing for the selector.
func (r *Ranking) Decide() *eventsv1.Priority {
	if r.delta == nil {
		return nil
	}
	out := &eventsv1.Priority{Delta: r.delta}
	best := r.best()
	if !sameRanking(best, r.published) {
		out.Ranking = best
	}
	return out
}

// sameRanking says whether two rankings say the same.
func sameRanking(a, b *eventsv1.Ranking) bool {
	if a == nil || b == nil {
		return a == b
	}
	sameRef := func(x, y *eventsv1.ChangeRef) bool {
		return x.GetChange() == y.GetChange() && x.GetRevision() == y.GetRevision()
	}
	return a.Exact == b.Exact && slices.EqualFunc(a.Best, b.Best, func(x, y *eventsv1.RankedBuild) bool {
		return sameRef(x.Change, y.Change) && slices.EqualFunc(x.Assumed, y.Assumed, sameRef) && x.Needed == y.Needed && x.Value == y.Value
	})
}

// Fold takes priorities as published.
func (r *Ranking) Fold(p *eventsv1.Priority) {
	if p.GetRanking() != nil {
		r.published = p.Ranking
	}
	r.delta = nil
}
