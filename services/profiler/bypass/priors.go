package bypass

import (
	"math"

	eventsv1 "landfall.build/events/v1"
	"landfall.build/services/graph"
)

// foretoldByPriors is p(c) and the duration of c's builds without a model: what the queue's settings say, and what its
// targets took before, the prior shared among those never seen.
func (p *Profile) foretoldByPriors(n *graph.Node, t targetTimes) *eventsv1.Prediction {
	s := p.graph.Settings
	out := &eventsv1.Prediction{
		Change: n.Change, Success: s.GetPriorSuccess(), SuccessSource: SourcePrior, DurationSource: SourcePrior,
		DurationMeanUs: float64(s.GetPriorDurationMeanUs()), DurationStdUs: float64(s.GetPriorDurationStdUs()),
	}
	if t.known == 0 {
		return out
	}
	unknown := float64(t.targets-t.known) / float64(t.targets)
	out.DurationMeanUs = t.mean + unknown*out.DurationMeanUs
	out.DurationStdUs = math.Sqrt(t.variance + unknown*unknown*out.DurationStdUs*out.DurationStdUs)
	out.DurationSource = sourceTargets
	return out
}

// targetTimes is what a change's targets took before, in microseconds.
type targetTimes struct {
	targets, known          int
	mean, variance, longest float64
}

func (p *Profile) timesOf(n *graph.Node) (t targetTimes) {
	for _, k := range n.Classes {
		for _, of := range k.Targets {
			t.targets++
			if r := p.durations.Look(of.Target); r != nil {
				t.known++
				t.mean += r.mean
				t.variance += r.variance + 0.01*r.mean*r.mean
				t.longest = math.Max(t.longest, r.mean)
			}
		}
	}
	return t
}

// seconds is missing where none of the targets ever ran.
func (t targetTimes) seconds(us float64) float64 {
	if t.known == 0 {
		return math.NaN()
	}
	return us / 1e6
}
