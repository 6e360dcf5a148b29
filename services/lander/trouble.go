package lander

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	eventsv1 "landfall.build/events/v1"
)

// Bounds on what is told of a mainline that cannot be worked on: nothing of what passes within a grace, and another
// kind of trouble at most once in a while, so that two that alternate do not fill the log.
const (
	troubleGrace   = 10 * time.Second
	troubleAgain   = 5 * time.Minute
	maxTroubleText = 600
)

// trouble is what this process has seen of a mainline that it cannot work on. It is no part of the fold: what was
// told is.
type trouble struct {
	// since is when an attempt failed first, of those after which none succeeded; told when the log was last told.
	// They are zero for never.
	since, told time.Time
}

// mainlineError marks an error of git or the remote: the queue waits, the log is fine.
type mainlineError struct {
	kind eventsv1.MainlineTrouble
	err  error
}

func (e *mainlineError) Error() string { return e.err.Error() }

func (e *mainlineError) Unwrap() error { return e.err }

// unreadable marks an error of looking at the branch.
func unreadable(err error) error {
	if errors.Is(err, ErrNoBranch) {
		return &mainlineError{eventsv1.MainlineTrouble_MAINLINE_TROUBLE_BRANCH_MISSING, err}
	}
	return &mainlineError{eventsv1.MainlineTrouble_MAINLINE_TROUBLE_UNREADABLE, err}
}

func unmade(err error) error {
	return &mainlineError{eventsv1.MainlineTrouble_MAINLINE_TROUBLE_UNMADE, err}
}

func unanswered(err error) error {
	return &mainlineError{eventsv1.MainlineTrouble_MAINLINE_TROUBLE_PUSH_UNANSWERED, err}
}

// attempted takes how an attempt to work on a mainline ended, and tells the log when that changes what is known: once
// it has failed for longer than a grace, and as soon as it succeeds again. Any other error is handed on.
func (p *Partition) attempted(ctx context.Context, name string, q *queue, err error) error {
	var of *mainlineError
	switch {
	case err == nil:
		return p.reached(ctx, name, q)
	case !errors.As(err, &of):
		return err
	case ctx.Err() != nil:
		return ctx.Err() // git was ended by us
	}
	now, t := p.o.Now(), &q.trouble
	if t.since.IsZero() {
		p.logger.Warn("the mainline does not answer; the queue waits", "queue", name, "error", of.err)
	} else {
		p.logger.Debug("the mainline still does not answer", "queue", name, "error", of.err)
	}
	if t.since.IsZero() || now.Before(t.since) { // the clock was set back
		t.since = now
	}
	p.o.Troubles.set(name, of.kind)
	if told := q.unreachable; told != nil {
		quiet := now.Sub(t.told)
		if told.Trouble == of.kind || (!t.told.IsZero() && quiet >= 0 && quiet < troubleAgain) {
			return nil
		}
	}
	if now.Sub(t.since) < troubleGrace {
		return nil
	}
	t.told = now
	return p.write(ctx, name, "", &eventsv1.MainlineUnreachable{
		Trouble: of.kind, Message: oneLine(of.err.Error()), SinceUs: t.since.UnixMicro(), StampUs: now.UnixMicro(),
	}, strconv.FormatInt(p.changesRead, 10))
}

// reached is called when an attempt succeeded.
func (p *Partition) reached(ctx context.Context, name string, q *queue) error {
	if !q.trouble.since.IsZero() {
		p.logger.Info("the mainline answers again", "queue", name)
		q.trouble = trouble{}
		p.o.Troubles.set(name, eventsv1.MainlineTrouble_MAINLINE_TROUBLE_UNSPECIFIED)
	}
	if q.unreachable == nil {
		return nil
	}
	return p.write(ctx, name, "", &eventsv1.MainlineReachable{StampUs: p.o.Now().UnixMicro()}, strconv.FormatInt(p.changesRead, 10))
}

// oneLine makes of what git says a line that is bounded, and text.
func oneLine(text string) string {
	text = strings.Join(strings.Fields(strings.ToValidUTF8(text, "�")), " ")
	if len(text) <= maxTroubleText {
		return text
	}
	return strings.ToValidUTF8(text[:maxTroubleText-len("…")], "") + "…"
}
