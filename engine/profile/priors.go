package profile

import (
	"math"

	"landfall.build/engine/graph"
	eventsv1 "landfall.build/events/v1"
)

// How much a stated prior counts: as much as that many changes, or builds, with its mean and deviation.
const (
	priorChanges = 10
	priorBuilds  = 5
)

// priorPrediction predicts without a model (M32): from the stated priors, updated by the outcomes of the queue's last changes and the
// durations of its last builds. A duration is the sum over the change's targets, if one of them has run. Those that never ran are
// expected to take what the queue's last steps took.
func (t *trained) priorPrediction(n *graph.Node, d targetDurations) *eventsv1.Prediction {
	s := t.profile.graph.Settings
	out := &eventsv1.Prediction{
		Change: n.Change, Success: s.GetPriorSuccess(), SuccessSource: SourcePrior, DurationSource: SourcePrior,
		DurationMeanUs: float64(s.GetPriorDurationMeanUs()), DurationStdUs: float64(s.GetPriorDurationStdUs()),
	}
	if changes, failed := t.history.LastOutcomes(); changes > 0 {
		out.Success, out.SuccessSource = betaMean(out.Success, changes-failed, failed), SourceQueue
	}
	if d.known == 0 {
		if mean, std, updated := pooled(out.DurationMeanUs/1e6, out.DurationStdUs/1e6, t.history.BuildSeconds()); updated {
			out.DurationMeanUs, out.DurationStdUs, out.DurationSource = mean*1e6, std*1e6, SourceQueue
		}
		return out
	}
	steps := &t.profile.steps
	out.DurationMeanUs, out.DurationStdUs, out.DurationSource = d.mean, math.Sqrt(d.variance), sourceTargets
	if unknown := float64(d.targets - d.known); unknown > 0 && steps.runs > 0 {
		out.DurationMeanUs += unknown * steps.mean
		out.DurationStdUs = math.Sqrt(d.variance + unknown*(steps.variance+steps.mean*steps.mean/float64(steps.runs)))
	}
	return out
}

// betaMean returns the mean of a Beta distribution whose prior counts as priorChanges, after some changes that passed and failed.
func betaMean(prior float64, passed, failed int) float64 {
	return (priorChanges*prior + float64(passed)) / float64(priorChanges+passed+failed)
}

// shortestSeconds bounds the duration of a build from below, so that its logarithm is finite.
const shortestSeconds = 0.01

// pooled returns the mean and deviation of a LogNormal of durations, whose prior counts as priorBuilds builds. updated is false, and
// the prior is returned, without builds or without a prior.
func pooled(priorMean, priorStd float64, seconds []float64) (mean, std float64, updated bool) {
	if len(seconds) == 0 || !(priorMean > 0) {
		return priorMean, priorStd, false
	}
	// The parameters of the LogNormal with the prior's mean and deviation.
	priorSquare := math.Log1p(priorStd * priorStd / (priorMean * priorMean))
	priorMu := math.Log(priorMean) - priorSquare/2
	n := float64(len(seconds))
	sum, squares := 0.0, 0.0
	for _, x := range seconds {
		sum += math.Log(math.Max(x, shortestSeconds))
	}
	seen := sum / n
	for _, x := range seconds {
		d := math.Log(math.Max(x, shortestSeconds)) - seen
		squares += d * d
	}
	mu := (priorBuilds*priorMu + sum) / (priorBuilds + n)
	square := (priorBuilds*priorSquare + squares + priorBuilds*n/(priorBuilds+n)*(seen-priorMu)*(seen-priorMu)) / (priorBuilds + n)
	mean = math.Exp(mu + square/2)
	return mean, mean * math.Sqrt(math.Expm1(square)), true
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
