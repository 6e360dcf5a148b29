// Package ranking is the prioritizer's core: the builds that are worth most, best first, over all pending
// changes and all of their paths, without enumerating the paths (M8, M9, M14–M18).
package ranking

import (
	"slices"

	eventsv1 "landfall.build/events/v1"
	"landfall.build/services/graph"
	"landfall.build/services/profiler/bypass"
)

// searchNodes is the node budget of one ranking (M18).
const searchNodes = 1_000_000

// Ranking is the state of one queue.
type Ranking struct {
	graph       *graph.Graph
	predictions map[string]*eventsv1.Prediction
	conflicts   map[[2]string]float64 // behind, ahead → r
	started     map[string]started    // change → its oldest running build
	now         int64

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
		graph: graph.New(), predictions: map[string]*eventsv1.Prediction{},
		conflicts: map[[2]string]float64{}, started: map[string]started{},
	}
}

// Apply folds one profile.
func (r *Ranking) Apply(p *eventsv1.Profile) {
	r.delta, r.now = p.Delta, p.StampUs
	r.graph.Fold(p.Delta)
	for _, q := range p.Predictions {
		r.predictions[q.Change.Change] = q
	}
	for _, q := range p.Pairs {
		r.conflicts[[2]string{q.Behind.Change, q.Ahead.Change}] = q.Conflict
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
		for k := range r.conflicts {
			if k[0] == id || k[1] == id {
				delete(r.conflicts, k)
			}
		}
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
	sameRef := func(x, y *eventsv1.ChangeRef) bool { return x.GetChange() == y.GetChange() && x.GetRevision() == y.GetRevision() }
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

// duration is what is left of the change's work, from now on if nothing of it runs, and when that began.
func (r *Ranking) duration(id string) (start float64, d bypass.Duration) {
	q := r.predictions[id]
	d = bypass.Duration{Mean: q.GetDurationMeanUs() / 1e6, Std: q.GetDurationStdUs() / 1e6}
	now := float64(r.now) / 1e6
	if s, running := r.started[id]; running {
		at := float64(s.at) / 1e6
		return at, d.Beyond(now - at)
	}
	return now, d
}
