package work

import (
	eventsv1 "landfall.build/events/v1"
)

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
	d := q.durations[f.GetTarget()]
	if d == nil {
		d = &duration{}
		q.durations[f.GetTarget()] = d
	}
	d.count = min(d.count+1, longMemory)
	d.meanUs += (max(0, f.GetFinishedUs()-f.GetStartedUs()) - d.meanUs) / d.count
}

// predicted is how long a step of the target takes, in microseconds.
func (q *Queue) predicted(target string) int64 {
	if d := q.durations[target]; d != nil {
		return d.meanUs
	}
	return unpredicted
}
