package profile

import (
	"math"

	"landfall.build/engine/graph"
	eventsv1 "landfall.build/events/v1"
)

// priorChanges is how many changes a stated prior counts as.
const priorChanges = 10

// shortestUs bounds the duration of a build from below, so that its logarithm is finite.
const shortestUs = 10_000

// priorPrediction predicts without a model (M32): from the stated priors, the outcomes of the queue's last changes and the durations of
// the last steps. A duration is the sum over the change's targets. One that never ran is expected to take what the queue's steps took
// last; before any step has passed the change takes the stated prior.
func (t *trained) priorPrediction(n *graph.Node, d targetDurations) *eventsv1.Prediction {
	s := t.profile.graph.Settings
	out := &eventsv1.Prediction{
		Change: n.Change, Success: s.GetPriorSuccess(), SuccessSource: SourcePrior, DurationSource: SourcePrior,
		DurationMeanUs: float64(s.GetPriorDurationMeanUs()), DurationStdUs: float64(s.GetPriorDurationStdUs()),
	}
	if changes, failed := t.history.LastOutcomes(); changes > 0 {
		out.Success, out.SuccessSource = betaMean(out.Success, changes-failed, failed), SourceQueue
	}
	steps := &t.profile.steps
	if steps.runs == 0 && d.known == 0 {
		return out
	}
	if out.DurationSource = sourceTargets; d.known == 0 {
		out.DurationSource = SourceQueue
	}
	out.DurationMeanUs, out.DurationStdUs = d.mean, math.Sqrt(d.variance)
	if unknown := float64(d.targets - d.known); unknown > 0 && steps.runs > 0 {
		out.DurationMeanUs += unknown * steps.mean
		out.DurationStdUs = math.Sqrt(d.variance + unknown*(steps.variance+steps.mean*steps.mean/float64(steps.runs)))
	}
	out.DurationMeanUs = math.Max(out.DurationMeanUs, shortestUs)
	return out
}

// betaMean returns the mean of a Beta distribution whose prior counts as priorChanges, after some changes that passed and failed.
func betaMean(prior float64, passed, failed int) float64 {
	return (priorChanges*prior + float64(passed)) / float64(priorChanges+passed+failed)
}

// targetDurations sums up the durations of a change's targets, in microseconds.
type targetDurations struct {
	// known is how many of the targets have run.
	targets, known int
	// mean and variance are of the sum, longest is the mean of the slowest.
	mean, variance, longest float64
}

func (p *Profile) durationsOf(n *graph.Node) (d targetDurations) {
	for _, k := range n.Classes {
		for _, of := range k.Targets {
			d.targets++
			if r := p.durations.Peek(of.Target); r != nil {
				d.known++
				d.mean += r.mean
				d.variance += r.variance + 0.01*r.mean*r.mean
				d.longest = math.Max(d.longest, r.mean)
			}
		}
	}
	return d
}

// seconds converts microseconds; NaN if none of the targets ever ran.
func (d targetDurations) seconds(us float64) float64 {
	if d.known == 0 {
		return math.NaN()
	}
	return us / 1e6
}
