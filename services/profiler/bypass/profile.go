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

// Sources of predictions that rest on what was built of a change (M10), appended to where they come from before that.
const (
	SourceBuilt  = ", and its builds"
	SourcePassed = "built green with it"
)

// Model foretells what is expected of a change before anything of it is built. The node is pending; what it returns is
// the caller's.
type Model interface {
	// Predict is p on the mainline as it was when the change arrived, and how long its builds take.
	Predict(n *graph.Node) *eventsv1.Prediction
	// Pair is r with a member.
	Pair(n *graph.Node, a *eventsv1.Ahead) *eventsv1.PairPrediction
}

// Profile is the state of one queue: the graph, what its builds have shown, and what was last predicted of it.
type Profile struct {
	graph     *graph.Graph
	model     Model               `snapshot:"-"`
	durations map[string]*rolling // by target
	delta     *eventsv1.GraphDelta
	changed   map[string]bool // changes whose prediction may differ
	stories   map[string]*story
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

// New is a profile of which nothing is known, with the queue's priors for a model.
func New() *Profile {
	p := Foretold(nil)
	p.model = priors{p}
	return p
}

// Foretold is a profile of which nothing is known, with that model.
func Foretold(m Model) *Profile {
	return &Profile{
		graph: graph.New(), model: m, durations: map[string]*rolling{}, changed: map[string]bool{}, stories: map[string]*story{},
	}
}

// Apply folds one speculation.
func (p *Profile) Apply(s *eventsv1.Speculation) {
	p.delta = s.Delta
	if s.Delta == nil {
		return
	}
	p.leave(s.Delta.Gone)
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
			delete(p.changed, g.Change.Change)
			delete(p.stories, g.Change.Change)
		}
	}
	for _, b := range s.Delta.Builds {
		p.progress(b)
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
		if n := p.graph.Node(id); n != nil {
			p.expect(n, out)
		}
	}
	return out
}

// nothing is the story of a change of which nothing was published yet.
var nothing = &story{}

// expect adds what is expected of a change and is not published.
func (p *Profile) expect(n *graph.Node, out *eventsv1.Profile) {
	s := p.stories[n.Change.Change]
	if s == nil || s.of != keyOf(n.Change) {
		s = nothing
	}
	foretold := make(map[refKey]*eventsv1.PairPrediction, len(n.Ahead))
	for _, a := range n.Ahead {
		if a.Conflicts {
			foretold[keyOf(a.Change)] = p.model.Pair(n, a)
		}
	}
	q := p.model.Predict(n)
	success, conflict := s.chances(q.Success, func(k refKey) float64 { return foretold[k].GetConflict() })
	if success != q.Success {
		q.Success, q.SuccessSource = success, q.SuccessSource+SourceBuilt
	}
	if !proto.Equal(q, s.prediction) {
		out.Predictions = append(out.Predictions, q)
	}
	for _, a := range n.Ahead {
		q := foretold[keyOf(a.Change)]
		if q == nil {
			continue
		}
		switch r := conflict(keyOf(a.Change)); {
		case s.passed[keyOf(a.Change)]:
			q.Conflict, q.Source = r, SourcePassed
		case r != q.Conflict:
			q.Conflict, q.Source = r, q.Source+SourceBuilt
		}
		if !samePair(q, s.pairs[a.Change.Change]) {
			out.Pairs = append(out.Pairs, q)
		}
	}
}

func samePair(a, b *eventsv1.PairPrediction) bool {
	return b != nil && a.Conflict == b.Conflict && a.Source == b.Source && keyOf(a.Behind) == keyOf(b.Behind) && keyOf(a.Ahead) == keyOf(b.Ahead)
}

// Fold takes a profile as published.
func (p *Profile) Fold(o *eventsv1.Profile) {
	for _, q := range o.GetPredictions() {
		p.begin(q.Change).prediction = q
	}
	for _, q := range o.GetPairs() {
		p.begin(q.Behind).pairs[q.Ahead.Change] = q
	}
	p.delta, p.changed = nil, map[string]bool{}
}

// priors is the model as long as there is none: what the queue's settings say, and what targets took before.
type priors struct{ *Profile }

// Predict is p(c) and the duration of c's builds: what its targets took before, the prior shared among
// those never seen.
func (p priors) Predict(n *graph.Node) *eventsv1.Prediction {
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

// Pair is r(c, k): a textual conflict is certain (M5), the rest is the prior.
func (p priors) Pair(n *graph.Node, a *eventsv1.Ahead) *eventsv1.PairPrediction {
	r := &eventsv1.PairPrediction{Behind: n.Change, Ahead: a.Change, Conflict: p.graph.Settings.GetPriorConflict(), Source: SourcePrior}
	if a.MergeConflict {
		r.Conflict, r.Source = 1, "merge conflict"
	}
	return r
}
