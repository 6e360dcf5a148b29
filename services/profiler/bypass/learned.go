package bypass

import (
	"math"

	eventsv1 "landfall.build/events/v1"
	"landfall.build/services/graph"
	"landfall.build/services/profiler/features"
)

// maxPairs is for how many members of A(c), the nearest, a vector is made: the rest keep the prior until they are
// nearer. It bounds what one change in a crowd costs.
const maxPairs = 64

// learned is the Model of production: what is known of a change as a vector, and the trained models that the log has put
// into use, asked with it; priors where there is none.
type learned struct {
	*Profile
	history *features.History
	models  models
	stamp   int64
	// reanalysed are the changes whose pairs are to be looked at anew.
	reanalysed map[string]bool
	// found is what is wrong with models, as it showed while they were asked for one record.
	found troubles `snapshot:"-"`
}

func newLearned(p *Profile) *learned {
	return &learned{Profile: p, history: features.New(), models: models{}, reanalysed: map[string]bool{}, found: troubles{}}
}

// apply folds a speculation, before the graph does.
func (l *learned) apply(s *eventsv1.Speculation) {
	l.stamp = max(l.stamp, s.StampUs)
	l.history.Apply(s)
	for _, f := range s.Facts {
		if a := f.GetChangeAnalyzed(); a != nil {
			l.reanalysed[a.GetChange().GetChange()] = true
		}
	}
	l.use(s.Facts)
}

// fold takes a profile as published.
func (l *learned) fold(o *eventsv1.Profile) {
	clear(l.reanalysed)
	clear(l.found)
	for _, q := range o.Observed {
		l.observe(q)
	}
	for _, m := range o.Models {
		l.told(m)
	}
}

// Predict asks the models in use, and gives the vector that they were asked with.
func (l *learned) Predict(n *graph.Node) *eventsv1.Prediction {
	times := l.timesOf(n)
	out := l.foretoldByPriors(n, times)
	out.Features = l.history.Change(l.context(n, times), l.vectorOf(n.Change))
	if out.Features == nil {
		return out
	}
	out.Schema = features.Version
	if m := l.models.of(eventsv1.ModelKind_MODEL_KIND_SUCCESS); m != nil {
		x, err := m.Probability(out.Features)
		if err == nil {
			out.Success, out.SuccessSource = x, m.Name()
		}
		l.found.note(eventsv1.ModelKind_MODEL_KIND_SUCCESS, err)
	}
	if m := l.models.of(eventsv1.ModelKind_MODEL_KIND_DURATION); m != nil {
		mean, std, known, err := m.Duration(out.Features)
		if err == nil && known {
			out.DurationMeanUs, out.DurationStdUs, out.DurationSource = mean*1e6, std*1e6, m.Name()
		}
		l.found.note(eventsv1.ModelKind_MODEL_KIND_DURATION, err)
	}
	return out
}

// published is what was last said of a revision, nil if nothing was.
func (l *learned) published(c *eventsv1.ChangeRef) *eventsv1.Prediction {
	if s := l.stories[c.GetChange()]; s != nil && s.of == keyOf(c) {
		return s.prediction
	}
	return nil
}

// vectorOf is the vector that was last published of a revision, nil if there is none of this schema.
func (l *learned) vectorOf(c *eventsv1.ChangeRef) []float32 {
	if q := l.published(c); q != nil && q.Schema == features.Version {
		return q.Features
	}
	return nil
}

func (l *learned) context(n *graph.Node, t targetTimes) features.Context {
	c := features.Context{
		Node: n.Node, TargetsSeconds: t.seconds(t.mean), LongestSeconds: t.seconds(t.longest),
		QueueLength: len(l.graph.Order()), Workers: int(l.graph.Settings.GetWorkers()),
	}
	for _, a := range n.Ahead {
		if q := l.published(a.Change); q != nil {
			c.AheadSuccess = append(c.AheadSuccess, q.Success)
		}
	}
	return c
}

// Pair is r(c, k): a textual conflict is certain (M5), the rest is the model's, or the prior.
func (l *learned) Pair(n *graph.Node, a *eventsv1.Ahead) *eventsv1.PairPrediction {
	r := &eventsv1.PairPrediction{Behind: n.Change, Ahead: a.Change, Conflict: l.graph.Settings.GetPriorConflict(), Source: SourcePrior}
	if r.Features = l.vectorOfPair(n, a); r.Features != nil {
		r.Schema = features.Version
	}
	if a.MergeConflict {
		r.Conflict, r.Source = 1, sourceMerge
		return r
	}
	if m := l.models.of(eventsv1.ModelKind_MODEL_KIND_CONFLICT); m != nil && r.Features != nil {
		x, err := m.Probability(r.Features)
		if err == nil {
			r.Conflict, r.Source = x, m.Name()
		}
		l.found.note(eventsv1.ModelKind_MODEL_KIND_CONFLICT, err)
	}
	return r
}

// vectorOfPair is the one that was published, unless one of the two was analysed anew; nil for a member that is far ahead.
func (l *learned) vectorOfPair(n *graph.Node, a *eventsv1.Ahead) []float32 {
	if s := l.stories[n.Change.Change]; s != nil && s.of == keyOf(n.Change) && !l.reanalysed[n.Change.Change] && !l.reanalysed[a.Change.Change] {
		if q := s.pairs[a.Change.Change]; q != nil && keyOf(q.Ahead) == keyOf(a.Change) && q.Features != nil && q.Schema == features.Version {
			return q.Features
		}
	}
	apart := len(n.Ahead) - n.IndexOf(a.Change.Change)
	if apart > maxPairs {
		return nil
	}
	return l.history.Pair(features.PairContext{
		Behind: n.Change, Ahead: a.Change, Between: a, Apart: apart, BehindSuccess: l.successOf(n.Change), AheadSuccess: l.successOf(a.Change),
	})
}

// successOf is the success that was last published of a revision, missing if none was.
func (l *learned) successOf(c *eventsv1.ChangeRef) float64 {
	if q := l.published(c); q != nil {
		return q.Success
	}
	return math.NaN()
}

// observe folds what came true of a pair.
func (l *learned) observe(q *eventsv1.PairObserved) {
	s := l.begin(q.Behind)
	if s.observed == nil {
		s.observed = map[refKey]bool{}
	}
	s.observed[keyOf(q.Ahead)] = true
	var met []string
	if n := l.graph.NodeAt(q.Behind); n != nil {
		if i := n.IndexOf(q.Ahead.GetChange()); i >= 0 {
			met = n.Ahead[i].Targets
		}
	}
	l.history.Observed(q.Conflict, met)
}
