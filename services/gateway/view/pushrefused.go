package view

import (
	"fmt"
	"time"

	"landfall.build/engine/lineup"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/journal"
)

// written returns when a record was written, or its stamp if that is not known. The lander stamps what answers a decision with the
// decision's time, which may be long before.
func written(e journal.Entry, stampUS int64) time.Time {
	if e.Time.IsZero() {
		return stamp(stampUS, e.Time)
	}
	return e.Time.UTC()
}

// foldPushRefused notes that the remote refused a change's commits.
func (q *Queue) foldPushRefused(f *eventsv1.LandVoid, now time.Time) {
	q.noteOn(f.Change.GetChange(), stamp(f.StampUs, now), "land_void", quoted(f.Reason)+": the remote refused its push; it is pending again.")
	c := q.pendingAt(refOf(f.Change))
	if c == nil {
		return
	}
	pushes := 1
	if c.lastRefusal != nil {
		pushes += c.lastRefusal.Pushes
	}
	c.lastRefusal = &Refusal{Message: f.Reason, Pushes: pushes, At: stamp(f.StampUs, now)}
}

// quoted returns a remote's sentence for the beginning of one of ours.
func quoted(sentence string) string { return "\u201c" + sentence + "\u201d" }

func (c *change) pushRefused() bool { return c.lastRefusal != nil && c.lastRefusal.Pushes > 0 }

// pushRefusedReasons returns that the remote refuses a change's commits, in the remote's own words first.
func (q *Queue) pushRefusedReasons(c *change) []Reason {
	if !c.pushRefused() {
		return nil
	}
	return []Reason{{Code: ReasonPushRefused, Sentence: fmt.Sprintf("%s: the remote refuses its push; tried %s, last at %s UTC, and again within a minute.",
		quoted(c.lastRefusal.Message), count(c.lastRefusal.Pushes, "time"), c.lastRefusal.At.Format(time.DateTime))}}
}

// refusing returns what the remote said last if it has refused every push since the newest landing, nil if it has not.
func (q *Queue) refusing() *Trouble {
	var last *Refusal
	for _, entry := range q.lineup.Order() {
		if c := q.changes[entry.ID()]; c != nil && c.pushRefused() && (last == nil || c.lastRefusal.At.After(last.At)) {
			last = c.lastRefusal
		}
	}
	if last == nil {
		return nil
	}
	for i := len(q.finished) - 1; i >= 0; i-- {
		if c := q.stillFinished(q.finished[i]); c != nil && c.end.state == lineup.Landed {
			if !c.end.at.Before(last.At) {
				return nil
			}
			break
		}
	}
	return &Trouble{Kind: ReasonPushRefused, Message: last.Message, Since: last.At, Sentence: fmt.Sprintf(
		"%s: the remote refuses the pushes since the last landing, most recently at %s UTC; what it refuses is tried again within a minute.",
		quoted(last.Message), last.At.Format(time.DateTime))}
}
