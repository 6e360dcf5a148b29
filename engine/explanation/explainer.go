package explanation

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"landfall.build/engine/graph"
	"landfall.build/engine/memberset"
	"landfall.build/engine/profile"
	"landfall.build/engine/ranking"
	eventsv1 "landfall.build/events/v1"
)

// How configures an Explainer.
type How struct {
	// ByModel is set if the builds were ranked by ranking.NewFundingAll.
	ByModel bool
	// Worthless reports whether a build had been published as worthless when the profile at a position was ranked. Nil means never.
	Worthless func(build string, position int64) bool
	// Proof returns the steps that settled a version of a class of a change: the version that these members make. Nil means that no
	// steps are known.
	Proof func(n *graph.Node, class int, members memberset.Set) []Proof
	// Active returns the builds of a change that were scheduled and have not ended. Nil means the builds that the profiles have as
	// prepared, some of which may have been aborted.
	Active func(c *eventsv1.ChangeRef) []Scheduled
	// Factors and Terms bound how many factors of a build, and terms of a factor, are listed: the smallest ones. The others are
	// multiplied to one. 0 lists all.
	Factors, Terms int
}

// Scheduled is a build with the changes that it assumes to land.
type Scheduled struct {
	Build   string
	Assumed []*eventsv1.ChangeRef
}

// Proof is a step that verified a target version.
type Proof struct {
	Target string `json:"target"`
	// Build is the build in whose tree the step ran, Attempt the number of the run.
	Build   string `json:"build,omitempty"`
	Attempt uint32 `json:"attempt,omitempty"`
	// Outcome is passed, failed and so on.
	Outcome string `json:"outcome,omitempty"`
}

// Explainer answers questions about one state, which must not change while it is used. It is not safe for concurrent use.
type Explainer struct {
	how       How
	s         *State
	g         *graph.Graph
	now       int64 // as the ranking's clock has it, in microseconds
	marginals map[string]float64
	timings   map[string]timing
	running   map[string][]active
	scratch   []part // of Explainer.parts
}

// timing is when the oldest build of a change began, in seconds relative to now, and the remaining duration of its work (M12).
type timing struct {
	start float64
	left  profile.Duration
}

// Explainer returns what answers questions about the pending changes.
func (s *State) Explainer(how How) *Explainer {
	nodes := slices.SortedFunc(maps.Values(s.nodes), func(a, b *eventsv1.Node) int { return cmp.Compare(a.Position, b.Position) })
	e := &Explainer{
		how: how, s: s, g: graph.New(), now: s.stamp / ranking.Instant * ranking.Instant,
		marginals: map[string]float64{}, timings: map[string]timing{}, running: map[string][]active{},
	}
	e.g.Fold(&eventsv1.GraphDelta{Settings: s.settings, Mainline: s.mainline, Nodes: nodes})
	return e
}

// success returns p of a change, and where it comes from.
func (e *Explainer) success(id string) Term {
	if q := e.s.predictions[id]; q != nil {
		return Term{Says: "success of " + id, Value: q.Success, From: q.SuccessSource}
	}
	return Term{Says: "success of " + id + ", which is not predicted yet", Value: 1, From: FromRule}
}

// conflictOf returns r of a change and a member, and where it comes from. pairs are those of the change.
func conflictOf(pairs map[string]pair, n *graph.Node, a *eventsv1.Ahead) (r float64, source string) {
	p, known := pairs[a.Change.Change]
	if !known || p.behind != n.Change.Revision || p.ahead != a.Change.Revision {
		return 0, FromRule
	}
	return p.conflict, p.source
}

// marginal returns m of M7, 0 for a change that is not pending.
func (e *Explainer) marginal(id string) float64 {
	n := e.g.Node(id)
	if n == nil {
		return 0
	}
	if m, known := e.marginals[id]; known {
		return m
	}
	m := e.marginalOf(n)
	e.marginals[id] = m
	return m
}

func (e *Explainer) marginalOf(n *graph.Node) float64 {
	if n.MissingRequirement != "" {
		return 0
	}
	if len(n.Ahead) == 0 && n.Analyzed {
		switch state := n.Path(memberset.New(0)); {
		case state == graph.Green && !e.g.Held(n):
			return 1
		case state == graph.Red:
			return 0
		}
	}
	m := e.success(n.Change.Change).Value
	pairs := e.s.pairs[n.Change.Change]
	for _, a := range n.Ahead {
		r, _ := conflictOf(pairs, n, a)
		of := e.g.Node(a.Change.Change)
		switch gone := of == nil || of.Position >= n.Position; {
		case gone && a.Required:
			return 0
		case gone:
		case a.Required:
			m *= e.marginal(a.Change.Change) * (1 - r) // M5a
		case a.Conflicts:
			m *= 1 - e.marginal(a.Change.Change)*r
		}
	}
	return m
}

// timing returns the timing of a change, by the oldest of its builds whose path can still come about (M11, M12).
func (e *Explainer) timing(id string) timing {
	if t, known := e.timings[id]; known {
		return t
	}
	q := e.s.predictions[id]
	t := timing{left: profile.Duration{Mean: q.GetDurationMeanUs() / 1e6, Std: q.GetDurationStdUs() / 1e6}}
	for _, x := range e.active(id) {
		if _, alive := e.path(x.run); alive {
			t.start = float64(x.since-e.now) / 1e6
			t.left = t.left.Beyond(max(0, -t.start))
			break
		}
	}
	e.timings[id] = t
	return t
}

// finishesBefore returns F(i,j) of M11 if member j is bypassable (M13), else 0.
func (e *Explainer) finishesBefore(n *graph.Node, j int) float64 {
	a := n.Ahead[j]
	if e.g.Settings == nil || e.g.Settings.BypassThreshold == nil || a.Required {
		return 0
	}
	if of := n.Member(j); of != nil && len(of.Holds) > 0 {
		return 1 // a hold may last as long as it likes, so nothing waits for it
	}
	i, of := e.timing(n.Change.Change), e.timing(a.Change.Change)
	if f := profile.FinishesBefore(i.start, i.left, of.start, of.left); f >= e.g.Settings.GetBypassThreshold() {
		return f
	}
	return 0
}

// fundedBefore returns F for each member of a change, 0 where a bypass would need too many builds (decision 0019).
func (e *Explainer) fundedBefore(n *graph.Node) []float64 {
	finishes := make([]float64, len(n.Ahead))
	for j := range finishes {
		finishes[j] = e.finishesBefore(n, j)
	}
	most := ranking.MaxFunded(e.g.Settings)
	if e.how.ByModel {
		most = math.MaxInt
	}
	funded := slices.Clone(finishes)
	for _, k := range n.Classes {
		count := 0
		for _, m := range k.Members {
			if finishes[m] > 0 {
				count++
			}
		}
		if count > most && !k.Settled() {
			for _, m := range k.Members {
				funded[m] = 0
			}
		}
	}
	return funded
}

// Prediction is what is expected of a change alone, and which model expects it.
type Prediction struct {
	Success     float64 `json:"success"`
	SuccessFrom string  `json:"success_from"`
	// The duration of its builds, in seconds.
	DurationMean float64 `json:"duration_mean"`
	DurationStd  float64 `json:"duration_std"`
	DurationFrom string  `json:"duration_from"`
	// Lands is the probability that it lands (M7).
	Lands float64 `json:"lands"`
}

// Prediction returns what is expected of a change, nil if it is not pending or not predicted.
func (e *Explainer) Prediction(c *eventsv1.ChangeRef) *Prediction {
	q := e.s.predictions[c.GetChange()]
	if e.g.NodeAt(c) == nil || q == nil || q.Change.GetRevision() != c.GetRevision() {
		return nil
	}
	return &Prediction{
		Success: q.Success, SuccessFrom: q.SuccessSource, DurationMean: q.DurationMeanUs / 1e6, DurationStd: q.DurationStdUs / 1e6,
		DurationFrom: q.DurationSource, Lands: e.marginal(c.GetChange()),
	}
}
