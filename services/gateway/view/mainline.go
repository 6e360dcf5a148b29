package view

import (
	"strings"
	"time"

	"landfall.build/engine/lineup"
	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
)

// foldMoved takes which changes a force-push took off the mainline, and which are on it again (MainlineMoved.dropped).
func (q *Queue) foldMoved(f *eventsv1.MainlineMoved, now time.Time) {
	if !f.Forced && q.droppedSeq == 0 {
		return // nobody can come back
	}
	dropped := map[ref]bool{}
	for _, c := range f.Dropped {
		dropped[refOf(c)] = true
	}
	at := stamp(f.StampUs, now)
	for _, x := range q.finished {
		c := q.stillFinished(x)
		if c == nil || c.end.state != lineup.Landed {
			continue
		}
		switch is := c.end.dropped != nil; {
		case f.Forced && dropped[c.ref()] && !is:
			c.end.dropped = &Dropped{At: at, Head: f.To}
			q.droppedSeq = q.seq
			q.note(c, at, StateDropped, c.droppedText())
		case is && f.Forced && !dropped[c.ref()], is && !f.Forced && last(c.end.landed.GetCommits()) == f.To:
			c.end.dropped = nil
			q.droppedSeq = q.seq
			q.note(c, at, "restored", "It is on the mainline again, as "+events.ShortID(last(c.end.landed.GetCommits()))+".")
		}
	}
}

// droppedText is for a change that landed and is not on the mainline any more.
func (c *change) droppedText() string {
	return "Landed as " + events.ShortID(last(c.end.landed.GetCommits())) + ", dropped by a force-push at " + c.end.dropped.At.Format(time.DateTime) +
		" UTC (the mainline was set to " + events.ShortID(c.end.dropped.Head) + "); land it again."
}

// Dropped reports whether a change landed and a force-push took it off the mainline.
func (q *Queue) Dropped(id string) bool {
	c := q.changes[id]
	return c != nil && c.end.dropped != nil
}

// foldUnreachable notes on every pending change that nothing lands, and foldReachable that changes land again.
func (q *Queue) foldUnreachable(f *eventsv1.MainlineUnreachable, now time.Time) {
	q.unreachable = f
	q.noteAll(stamp(f.StampUs, now), ReasonUnreachable, q.troubleText(f))
}

func (q *Queue) foldReachable(f *eventsv1.MainlineReachable, now time.Time) {
	if q.unreachable != nil {
		q.unreachable = nil
		q.noteAll(stamp(f.StampUs, now), "mainline_reachable", "The lander can work on the mainline again.")
	}
}

func (q *Queue) noteAll(at time.Time, kind, text string) {
	for _, c := range q.lineup.Order() {
		q.noteOn(c.ID(), at, kind, text)
	}
}

// trouble returns what keeps the lander from working on the mainline, nil if nothing does.
func (q *Queue) trouble() *Trouble {
	f := q.unreachable
	if f == nil {
		return nil
	}
	return &Trouble{
		Kind: lowerEnum(f.Trouble.String(), "MAINLINE_TROUBLE_"), Message: f.Message,
		Since: stamp(f.SinceUs, time.Time{}), Sentence: q.troubleText(f),
	}
}

// troubleText returns one sentence: what is wrong, what follows, and what to do.
func (q *Queue) troubleText(f *eventsv1.MainlineUnreachable) string {
	branch, message := q.known.Settings().GetBranch(), strings.TrimRight(f.Message, ".")
	if branch == "" {
		branch = "the queue's branch"
	}
	since := " since " + stamp(f.SinceUs, time.Time{}).Format(time.DateTime) + " UTC"
	switch f.Trouble {
	case eventsv1.MainlineTrouble_MAINLINE_TROUBLE_BRANCH_MISSING:
		text := "The repository has had no branch " + branch + since + ", so nothing lands"
		if q.lineup.Head != "" {
			return text + "; push it again (it was at " + events.ShortID(q.lineup.Head) + "), and the queue continues by itself."
		}
		return text + "; push it, and the queue continues by itself."
	case eventsv1.MainlineTrouble_MAINLINE_TROUBLE_PUSH_UNANSWERED:
		return "The lander's pushes to " + branch + " have failed" + since + ", so nothing lands: " + message + "; allow it to push there, or, if only a lander that is gone has the commit, push any commit to the branch yourself; the queue then continues by itself."
	case eventsv1.MainlineTrouble_MAINLINE_TROUBLE_UNMADE:
		return "The lander has not been able to make the commits that would land" + since + ", so nothing lands: " + message + "; look at the machine that it runs on, and the queue continues by itself."
	}
	return "The lander has not been able to read " + branch + since + ", so nothing lands: " + message + "; make the repository reachable for it, and the queue continues by itself."
}

func (q *Queue) troubleReasons() []Reason {
	if t := q.trouble(); t != nil {
		return []Reason{{Code: ReasonUnreachable, Sentence: t.Sentence}}
	}
	return nil
}
