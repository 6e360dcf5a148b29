package bypass

import (
	"math"
	"sort"

	"google.golang.org/protobuf/proto"

	eventsv1 "landfall.build/events/v1"
	"landfall.build/services/graph"
)

// SourcePrior marks a prediction that rests on stated priors (M32).
const SourcePrior = "prior"

// sourceTargets marks a duration summed from what the targets took before.
const sourceTargets = "targets"

// Profile is the state of one queue: the graph, and what was last predicted of it.
type Profile struct {
	graph     *graph.Graph
	durations map[string]*rolling // by target
	delta     *eventsv1.GraphDelta
	changed   map[string]bool // changes whose prediction may differ

	published map[string]*eventsv1.Prediction
	pairs     map[[2]string]*eventsv1.PairPrediction
}

// rolling is the mean and spread of the last passed runs of a target.
type rolling struct{ mean, variance, n float64 }

// add folds one run; beyond 20 runs the older ones fade.
func (r *rolling) add(x float64) {
	r.n = math.Min(r.n+1, 20)
	d := x - r.mean
	r.mean += d / r.n
	r.variance += (d*(x-r.mean) - r.variance) / r.n
}

// New is a profile of which nothing is known.
func New() *Profile {
	return &Profile{
		graph: graph.New(), durations: map[string]*rolling{}, changed: map[string]bool{},
		published: map[string]*eventsv1.Prediction{}, pairs: map[[2]string]*eventsv1.PairPrediction{},
	}
}

// Apply folds one speculation.
func (p *Profile) Apply(s *eventsv1.Speculation) {
	p.delta = s.Delta
	if s.Delta == nil {
		return
	}
	p.graph.Fold(s.Delta)
	for _, d := range s.Delta.Durations {
		r := p.durations[d.Target]
		if r == nil {
			r = &rolling{}
			p.durations[d.Target] = r
		}
		r.add(float64(d.DurationUs))
	}
	for _, n := range s.Delta.Nodes {
		if !n.Mainline {
			p.changed[n.Change.Change] = true
		}
	}
	for _, g := range s.Delta.Gone {
		if p.graph.Node(g.Change.Change) == nil {
			delete(p.published, g.Change.Change)
			delete(p.changed, g.Change.Change)
			for k := range p.pairs {
				if k[0] == g.Change.Change || k[1] == g.Change.Change {
					delete(p.pairs, k)
				}
			}
		}
	}
	if s.Delta.Settings != nil {
		for _, n := range p.graph.Order() {
			p.changed[n.Change.Change] = true
		}
	}
}

// Decide gives the profile for the last speculation, nil if it has nothing for the stages behind.
func (p *Profile) Decide() *eventsv1.Profile {
	if p.delta == nil {
		return nil
	}
	out := &eventsv1.Profile{Delta: p.delta}
	ids := make([]string, 0, len(p.changed))
	for id := range p.changed {
		ids = append(ids, id)
	}
	sort.Strings(ids)
	for _, id := range ids {
		n := p.graph.Node(id)
		if n == nil {
			continue
		}
		if q := p.predict(n); !proto.Equal(q, p.published[id]) {
			out.Predictions = append(out.Predictions, q)
		}
		for _, a := range n.Ahead {
			if !a.Conflicts {
				continue
			}
			q := p.pair(n, a)
			if !proto.Equal(q, p.pairs[[2]string{id, a.Change.Change}]) {
				out.Pairs = append(out.Pairs, q)
			}
		}
	}
	return out
}

// Fold takes a profile as published.
func (p *Profile) Fold(o *eventsv1.Profile) {
	for _, q := range o.GetPredictions() {
		p.published[q.Change.Change] = q
	}
	for _, q := range o.GetPairs() {
		p.pairs[[2]string{q.Behind.Change, q.Ahead.Change}] = q
	}
	p.delta, p.changed = nil, map[string]bool{}
}

// predict is p(c) and the duration of c's builds: what its targets took before, the prior shared among
// those never seen.
func (p *Profile) predict(n *graph.Node) *eventsv1.Prediction {
	s := p.graph.Settings
	out := &eventsv1.Prediction{
		Change: n.Change, Success: s.GetPriorSuccess(), SuccessSource: SourcePrior, DurationSource: SourcePrior,
		DurationMeanUs: float64(s.GetPriorDurationMeanUs()), DurationStdUs: float64(s.GetPriorDurationStdUs()),
	}
	targets, known := 0, 0
	mean, variance := 0.0, 0.0
	for _, k := range n.Classes {
		for _, t := range k.Targets {
			targets++
			if r := p.durations[t.Target]; r != nil {
				known++
				mean += r.mean
				variance += r.variance + 0.01*r.mean*r.mean
			}
		}
	}
	if known == 0 {
		return out
	}
	unknown := float64(targets-known) / float64(targets)
	out.DurationMeanUs = mean + unknown*out.DurationMeanUs
	out.DurationStdUs = math.Sqrt(variance + unknown*unknown*out.DurationStdUs*out.DurationStdUs)
	out.DurationSource = sourceTargets
	return out
}

// pair is r(c, k): a textual conflict is certain (M5), the rest is the prior.
func (p *Profile) pair(n *graph.Node, a *eventsv1.Ahead) *eventsv1.PairPrediction {
	r := &eventsv1.PairPrediction{Behind: n.Change, Ahead: a.Change, Conflict: p.graph.Settings.GetPriorConflict(), Source: SourcePrior}
	if a.MergeConflict {
		r.Conflict, r.Source = 1, "merge conflict"
	}
	return r
}
