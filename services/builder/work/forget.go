package work

import (
	eventsv1 "landfall.build/events/v1"
)

// keptGreen bounds how many versions that are green, and that no build asks for, are remembered.
const keptGreen = 1 << 17

// version is what is known of a target version beside its ledger entry.
type version struct {
	// builds that ask for it, lingering ones among them.
	builds []*build
	// attempts that say something, in the order of the log, without what only people read.
	attempts []*eventsv1.StepFinished
	// listed: it is in Queue.settled.
	listed bool
}

func (q *Queue) version(v Version) *version {
	known := q.versions[v]
	if known == nil {
		known = &version{}
		q.versions[v] = known
	}
	return known
}

// Evidence is what the log has about a version: the attempts that count, in order. It is to be repeated
// when a build is prepared that has the version: readers that remember drop a repeat, and one that had
// forgotten the version, since no pending change had it, would wait for a run that nobody makes.
func (q *Queue) Evidence(v Version) []*eventsv1.StepFinished {
	if known := q.versions[v]; known != nil {
		return known.attempts
	}
	return nil
}

// release lets go of a version that no build asks for. What is green is remembered for a long time: it is
// never built again (M24). What is forgotten is run again as attempt 1, which readers that remember take
// for a repeat; therefore only versions of which everybody else's memory says green may go. One with
// another past stays, or else a result would be dropped as a repeat of an older, different one.
func (q *Queue) release(v Version, known *version) {
	if len(known.builds) > 0 {
		return
	}
	if q.ledger.Result(v) == nil {
		delete(q.versions, v)
		return
	}
	if known.listed || !known.green() {
		return
	}
	known.listed = true
	q.settled = append(q.settled, v)
	for len(q.settled) > q.keepGreen {
		oldest := q.settled[0]
		q.settled = q.settled[1:]
		if o := q.versions[oldest]; o != nil {
			o.listed = false
			if len(o.builds) == 0 && o.green() {
				delete(q.versions, oldest)
				q.ledger.Forget(oldest)
			}
		}
	}
}

// green says that every attempt that counts has passed.
func (k *version) green() bool {
	for _, f := range k.attempts {
		if f.Outcome != eventsv1.StepOutcome_STEP_OUTCOME_PASSED {
			return false
		}
	}
	return len(k.attempts) > 0
}

func counted(o eventsv1.StepOutcome) bool {
	switch o {
	case eventsv1.StepOutcome_STEP_OUTCOME_PASSED, eventsv1.StepOutcome_STEP_OUTCOME_FAILED,
		eventsv1.StepOutcome_STEP_OUTCOME_TIMED_OUT, eventsv1.StepOutcome_STEP_OUTCOME_COULD_NOT_RUN:
		return true
	}
	return false
}

// slim is a finished step without the end of its output and its single commands: the state holds one for
// every version that was ever run.
func slim(f *eventsv1.StepFinished) *eventsv1.StepFinished {
	return &eventsv1.StepFinished{
		Target: f.GetTarget(), Hash: f.GetHash(), Attempt: f.GetAttempt(), Outcome: f.GetOutcome(),
		FailedCommand: f.GetFailedCommand(), Reason: f.GetReason(), OutputBytes: f.GetOutputBytes(), Log: f.GetLog(),
		Worker: f.GetWorker(), Build: f.GetBuild(), StartedUs: f.GetStartedUs(), FinishedUs: f.GetFinishedUs(),
	}
}

// duration is the mean time that a target's passed steps took.
type duration struct {
	count  int64
	meanUs int64
}

// longMemory bounds the weight of the past, so that a target that became slow is soon known for it.
const longMemory = 16

// unpredicted is longer than every step: what has never run goes first (M27).
const unpredicted = int64(1) << 62

func (q *Queue) learn(f *eventsv1.StepFinished) {
	d := q.durations[f.Target]
	if d == nil {
		d = &duration{}
		q.durations[f.Target] = d
	}
	d.count = min(d.count+1, longMemory)
	d.meanUs += (max(0, f.FinishedUs-f.StartedUs) - d.meanUs) / d.count
}

// predicted is how long a step of the target takes, in microseconds.
func (q *Queue) predicted(target string) int64 {
	if d := q.durations[target]; d != nil {
		return d.meanUs
	}
	return unpredicted
}
