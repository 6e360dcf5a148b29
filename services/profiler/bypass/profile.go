package bypass

import (
	"math"
	"slices"
	"sort"

	eventsv1 "landfall.build/events/v1"
	"landfall.build/services/graph"
	"landfall.build/services/profiler/recent"
)

// SourcePrior marks a prediction that rests on stated priors (M32).
const SourcePrior = "prior"

// Other sources than models: a duration summed from what the targets took before, a prior that what the queue's last changes and
// builds showed has moved (M32), and a pair that does not merge (M5).
const (
	sourceTargets = "targets"
	sourceQueue   = "queue"
	sourceMerge   = "merge conflict"
)

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
	model     Model                 `snapshot:"-"`
	durations *recent.Keys[rolling] // by target
	delta     *eventsv1.GraphDelta
	changed   map[string]bool // changes whose prediction may differ
	stories   map[string]*story
	learned   *learned // nil: somebody else foretells
}

// keptDurations bounds of how many targets it is kept what they took, those that passed last: some 12 MB. One that has not run for
// longer is as one that never ran, and shares the prior.
const keptDurations = 65_536

// rolling is the mean and spread of the last passed runs of a target.
type rolling struct{ mean, variance, n float64 }

// add folds one run; beyond 20 runs the older ones fade.
func (r *rolling) add(x float64) {
	r.n = math.Min(r.n+1, 20)
	d := x - r.mean
	r.mean += d / r.n
	r.variance += (d*(x-r.mean) - r.variance) / r.n
}

// New is a profile of which nothing is known. The models that the log puts into use foretell, the queue's priors where
// there is none.
func New() *Profile {
	p := Foretold(nil)
	p.learned = newLearned(p)
	p.model = p.learned
	return p
}

// Foretold is a profile of which nothing is known, with that model.
func Foretold(m Model) *Profile {
	return &Profile{
		graph: graph.New(), model: m, durations: recent.New[rolling](keptDurations), changed: map[string]bool{}, stories: map[string]*story{},
	}
}

// Apply folds one speculation.
func (p *Profile) Apply(s *eventsv1.Speculation) {
	p.delta = s.Delta
	if s.Delta == nil {
		return
	}
	p.leave(s.Delta.Gone)
	if p.learned != nil {
		p.learned.apply(s)
	}
	for _, n := range p.graph.Fold(s.Delta) {
		p.changed[n.Change.Change] = true
	}
	for _, d := range s.Delta.Durations {
		p.durations.Touch(d.Target).add(float64(d.DurationUs))
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
		p.changeAll()
	}
}

// changeAll has everything foretold anew.
func (p *Profile) changeAll() {
	for _, n := range p.graph.Order() {
		p.changed[n.Change.Change] = true
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
	if p.learned != nil {
		out.Models = p.learned.toTell()
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
	if !samePrediction(q, s.prediction) {
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
	if p.learned != nil {
		out.Observed = s.appendObserved(out.Observed, n)
	}
}

// samePrediction compares without reflection: it is asked at every record.
func samePrediction(a, b *eventsv1.Prediction) bool {
	return b != nil && a.Success == b.Success && a.DurationMeanUs == b.DurationMeanUs && a.DurationStdUs == b.DurationStdUs && keyOf(a.Change) == keyOf(b.Change) &&
		a.SuccessSource == b.SuccessSource && a.DurationSource == b.DurationSource && a.Schema == b.Schema && slices.EqualFunc(a.Features, b.Features, sameFeature)
}

func samePair(a, b *eventsv1.PairPrediction) bool {
	return b != nil && a.Conflict == b.Conflict && a.Source == b.Source && keyOf(a.Behind) == keyOf(b.Behind) && keyOf(a.Ahead) == keyOf(b.Ahead) &&
		a.Schema == b.Schema && slices.EqualFunc(a.Features, b.Features, sameFeature)
}

// sameFeature takes two that are missing for the same.
func sameFeature(x, y float32) bool { return x == y || x != x && y != y }

// Fold takes a profile as published.
func (p *Profile) Fold(o *eventsv1.Profile) {
	for _, q := range o.GetPredictions() {
		p.begin(q.Change).prediction = q
	}
	for _, q := range o.GetPairs() {
		p.begin(q.Behind).pairs[q.Ahead.Change] = q
	}
	p.delta, p.changed = nil, map[string]bool{}
	if p.learned != nil {
		p.learned.fold(o)
	}
}
