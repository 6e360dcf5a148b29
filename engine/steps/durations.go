package steps

import eventsv1 "landfall.build/events/v1"

// duration is the mean of how long the passed steps of a target took.
type duration struct {
	count  int64
	meanUs int64
}

// weighed is how many steps the mean goes back, so that a target that became slow is soon known for it.
const weighed = 16

// unpredicted is longer than every step: what has never run goes first (M27).
const unpredicted = int64(1) << 62

func (q *Queue) addDuration(f *eventsv1.StepFinished) {
	d := q.durations[f.GetTarget()]
	if d == nil {
		d = &duration{}
		q.durations[f.GetTarget()] = d
	}
	d.count = min(d.count+1, weighed)
	d.meanUs += (max(0, f.GetFinishedUs()-f.GetStartedUs()) - d.meanUs) / d.count
}

// predictedUs returns how long a step of the target is likely to take, in microseconds.
func (q *Queue) predictedUs(target string) int64 {
	if d := q.durations[target]; d != nil {
		return d.meanUs
	}
	return unpredicted
}
