package profile

import (
	"slices"
	"sort"

	"landfall.build/engine/graph"
	"landfall.build/engine/lru"
	eventsv1 "landfall.build/events/v1"
)

// Sources of predictions that rest on stated priors (M32): as they are, and updated by the last changes and builds of the queue.
const (
	SourcePrior = "prior"
	SourceQueue = "queue"
)

// Other sources than models.
const (
	sourceTargets = "targets"        // durations of the last runs of the targets
	sourceMerge   = "merge conflict" // M5
)

// Sources of predictions that a change's own builds have updated (M10). The first one is appended to the source before that.
const (
	sourceBuilt  = ", and its builds"
	sourcePassed = "built green with it"
)

// Predictor predicts a pending change and its pairs, before anything that its builds have shown is counted. The caller may change what
// it returns.
type Predictor interface {
	// Predict returns p, as of the mainline when the change arrived, and the duration of its builds.
	Predict(n *graph.Node) *eventsv1.Prediction
	// Pair returns r with a member of A(c).
	Pair(n *graph.Node, a *eventsv1.Ahead) *eventsv1.PairPrediction
}

// Profile is the state of the predictions of one queue.
type Profile struct {
	graph *graph.Graph
	// durations are of the steps of targets that passed last.
	durations *lru.Cache[string, rollingMean]
	// steps are the durations of the last steps of whichever targets.
	steps     rollingMean
	revisions map[string]*revision // of pending changes
	predictor Predictor            `snapshot:"-"` // trained, or the caller's
	trained   *trained             // nil if the caller has a predictor of its own

	// delta is that of the last speculation, until it is answered; changed has the changes whose predictions may differ since then.
	delta   *eventsv1.GraphDelta
	changed map[string]bool
}

// revision is what is known of a pending revision that the graph does not hold.
type revision struct {
	ref       refKey
	builds    buildEvidence
	published published
}

// published is what the profiles have said of a revision.
type published struct {
	prediction *eventsv1.Prediction
	pairs      map[string]*eventsv1.PairPrediction // by the change ahead
	// observed are the members of A(c) of which it was said whether the two break each other.
	observed map[refKey]bool
}

// refKey is a ChangeRef as a key.
type refKey struct {
	change   string
	revision uint64
}

func keyOf(r *eventsv1.ChangeRef) refKey { return refKey{r.GetChange(), r.GetRevision()} }

// keptDurations bounds the targets whose durations are kept, to about 12 MB. A target that drops out is predicted like one that
// never ran.
const keptDurations = 65_536

// rollingMean is the mean and variance of a target's durations, in microseconds.
type rollingMean struct {
	mean, variance float64
	runs           int // at most as many as count
}

// maxRuns and maxSteps are the numbers of runs of a target, and of a queue, from which on older ones lose weight.
const (
	maxRuns  = 20
	maxSteps = 256
)

func (r *rollingMean) add(x float64, most int) {
	r.runs = min(r.runs+1, most)
	d := x - r.mean
	r.mean += d / float64(r.runs)
	r.variance += (d*(x-r.mean) - r.variance) / float64(r.runs)
}

// New returns an empty profile. It predicts with the models that the log puts into use, and with priors where there is none.
func New() *Profile {
	p := NewWithPredictor(nil)
	p.trained = newTrained(p)
	p.predictor = p.trained
	return p
}

// NewWithPredictor returns an empty profile with a predictor of the caller's.
func NewWithPredictor(predictor Predictor) *Profile {
	return &Profile{
		graph: graph.New(), durations: lru.New[string, rollingMean](keptDurations), revisions: map[string]*revision{},
		predictor: predictor, changed: map[string]bool{},
	}
}

// Apply takes the next speculation.
func (p *Profile) Apply(s *eventsv1.Speculation) {
	p.delta = s.Delta
	if s.Delta == nil {
		return
	}
	p.noteLanded(s.Delta.Gone)
	if p.trained != nil {
		p.trained.apply(s)
	}
	for _, n := range p.graph.Fold(s.Delta) {
		p.changed[n.Change.Change] = true
	}
	for _, d := range s.Delta.Durations {
		p.durations.Touch(d.Target).add(float64(d.DurationUs), maxRuns)
		p.steps.add(float64(d.DurationUs), maxSteps)
	}
	for _, n := range s.Delta.Nodes {
		if !n.Mainline {
			p.changed[n.Change.Change] = true
		}
	}
	for _, g := range s.Delta.Gone {
		if p.graph.Node(g.Change.Change) == nil {
			delete(p.changed, g.Change.Change)
			delete(p.revisions, g.Change.Change)
		}
	}
	for _, b := range s.Delta.Builds {
		p.applyBuild(b)
	}
	if s.Delta.Settings != nil {
		p.changeAll()
	}
}

// changeAll has every pending change predicted again.
func (p *Profile) changeAll() {
	for _, n := range p.graph.Order() {
		p.changed[n.Change.Change] = true
	}
}

// Decide returns the profile that answers the last speculation; nil if that one has no delta, which no stage behind needs.
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
			p.appendPredictions(out, n)
		}
	}
	if p.trained != nil {
		out.Models = p.trained.unpublishedUses()
	}
	return out
}

// unknownRevision stands for a revision of which nothing is known.
var unknownRevision = &revision{}

// appendPredictions adds those predictions of a change that differ from the published ones.
func (p *Profile) appendPredictions(out *eventsv1.Profile, n *graph.Node) {
	r := p.revisions[n.Change.Change]
	if r == nil || r.ref != keyOf(n.Change) {
		r = unknownRevision
	}
	pairs := make(map[refKey]*eventsv1.PairPrediction, len(n.Ahead))
	predicted := make(map[refKey]float64, len(n.Ahead)) // r before what builds have shown, which pairs get below
	for _, a := range n.Ahead {
		if k := keyOf(a.Change); a.Conflicts {
			pairs[k] = p.predictor.Pair(n, a)
			predicted[k] = pairs[k].Conflict
		}
	}
	q := p.predictor.Predict(n)
	success, conflict := r.builds.posterior(q.Success, func(k refKey) float64 {
		if i := n.IndexOf(k.change); i < 0 || keyOf(n.Ahead[i].Change) != k {
			return p.graph.Settings.GetPriorConflict() // it left; a failure on top of it may still be one with it
		}
		return predicted[k]
	})
	if success != q.Success {
		q.Success, q.SuccessSource = success, q.SuccessSource+sourceBuilt
	}
	if !samePrediction(q, r.published.prediction) {
		out.Predictions = append(out.Predictions, q)
	}
	for _, a := range n.Ahead {
		k := keyOf(a.Change)
		q := pairs[k]
		if q == nil {
			continue
		}
		switch c := conflict(k); {
		case r.builds.passedWith[k]:
			q.Conflict, q.Source = c, sourcePassed
		case c != q.Conflict:
			q.Conflict, q.Source = c, q.Source+sourceBuilt
		}
		if !samePair(q, r.published.pairs[k.change]) {
			out.Pairs = append(out.Pairs, q)
		}
	}
	if p.trained != nil {
		out.Observed = r.published.appendObserved(out.Observed, n)
	}
}

// samePrediction avoids proto.Equal, which is slow: it is called at every record.
func samePrediction(a, b *eventsv1.Prediction) bool {
	return b != nil && a.Success == b.Success && a.DurationMeanUs == b.DurationMeanUs && a.DurationStdUs == b.DurationStdUs && keyOf(a.Change) == keyOf(b.Change) &&
		a.SuccessSource == b.SuccessSource && a.DurationSource == b.DurationSource && a.Schema == b.Schema && slices.EqualFunc(a.Features, b.Features, sameFeature)
}

func samePair(a, b *eventsv1.PairPrediction) bool {
	return b != nil && a.Conflict == b.Conflict && a.Source == b.Source && keyOf(a.Behind) == keyOf(b.Behind) && keyOf(a.Ahead) == keyOf(b.Ahead) &&
		a.Schema == b.Schema && slices.EqualFunc(a.Features, b.Features, sameFeature)
}

// sameFeature reports whether two features are equal; missing ones are.
func sameFeature(x, y float32) bool { return x == y || x != x && y != y }

// Fold takes a profile as published.
func (p *Profile) Fold(o *eventsv1.Profile) {
	for _, q := range o.GetPredictions() {
		p.at(q.Change).published.prediction = q
	}
	for _, q := range o.GetPairs() {
		s := &p.at(q.Behind).published
		if s.pairs == nil {
			s.pairs = map[string]*eventsv1.PairPrediction{}
		}
		s.pairs[q.Ahead.Change] = q
	}
	p.delta, p.changed = nil, map[string]bool{}
	if p.trained != nil {
		p.trained.fold(o)
	}
}

// at returns the entry of a revision. It replaces that of another revision of the change.
func (p *Profile) at(c *eventsv1.ChangeRef) *revision {
	r := p.revisions[c.GetChange()]
	if r == nil || r.ref != keyOf(c) {
		r = &revision{ref: keyOf(c)}
		p.revisions[c.GetChange()] = r
	}
	return r
}
