package lander

import (
	"errors"
	"log/slog"
	"strings"
	"time"

	eventsv1 "landfall.build/events/v1"
)

// Bounds on what the log holds of a mainline that cannot be worked on: nothing of what passes within a grace, and another
// kind of trouble at most once in a while, so that two that alternate do not fill the log.
const (
	troubleGrace   = 10 * time.Second
	troubleAgain   = 5 * time.Minute
	maxTroubleText = 600
)

// trouble is what this process has seen of a mainline that it cannot work on. It is no part of the fold: what was written is.
type trouble struct {
	// failingSince is when the first attempt failed after the last that succeeded. reportedAt is when this was last written to
	// the log. Both are zero for never.
	failingSince, reportedAt time.Time
	// report is still to be written. recovered: the mainline answers again, and that is still to be written.
	report    *eventsv1.MainlineUnreachable
	recovered bool
}

// mainlineError is an error of git or the remote: the queue waits, the log is fine.
type mainlineError struct {
	kind eventsv1.MainlineTrouble
	err  error
}

// unreadable classifies an error of reading the branch.
func unreadable(err error) mainlineError {
	if errors.Is(err, ErrNoBranch) {
		return mainlineError{eventsv1.MainlineTrouble_MAINLINE_TROUBLE_BRANCH_MISSING, err}
	}
	return mainlineError{eventsv1.MainlineTrouble_MAINLINE_TROUBLE_UNREADABLE, err}
}

func unmade(err error) mainlineError {
	return mainlineError{eventsv1.MainlineTrouble_MAINLINE_TROUBLE_UNMADE, err}
}

func unanswered(err error) mainlineError {
	return mainlineError{eventsv1.MainlineTrouble_MAINLINE_TROUBLE_PUSH_UNANSWERED, err}
}

// failed gives an attempt up until the next tick. The log learns of it once it has lasted longer than a grace.
func (c *Core) failed(name string, q *queue, e mainlineError) {
	a := &q.attempt
	a.restart()
	a.waiting = true
	t := &a.trouble
	t.recovered = false
	if t.failingSince.IsZero() {
		c.log(slog.LevelWarn, "the mainline does not answer; the queue waits", name, "error", e.err)
	} else {
		c.log(slog.LevelDebug, "the mainline still does not answer", name, "error", e.err)
	}
	if t.failingSince.IsZero() || c.now.Before(t.failingSince) { // the clock was set back
		t.failingSince = c.now
	}
	c.notes = append(c.notes, Measure{name, e.kind})
	if reported := q.unreachable; reported != nil {
		ago := c.now.Sub(t.reportedAt)
		if reported.Trouble == e.kind || (!t.reportedAt.IsZero() && ago >= 0 && ago < troubleAgain) {
			return
		}
	}
	if c.now.Sub(t.failingSince) < troubleGrace {
		return
	}
	t.report = &eventsv1.MainlineUnreachable{
		Trouble: e.kind, Message: oneLine(e.err.Error()), SinceUs: t.failingSince.UnixMicro(), StampUs: c.now.UnixMicro(),
	}
}

// succeeded ends an attempt: the mainline can be worked on.
func (c *Core) succeeded(name string, q *queue) {
	a := &q.attempt
	a.restart()
	if !a.trouble.failingSince.IsZero() {
		c.log(slog.LevelInfo, "the mainline answers again", name)
		c.notes = append(c.notes, Measure{name, eventsv1.MainlineTrouble_MAINLINE_TROUBLE_UNSPECIFIED})
	}
	a.trouble = trouble{recovered: q.unreachable != nil}
}

// oneLine returns git's text as one line of valid UTF-8, of at most maxTroubleText bytes.
func oneLine(text string) string {
	text = strings.Join(strings.Fields(strings.ToValidUTF8(text, "�")), " ")
	if len(text) <= maxTroubleText {
		return text
	}
	return strings.ToValidUTF8(text[:maxTroubleText-len("…")], "") + "…"
}
