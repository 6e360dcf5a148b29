package bypass

import (
	"math"

	eventsv1 "landfall.build/events/v1"
	"landfall.build/services/graph"
)

// How much the stated priors count: as much as that many changes, or builds, of which they are the mean (and the spread).
const (
	priorChanges = 10
	priorBuilds  = 5
)

// foretoldByPriors is p(c) and the duration of c's builds without a model: what the queue's settings say, moved by how its last
// changes ended and what its last builds took, and what the change's targets took before, the former shared among those never seen
// (M32).
func (l *learned) foretoldByPriors(n *graph.Node, t targetTimes) *eventsv1.Prediction {
	s := l.graph.Settings
	out := &eventsv1.Prediction{
		Change: n.Change, Success: s.GetPriorSuccess(), SuccessSource: SourcePrior, DurationSource: SourcePrior,
		DurationMeanUs: float64(s.GetPriorDurationMeanUs()), DurationStdUs: float64(s.GetPriorDurationStdUs()),
	}
	if changes, failed := l.history.Ended(); changes > 0 {
		out.Success, out.SuccessSource = betaMean(out.Success, changes-failed, failed), sourceQueue
	}
	if mean, std, moved := pooled(out.DurationMeanUs/1e6, out.DurationStdUs/1e6, l.history.BuildSeconds()); moved {
		out.DurationMeanUs, out.DurationStdUs, out.DurationSource = mean*1e6, std*1e6, sourceQueue
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

// betaMean is the mean of the Beta distribution of a share, of which the prior is that of priorChanges, once some passed and some
// failed.
func betaMean(prior float64, passed, failed int) float64 {
	return (priorChanges*prior + float64(passed)) / float64(priorChanges+passed+failed)
}

// shortestSeconds bounds what a build is taken for: the logarithm of none is not a number.
const shortestSeconds = 0.01

// pooled is the mean and deviation of the LogNormal of all builds of a queue: the logarithms of their seconds, with a prior that
// counts as priorBuilds of them. It is not moved where nothing was built, or where no prior is stated.
func pooled(priorMean, priorStd float64, seconds []float64) (mean, std float64, moved bool) {
	if len(seconds) == 0 || !(priorMean > 0) {
		return priorMean, priorStd, false
	}
	// The LogNormal of that mean and deviation.
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
