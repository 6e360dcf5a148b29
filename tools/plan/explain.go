package plan

import (
	"landfall.build/engine/decision"
	"landfall.build/engine/explanation"
	eventsv1 "landfall.build/events/v1"
)

// Sources of predictions.
const (
	fromSnapshot = "snapshot"
	fromDefault  = "default"
)

func givenOr(assumed bool) string {
	if assumed {
		return fromDefault
	}
	return fromSnapshot
}

// explainer explains a plan with the code that explains a running queue.
type explainer struct {
	q *queue
	*explanation.Explainer
}

func newExplainer(q *queue, profiles []*eventsv1.Profile, asRun bool) *explainer {
	s := explanation.New(nil, nil)
	for _, p := range profiles {
		s.Apply(p)
	}
	return &explainer{q, s.Explainer(explanation.How{ByModel: !asRun})}
}

// build explains a ranked build.
func (e *explainer) build(b *Build, ranked *eventsv1.RankedBuild, why string) {
	w := e.Worth(ranked.Change, ranked.Assumed)
	b.Benefit, b.Soon, b.Factors = w.Benefit, w.Soon, w.Factors
	switch {
	case b.Action == actionKeep:
		b.Why = "it runs, and is among the best"
	case b.Action == actionStart:
		b.Why = why
	case e.Covered(ranked.Change, ranked.Assumed):
		b.Why = "running builds of other paths verify what it waits for"
	default:
		b.Why = "no slot is free for it"
	}
}

// decisions explains the decisions.
func (e *explainer) decisions(list []Decision) {
	for i := range list {
		d := &list[i]
		v := e.Verdict(e.q.ref(i))
		if d.Why = v.Why; d.Decision != decision.Wait.String() {
			continue
		}
		for _, p := range v.Paths {
			d.WaitsFor = append(d.WaitsFor, p.Assumed)
		}
	}
}
