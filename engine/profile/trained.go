package profile

import (
	"math"

	"landfall.build/engine/features"
	"landfall.build/engine/graph"
	eventsv1 "landfall.build/events/v1"
)

// maxPairs is for how many members of A(c), the nearest, a vector is computed. Those farther ahead keep the prior. It bounds the cost
// of one change in a long queue.
const maxPairs = 64

// trained is the Predictor of production. It computes the vectors of changes and pairs, and asks the models that the log has put into
// use. Where there is none, priors predict.
type trained struct {
	profile *Profile
	history *features.History
	models  models
	stamp   int64
	// reanalysed has the changes analysed since the last published profile. The vectors of their pairs are computed again.
	reanalysed map[string]bool
	// failed has the models that failed since then, while they were asked; the next profile says so.
	failed failures
}

func newTrained(p *Profile) *trained {
	return &trained{profile: p, history: features.New(), models: models{}, reanalysed: map[string]bool{}, failed: failures{}}
}

// apply takes a speculation. It is called before the graph takes the delta.
func (t *trained) apply(s *eventsv1.Speculation) {
	t.stamp = max(t.stamp, s.StampUs)
	t.history.Apply(s)
	for _, f := range s.Facts {
		if a := f.GetChangeAnalyzed(); a != nil {
			t.reanalysed[a.GetChange().GetChange()] = true
		}
	}
	t.applyModels(s.Facts)
}

// fold takes a profile as published.
func (t *trained) fold(o *eventsv1.Profile) {
	clear(t.reanalysed)
	clear(t.failed)
	for _, q := range o.Observed {
		t.foldObserved(q)
	}
	for _, m := range o.Models {
		t.foldUse(m)
	}
}

// Predict implements Predictor. The prediction holds the vector that it rests on.
func (t *trained) Predict(n *graph.Node) *eventsv1.Prediction {
	durations := t.profile.durationsOf(n)
	out := t.priorPrediction(n, durations)
	out.Features = t.history.ChangeVector(t.context(n, durations), t.publishedVector(n.Change))
	if out.Features == nil {
		return out
	}
	out.Schema = features.Version
	if m := t.models.inUse(eventsv1.ModelKind_MODEL_KIND_SUCCESS); m != nil {
		x, err := m.Probability(out.Features)
		if err == nil {
			out.Success, out.SuccessSource = x, m.Name()
		}
		t.failed.note(eventsv1.ModelKind_MODEL_KIND_SUCCESS, err)
	}
	if m := t.models.inUse(eventsv1.ModelKind_MODEL_KIND_DURATION); m != nil {
		mean, std, known, err := m.Duration(out.Features)
		if err == nil && known {
			out.DurationMeanUs, out.DurationStdUs, out.DurationSource = mean*1e6, std*1e6, m.Name()
		}
		t.failed.note(eventsv1.ModelKind_MODEL_KIND_DURATION, err)
	}
	return out
}

// Pair implements Predictor. A textual conflict is certain (M5); for the rest it asks the model in use, or takes the prior.
func (t *trained) Pair(n *graph.Node, a *eventsv1.Ahead) *eventsv1.PairPrediction {
	r := &eventsv1.PairPrediction{Behind: n.Change, Ahead: a.Change, Conflict: t.profile.graph.Settings.GetPriorConflict(), Source: SourcePrior}
	if r.Features = t.pairVector(n, a); r.Features != nil {
		r.Schema = features.Version
	}
	if a.MergeConflict {
		r.Conflict, r.Source = 1, sourceMerge
		return r
	}
	if m := t.models.inUse(eventsv1.ModelKind_MODEL_KIND_CONFLICT); m != nil && r.Features != nil {
		x, err := m.Probability(r.Features)
		if err == nil {
			r.Conflict, r.Source = x, m.Name()
		}
		t.failed.note(eventsv1.ModelKind_MODEL_KIND_CONFLICT, err)
	}
	return r
}

// publishedOf returns the last published prediction of a revision, nil if there is none.
func (t *trained) publishedOf(c *eventsv1.ChangeRef) *eventsv1.Prediction {
	if r := t.profile.revisions[c.GetChange()]; r != nil && r.ref == keyOf(c) {
		return r.published.prediction
	}
	return nil
}

// publishedVector returns the last published vector of a revision, nil if there is none of this schema.
func (t *trained) publishedVector(c *eventsv1.ChangeRef) []float32 {
	if q := t.publishedOf(c); q != nil && q.Schema == features.Version {
		return q.Features
	}
	return nil
}

// publishedSuccess returns the last published success of a revision, NaN if there is none.
func (t *trained) publishedSuccess(c *eventsv1.ChangeRef) float64 {
	if q := t.publishedOf(c); q != nil {
		return q.Success
	}
	return math.NaN()
}

func (t *trained) context(n *graph.Node, d targetDurations) features.Context {
	c := features.Context{
		Node: n.Node, TargetsSeconds: d.seconds(d.mean), LongestSeconds: d.seconds(d.longest),
		QueueLength: len(t.profile.graph.Order()), Workers: int(t.profile.graph.Settings.GetWorkers()),
	}
	for _, a := range n.Ahead {
		if q := t.publishedOf(a.Change); q != nil {
			c.AheadSuccess = append(c.AheadSuccess, q.Success)
		}
	}
	return c
}

// pairVector returns the published vector, unless one of the two was analysed since. It is nil for a member that is far ahead.
func (t *trained) pairVector(n *graph.Node, a *eventsv1.Ahead) []float32 {
	if r := t.profile.revisions[n.Change.Change]; r != nil && r.ref == keyOf(n.Change) && !t.reanalysed[n.Change.Change] && !t.reanalysed[a.Change.Change] {
		if q := r.published.pairs[a.Change.Change]; q != nil && keyOf(q.Ahead) == keyOf(a.Change) && q.Features != nil && q.Schema == features.Version {
			return q.Features
		}
	}
	distance := len(n.Ahead) - n.IndexOf(a.Change.Change)
	if distance > maxPairs {
		return nil
	}
	return t.history.PairVector(features.PairContext{
		Behind: n.Change, Ahead: a.Change, Edge: a, Distance: distance, BehindSuccess: t.publishedSuccess(n.Change), AheadSuccess: t.publishedSuccess(a.Change),
	})
}

// foldObserved takes a published observation of a pair.
func (t *trained) foldObserved(q *eventsv1.PairObserved) {
	s := &t.profile.at(q.Behind).published
	if s.observed == nil {
		s.observed = map[refKey]bool{}
	}
	s.observed[keyOf(q.Ahead)] = true
	var shared []string
	if n := t.profile.graph.NodeAt(q.Behind); n != nil {
		if i := n.IndexOf(q.Ahead.GetChange()); i >= 0 {
			shared = n.Ahead[i].Targets
		}
	}
	t.history.ObservePair(q.Conflict, shared)
}
