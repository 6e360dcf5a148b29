package proof

import (
	"hash/fnv"
	"slices"

	"google.golang.org/protobuf/proto"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/runner"
)

// otherCore is a core of another version of the code: it folds as the production core does, and says
// something else.
type otherCore struct {
	runner.QueueCore
	other func(proto.Message) proto.Message
}

// Decide implements runner.QueueCore.
func (c otherCore) Decide() proto.Message {
	out := c.QueueCore.Decide()
	if out == nil {
		return nil
	}
	return c.other(out)
}

// saying is a stage whose cores say something else.
func saying(s runner.Stage, other func(proto.Message) proto.Message) runner.Stage {
	make := s.New
	s.New = func(queue string) runner.QueueCore { return otherCore{make(queue), other} }
	return s
}

// version draws which version of a stage's code an instance runs: in a rolling upgrade both do, in turns.
func (m *machine) version(s runner.Stage) runner.Stage {
	switch {
	case m.sabotage == SabotageModels && s.Name == events.ServiceProfiler,
		m.sabotage == SabotageProposals && s.Name == events.ServiceProfiler:
		return saying(s, m.absurd)
	case m.sabotage == SabotageProposals && s.Name == events.ServicePrioritizer:
		return saying(s, m.unranked)
	case !m.versions || m.r.IntN(2) == 0:
		return s
	}
	m.tally[OtherVersions]++
	switch s.Name {
	case events.ServiceProfiler:
		return saying(s, reweighed)
	case events.ServicePrioritizer:
		return saying(s, reordered)
	}
	return saying(s, frugal)
}

// reweighed are the predictions of a model with other weights.
func reweighed(m proto.Message) proto.Message {
	p := m.(*eventsv1.Profile)
	weight := func(parts ...string) float64 {
		h := fnv.New32a()
		for _, part := range parts {
			h.Write([]byte(part))
		}
		return float64(h.Sum32()%1000) / 1000
	}
	for i, q := range p.Predictions {
		q = proto.CloneOf(q)
		w := weight(q.Change.Change)
		q.Success, q.DurationMeanUs, q.DurationStdUs = w, q.DurationMeanUs*(0.2+3*w), q.DurationStdUs*(0.1+2*w)
		p.Predictions[i] = q
	}
	for i, q := range p.Pairs {
		q = proto.CloneOf(q)
		q.Conflict = weight(q.Behind.Change, "+", q.Ahead.Change)
		p.Pairs[i] = q
	}
	return p
}

// reordered is a ranking by another policy.
func reordered(m proto.Message) proto.Message {
	p := m.(*eventsv1.Priority)
	if p.Ranking != nil {
		best := slices.Clone(p.Ranking.Best)
		slices.Reverse(best)
		p.Ranking = &eventsv1.Ranking{Best: best, Exact: p.Ranking.Exact}
	}
	return p
}

// frugal schedules one build fewer, if there are several.
func frugal(m proto.Message) proto.Message {
	d := m.(*eventsv1.Decision)
	last, n := -1, 0
	for i, item := range d.Items {
		if item.GetBuildScheduled() != nil {
			last = i
			n++
		}
	}
	if n > 1 {
		d.Items = slices.Delete(slices.Clone(d.Items), last, last+1)
	}
	return d
}
