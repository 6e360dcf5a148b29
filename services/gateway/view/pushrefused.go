package view

import (
	"fmt"
	"slices"
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

// eventRefusedAgain is the kind of the event of a push that was refused as the one before it.
const eventRefusedAgain = "push_refused_again"

// foldPushRefused notes that the remote refused a change's commits. Of refusals with the same
// words the story has the first, and the newest with their number: a push is tried again every minute.
func (q *Queue) foldPushRefused(f *eventsv1.LandVoid, now time.Time) {
	at := stamp(f.StampUs, now)
	c := q.pendingAt(refOf(f.Change))
	if c == nil {
		q.noteOn(f.Change.GetChange(), at, "land_void", quoted(f.Reason)+": the remote refused its push.")
		return
	}
	before := c.lastRefusal
	c.lastRefusal = &Refusal{Message: f.Reason, Pushes: 1, At: at}
	if before != nil {
		c.lastRefusal.Pushes += before.Pushes
	}
	if before == nil || before.Pushes == 0 || before.Message != f.Reason {
		q.note(c, at, "land_void", quoted(f.Reason)+": the remote refused its push; it is pushed again in a while.")
		return
	}
	own := c.ownEvents()
	c.timeline = slices.Concat(c.timeline[:own], slices.DeleteFunc(slices.Clone(c.timeline[own:]), func(e Event) bool { return e.Kind == eventRefusedAgain }))
	q.note(c, at, eventRefusedAgain, fmt.Sprintf("The remote refused its push again with the same words: %s by now.", count(c.lastRefusal.Pushes, "time")))
}

// quoted returns a remote's sentence in quotation marks.
func quoted(sentence string) string { return "\u201c" + sentence + "\u201d" }

func (c *change) pushRefused() bool { return c.lastRefusal != nil && c.lastRefusal.Pushes > 0 }

// foldPauseByRemote notes on every pending change that landings are paused, or go on.
func (q *Queue) foldPauseByRemote(stampUS int64, now time.Time) {
	kind, text := "landings_resumed", "The remote takes pushes again; landings go on."
	if p := q.pausedByRemote(); p != nil {
		kind, text = ReasonPausedByRemote, p.Sentence
	} else if q.refusing() != nil { // nothing has landed since
		text = "It is no longer known that the remote refuses every push; landings go on."
	}
	q.noteAll(stamp(stampUS, now), kind, text)
}

// pausedByRemote returns the pause while the remote refuses every push, nil if it does not.
func (q *Queue) pausedByRemote() *RemotePause {
	f := q.lineup.RefusedByRemote
	if f == nil {
		return nil
	}
	since := stamp(f.SinceUs, time.Time{})
	p := &RemotePause{Message: f.Message, Since: since, Sentence: fmt.Sprintf(
		"%s: the remote has refused every push since %s UTC, so landings are paused; they go on by themselves once it takes one, which is tried every minute, or at once after a resume.",
		quoted(f.Message), since.Format(time.DateTime))}
	if only := q.refusedSince(since); len(only) == 1 {
		p.Sentence = fmt.Sprintf(
			"%s: the remote has refused %s since %s UTC in words that concern every push, so landings are paused; the next change that is ready is tried at once, and %[2]s again within a minute, or at once after a resume.",
			quoted(f.Message), only[0].admission.Change, since.Format(time.DateTime))
	}
	return p
}

// refusedSince returns the pending changes whose push the remote has refused at a time or later, in the order of the queue.
func (q *Queue) refusedSince(at time.Time) (list []*change) {
	for _, entry := range q.lineup.Order() {
		if c := q.changes[entry.ID()]; c != nil && c.pushRefused() && !c.lastRefusal.At.Before(at) {
			list = append(list, c)
		}
	}
	return list
}

// pausedByRemoteReasons returns the reason of every change while landings are paused. It begins with the remote's sentence.
func (q *Queue) pausedByRemoteReasons() []Reason {
	if p := q.pausedByRemote(); p != nil {
		return []Reason{{Code: ReasonPausedByRemote, Sentence: p.Sentence}}
	}
	return nil
}

// pushRefusedReasons returns the reason of a change whose commits the remote refuses. It begins with the remote's sentence.
func (q *Queue) pushRefusedReasons(c *change) []Reason {
	if !c.pushRefused() {
		return nil
	}
	if q.lineup.RefusedByRemote.GetMessage() == c.lastRefusal.Message { // the pause's reason quotes it
		return []Reason{c.ownRefusal()}
	}
	again := "within a minute"
	if q.lineup.Paused != nil {
		again = "once the queue is resumed"
	}
	return []Reason{{Code: ReasonPushRefused, Sentence: fmt.Sprintf("%s: the remote refuses its push; tried %s, last at %s UTC, and again %s.",
		quoted(c.lastRefusal.Message), count(c.lastRefusal.Pushes, "time"), c.lastRefusal.At.Format(time.DateTime), again)}}
}

// ownRefusal returns the reason of a change whose push the remote refuses, where the remote's sentence is quoted already.
func (c *change) ownRefusal() Reason {
	return Reason{Code: ReasonPushRefused, Sentence: fmt.Sprintf("Its own push was refused %s, last at %s UTC.",
		count(c.lastRefusal.Pushes, "time"), c.lastRefusal.At.Format(time.DateTime))}
}

// refusing returns the remote's last refusal if nothing has landed since and landings are not paused; else nil.
func (q *Queue) refusing() *Trouble {
	if q.lineup.RefusedByRemote != nil {
		return nil // the pause shows it
	}
	var landed time.Time
	for i := len(q.finished) - 1; i >= 0 && landed.IsZero(); i-- {
		if c := q.stillFinished(q.finished[i]); c != nil && c.end.state == lineup.Landed {
			landed = c.end.at.Add(time.Nanosecond)
		}
	}
	refused := q.refusedSince(landed)
	if len(refused) == 0 {
		return nil
	}
	last := slices.MaxFunc(refused, func(a, b *change) int { return a.lastRefusal.At.Compare(b.lastRefusal.At) }).lastRefusal
	what, then := "pushes since the last landing", "what it refuses is tried again within a minute"
	if len(refused) == 1 {
		what, then = "push of "+refused[0].admission.Change, "it is tried again within a minute, and others land if the remote takes them"
	}
	return &Trouble{Kind: ReasonPushRefused, Message: last.Message, Since: last.At, Sentence: fmt.Sprintf(
		"%s: the remote refuses the %s, most recently at %s UTC; %s.", quoted(last.Message), what, last.At.Format(time.DateTime), then)}
}
