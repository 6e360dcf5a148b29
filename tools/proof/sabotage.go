package proof

import (
	"math"
	"slices"

	"google.golang.org/protobuf/proto"

	eventsv1 "landfall.build/events/v1"
)

// Sabotage makes a part of the pipeline lie in every schedule, not just now and then. What lands must not
// depend on it (ARCHITECTURE, "The guard").
type Sabotage string

// The kinds of sabotage.
const (
	// SabotageAnalysis: the analyzer calls random pairs independent.
	SabotageAnalysis Sabotage = "analysis"
	// SabotageModels: the profiler predicts what makes no sense, NaN among it.
	SabotageModels Sabotage = "models"
	// SabotageProposals: enumerator, profiler and prioritizer propose nonsense. Who is told lies about the graph
	// cannot decide everything: that all are decided is not promised then. What lands, and who is rejected or ejected, is.
	SabotageProposals Sabotage = "proposals"
)

// AllSabotage lists the kinds.
func AllSabotage() []Sabotage { return []Sabotage{SabotageAnalysis, SabotageModels, SabotageProposals} }

// Known says whether it is one of AllSabotage, or none.
func (s Sabotage) Known() bool { return s == "" || slices.Contains(AllSabotage(), s) }

// absurd are predictions that make no sense.
func (m *machine) absurd(msg proto.Message) proto.Message {
	p := msg.(*eventsv1.Profile)
	draw := func() float64 {
		return []float64{math.NaN(), math.Inf(1), math.Inf(-1), -1, 0, 1, 2, 1e300, m.r.Float64()}[m.r.IntN(9)]
	}
	for i, q := range p.Predictions {
		q = proto.CloneOf(q)
		q.Success, q.DurationMeanUs, q.DurationStdUs = draw(), draw(), draw()
		p.Predictions[i] = q
		m.tally[Sabotages]++
	}
	for i, q := range p.Pairs {
		q = proto.CloneOf(q)
		q.Conflict = draw()
		p.Pairs[i] = q
	}
	return p
}

// unranked proposes builds of any changes on any others, now and then of those that were really ranked.
func (m *machine) unranked(msg proto.Message) proto.Message {
	p := msg.(*eventsv1.Priority)
	if p.Ranking == nil && p.Edit == nil || m.healed || m.r.IntN(3) == 0 {
		return p
	}
	m.tally[Sabotages]++
	real := p.Ranking.GetBest()
	for _, s := range p.Edit.GetSplices() {
		real = append(real, s.Inserted...)
	}
	refs := []*eventsv1.ChangeRef{{Change: "ghost", Revision: 1}}
	for _, b := range real {
		refs = append(refs, b.Change)
	}
	for _, n := range p.Delta.GetNodes() {
		refs = append(refs, n.Change)
	}
	ref := func() *eventsv1.ChangeRef { return refs[m.r.IntN(len(refs))] }
	out := &eventsv1.Ranking{Exact: true}
	for range m.r.IntN(8) {
		b := &eventsv1.RankedBuild{Change: ref(), Needed: math.NaN(), Value: math.Inf(1)}
		for range m.r.IntN(4) {
			b.Assumed = append(b.Assumed, ref())
		}
		out.Best = append(out.Best, b)
	}
	out.Best = append(out.Best, real[:m.r.IntN(len(real)+1)]...)
	p.Ranking, p.Edit = out, nil
	return p
}

// nonsense makes a graph of what the enumerator knows that is not so: what is red is green, who meets does
// not, what is held is free.
func (m *machine) nonsense(s *eventsv1.Speculation) *eventsv1.Speculation {
	if s.Delta == nil || m.healed || m.r.IntN(2) == 0 {
		return s
	}
	m.tally[Sabotages]++
	s = proto.CloneOf(s)
	if l := s.Delta.Mainline; l != nil && m.r.IntN(3) == 0 {
		l.Analyzed, l.Paused = true, false
	}
	for _, n := range s.Delta.Nodes {
		if m.r.IntN(2) == 0 {
			m.untrue(n)
		}
	}
	return s
}

// untrue makes a node lie.
func (m *machine) untrue(n *eventsv1.Node) {
	states := []eventsv1.OutcomeState{
		eventsv1.OutcomeState_OUTCOME_STATE_GREEN, eventsv1.OutcomeState_OUTCOME_STATE_RED, eventsv1.OutcomeState_OUTCOME_STATE_EXHAUSTED,
		eventsv1.OutcomeState_OUTCOME_STATE_BLOCKED, eventsv1.OutcomeState_OUTCOME_STATE_UNSPECIFIED,
	}
	state := func() eventsv1.OutcomeState { return states[m.r.IntN(len(states))] }
	for _, k := range n.Classes {
		for _, o := range k.Outcomes {
			o.State = state()
		}
		if m.r.IntN(2) == 0 && len(k.Outcomes) == 0 {
			k.Outcomes = append(k.Outcomes, &eventsv1.Outcome{State: state()}) // of no members
		}
	}
	for _, a := range n.Ahead {
		a.MergeConflict, a.Required, a.Conflicts = m.r.IntN(4) == 0, m.r.IntN(4) == 0, m.r.IntN(2) == 0
	}
	switch m.r.IntN(6) {
	case 0:
		n.Guard = nil
	case 1:
		n.Guard = &eventsv1.Guard{State: state()}
	case 2:
		n.Holds, n.Analyzed = nil, true
	case 3:
		n.MissingRequirement = "ghost"
	case 4:
		n.Epoch++
	case 5:
		n.Paths = nil
	}
}
