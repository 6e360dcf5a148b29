package view

import (
	"time"

	eventsv1 "landfall.build/events/v1"
)

// ETA is when a change will be decided, as the prioritizer expects it. Nothing is decided by it. With Unknown there are no
// times.
type ETA struct {
	// Median is as likely too early as too late.
	Median time.Time `json:"median,omitzero"`
	// It is decided between From50 and To50 with a probability of 50 %, between From90 and To90 with one of 90 %.
	From50 time.Time `json:"from_50,omitzero"`
	To50   time.Time `json:"to_50,omitzero"`
	From90 time.Time `json:"from_90,omitzero"`
	To90   time.Time `json:"to_90,omitzero"`
	// Lands is the probability that it lands then.
	Lands float64 `json:"lands,omitempty"`
	// Unknown is why there is no estimate.
	Unknown string `json:"unknown,omitempty"`
}

// notEstimated is the reason before the prioritizer has published an estimate of the change.
const notEstimated = "the prioritizer has not made one"

// foldEstimates takes the estimates that have moved. That of a change which has left may be read late.
func (q *Queue) foldEstimates(e *eventsv1.Estimates) {
	for _, t := range e.GetMoved() {
		of := refOf(t.Change)
		if c := q.keptAt(of); q.gone(of) || c != nil && !c.pending() {
			continue
		}
		q.priority.estimates[of] = t
	}
}

// eta returns the estimate of a pending change, nil for one that has left.
func (q *Queue) eta(c *change) *ETA {
	if !c.pending() {
		return nil
	}
	t := q.priority.estimates[c.ref()]
	switch {
	case q.unreachable != nil:
		return &ETA{Unknown: "nothing lands: the lander cannot work on the mainline"}
	case c.pushRefused():
		return &ETA{Unknown: "the remote refuses its push: " + c.lastRefusal.Message}
	case t == nil:
		return &ETA{Unknown: notEstimated}
	case t.Unknown != "":
		return &ETA{Unknown: t.Unknown}
	}
	at := func(us int64) time.Time { return time.UnixMicro(us).UTC().Truncate(time.Second) }
	return &ETA{Median: at(t.P50Us), From50: at(t.P25Us), To50: at(t.P75Us), From90: at(t.P5Us), To90: at(t.P95Us), Lands: t.Lands}
}
