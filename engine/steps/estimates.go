package steps

import (
	"strings"

	eventsv1 "landfall.build/events/v1"
)

// average is the mean of the last so many values, older ones weighing ever less.
type average struct {
	count int64
	mean  int64
}

func (a *average) add(value, window int64) {
	a.count = min(a.count+1, window)
	a.mean += (value - a.mean) / a.count
}

// shrunk returns the mean, drawn towards another that counts as so many values.
func (a *average) shrunk(towards, weight int64) int64 {
	if a == nil {
		return towards
	}
	return (a.count*a.mean + weight*towards) / (a.count + weight)
}

// outcomes is what steps have shown: how long the passed ones took, in microseconds, and how many of a million failed.
type outcomes struct{ took, failed average }

func (h *outcomes) durations() *average {
	if h == nil {
		return nil
	}
	return &h.took
}

func (h *outcomes) failures() *average {
	if h == nil {
		return nil
	}
	return &h.failed
}

// How many results the averages of a target, of a package and of the queue go back, and as how many values of the next
// wider one each counts at least.
const (
	targetWindow, packageWindow, queueWindow = 16, 64, 256
	workWindow                               = 64
	targetPrior, packagePrior, queuePrior    = 1, 2, 8
)

// Before anything has run, a step is taken to last priorUs, and priorFailed of a million to fail.
const (
	priorUs     = 10_000_000
	priorFailed = 30_000
)

// estimates are the durations and failure rates of targets, each shrunk towards those of its package and of the queue
// (M33). It is a fold of StepFinished.
type estimates struct {
	targets  map[string]*outcomes
	packages map[string]*outcomes
	queue    outcomes
	// work is the work of a build when its tree was made, in microseconds of workers.
	work average
	// scaleUs is the queue's mean duration when the work of live builds was last estimated.
	scaleUs int64
}

func newEstimates() estimates {
	return estimates{targets: map[string]*outcomes{}, packages: map[string]*outcomes{}, scaleUs: priorUs}
}

// add folds the end of a step, and reports whether the queue's mean has moved by more than a quarter since the work of live
// builds was last estimated.
func (e *estimates) add(f *eventsv1.StepFinished) bool {
	of := outcomesOf(e.targets, f.GetTarget())
	pkg := outcomesOf(e.packages, packageOf(f.GetTarget()))
	var failed int64
	switch f.GetOutcome() {
	case eventsv1.StepOutcome_STEP_OUTCOME_PASSED:
		took := max(0, f.GetFinishedUs()-f.GetStartedUs())
		of.took.add(took, targetWindow)
		pkg.took.add(took, packageWindow)
		e.queue.took.add(took, queueWindow)
	case eventsv1.StepOutcome_STEP_OUTCOME_FAILED:
		failed = 1_000_000
	default:
		return false
	}
	of.failed.add(failed, targetWindow)
	pkg.failed.add(failed, packageWindow)
	e.queue.failed.add(failed, queueWindow)
	now := e.meanUs()
	if 4*now <= 5*e.scaleUs && 4*e.scaleUs <= 5*now {
		return false
	}
	e.scaleUs = now
	return true
}

func outcomesOf(m map[string]*outcomes, name string) *outcomes {
	h := m[name]
	if h == nil {
		h = &outcomes{}
		m[name] = h
	}
	return h
}

// meanUs is how long a step of the queue takes, at least a microsecond.
func (e *estimates) meanUs() int64 {
	if e.queue.took.count == 0 {
		return priorUs
	}
	return max(1, e.queue.took.mean)
}

// patience is how many builds' work a change may have waited for before its wait counts as much as its worth (M33).
const patience = 16

// addWork counts the work of a build.
func (e *estimates) addWork(us int64) {
	if us > 0 {
		e.work.add(us, workWindow)
	}
}

// patienceUs returns the time that a wait is held to where so many workers share the work.
func (e *estimates) patienceUs(workers int) int64 {
	if e.work.count == 0 {
		return patience * priorUs
	}
	return patience * e.work.mean / int64(max(1, workers))
}

// durationUs returns how long a step of the target is likely to take, at least a microsecond.
func (e *estimates) durationUs(target string) int64 {
	pkg := e.packages[packageOf(target)].durations().shrunk(e.meanUs(), packagePrior)
	return max(1, e.targets[target].durations().shrunk(pkg, targetPrior))
}

// failureRate returns how likely a step of the target is to fail, from 0 to 1.
func (e *estimates) failureRate(target string) float64 {
	queue := e.queue.failed.shrunk(priorFailed, queuePrior)
	pkg := e.packages[packageOf(target)].failures().shrunk(queue, packagePrior)
	return float64(e.targets[target].failures().shrunk(pkg, targetPrior)) / 1_000_000
}

// packageOf returns the folder of a target: what comes before its colon, else before its last slash.
func packageOf(target string) string {
	if at := strings.LastIndexByte(target, ':'); at >= 0 {
		return target[:at]
	}
	return target[:max(0, strings.LastIndexByte(target, '/'))]
}
