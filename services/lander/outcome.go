package lander

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
)

// outcome takes what came of the effect that an attempt's state asked for.
func (c *Core) outcome(name string, q *queue, o Outcome) {
	a := &q.attempt
	switch a.state {
	case idle:
		c.headRead(name, q, o)
	case listing:
		c.movesListed(name, q, o)
	case dropping:
		c.droppedFound(name, q, o)
	case making:
		c.landingMade(name, q, o)
	case movingHeads:
		c.headsMoved(name, q, o.Err)
	case takingBack:
		c.headsTakenBack(name, q, o.Err)
	case pushing:
		c.pushEnded(name, q, o.Err)
	case remaking:
		c.landingRemade(name, q, o)
	case fencing:
		// The head shows whether it arrived, or T.
		if o.Err != nil {
			a.pushed = fmt.Errorf("%w; nor does it take a commit without changes: %v", a.pushed, o.Err)
		}
		a.state = rereadingHead
	case rereadingHead:
		c.headReread(name, q, o)
	case searchingHead:
		c.headSearched(name, q, o)
	}
}

// headRead takes the head that an attempt begins with.
func (c *Core) headRead(name string, q *queue, o Outcome) {
	a := &q.attempt
	if o.Err != nil {
		c.failed(name, q, unreadable(o.Err))
		return
	}
	a.head = o.Head
	if i := q.lineup.Intention; i != nil {
		// One read of the head settles an intention: if it is the base, T is pushed; else T is searched for in it.
		switch {
		case o.Head != i.Fact.Base:
			a.state = searchingHead
		case q.restsOpen(c.now):
			a.restart()
			a.mustReadHead = false
		default:
			a.push(i.Fact)
		}
		return
	}
	switch q.lineup.Head {
	case o.Head:
		c.followed(name, q)
	case "":
		a.moves = []*eventsv1.MainlineMoved{{To: o.Head, Initial: true, StampUs: c.now.UnixMicro()}}
		a.state = reportingMoves
	default:
		a.state = listing
	}
}

// followed is called once the lineup's head is the remote's: the next decision is answered on it.
func (c *Core) followed(name string, q *queue) {
	a := &q.attempt
	a.mustReadHead = false
	d := q.ready(c.now, c.next[events.TopicBuilds])
	if d == nil {
		c.succeeded(name, q)
		return
	}
	a.decision, a.base, a.state = *d, q.lineup.Head, making
}

// movesListed takes the commits that came past the queue.
func (c *Core) movesListed(name string, q *queue, o Outcome) {
	a := &q.attempt
	switch {
	case o.Err != nil:
		c.failed(name, q, unreadable(o.Err))
	case o.Forced:
		a.state = dropping
	default:
		from := q.lineup.Head
		for _, m := range o.Moves {
			a.moves = append(a.moves, &eventsv1.MainlineMoved{From: from, To: m.Commit, Author: m.Author, Title: m.Title, StampUs: c.now.UnixMicro()})
			from = m.Commit
		}
		if a.state = reportingMoves; len(a.moves) == 0 {
			c.failed(name, q, unreadable(fmt.Errorf("there is no commit between %s and %s", q.lineup.Head, a.head)))
		}
	}
}

// droppedFound takes the landings that a rewritten mainline does not contain.
func (c *Core) droppedFound(name string, q *queue, o Outcome) {
	a := &q.attempt
	if o.Err != nil {
		c.failed(name, q, unreadable(o.Err))
		return
	}
	a.moves = []*eventsv1.MainlineMoved{{From: q.lineup.Head, To: a.head, Forced: true, Dropped: o.Dropped, StampUs: c.now.UnixMicro()}}
	a.state = reportingMoves
}

// landingMade takes T of the decision, or why there is none.
func (c *Core) landingMade(name string, q *queue, o Outcome) {
	a := &q.attempt
	change := a.decision.change.Change
	switch {
	case errors.Is(o.Err, ErrUnmakeable) && !q.deferMaking(change, c.now):
		c.log(slog.LevelWarn, "a change's landing commits cannot be made; others go on, and it is tried again", name, "change", change, "error", o.Err)
		c.succeeded(name, q)
		return
	case o.Err != nil && !errors.Is(o.Err, ErrGone) && !errors.Is(o.Err, ErrUnmakeable):
		c.failed(name, q, unmade(fmt.Errorf("make %s on %s: %w", change, a.base, o.Err)))
		return
	case o.Err == nil:
		delete(q.unmakeable, change)
	}
	a.made, a.commitsErr, a.state = o.Landing, o.Err, answering
	if a.commitsErr != nil {
		a.made = &Landing{}
	}
}

// pushEnded takes how a push ended.
func (c *Core) pushEnded(name string, q *queue, err error) {
	a, i := &q.attempt, q.lineup.Intention.Fact
	// only: this push is the only one that there ever was of T.
	only := a.unpushed == tip(i)
	if !errors.Is(err, ErrUnknownCommit) {
		a.unpushed = ""
	}
	switch {
	case err == nil:
		a.closes, a.state = landedFact(i, c.now), closing
	case errors.Is(err, ErrPushRefused):
		c.log(slog.LevelWarn, "the remote refuses a push", name, "change", i.Change.Change, "error", err)
		c.notes = append(c.notes, CountRefusal{name, concernOf(err)})
		switch {
		case only:
			a.void(i, refusedFact(i, err, c.now))
		case !a.trouble.failingSince.IsZero() && c.now.Sub(a.trouble.failingSince) >= troubleGrace:
			a.pushed, a.state = err, fencing
		default: // what is under way may have locked the branch, and soon arrive
			a.pushed, a.state = err, rereadingHead
		}
	case errors.Is(err, ErrUnknownCommit) && !a.remade && q.lineup.PendingAt(i.Change) != nil:
		// Another lander has made the commits, in a mirror that this one does not share. The same change on the same base with
		// the same stamp gives the same ids.
		a.state = remaking
	default:
		if !errors.Is(err, ErrMoved) && a.trouble.failingSince.IsZero() {
			c.log(slog.LevelWarn, "a push got no answer; reading the head again", name, "change", i.Change.Change, "error", err)
		}
		a.pushed, a.state = err, rereadingHead
	}
}

// landingRemade takes T of an open intention, made again.
func (c *Core) landingRemade(name string, q *queue, o Outcome) {
	a := &q.attempt
	i := q.lineup.Intention.Fact
	a.remade = true
	switch {
	case o.Err != nil:
		a.pushed, a.state = fmt.Errorf("make %s again on %s: %w", i.Change.Change, i.Base, o.Err), rereadingHead
	case !slices.Equal(o.Landing.Commits, i.Commits):
		a.pushed, a.state = fmt.Errorf("%w: %s; this lander makes other commits of %s, so only one with the mirror of the lander that made these can push them; start that one, or push any commit to the branch to give them up", ErrUnknownCommit, tip(i), i.Change.Change), rereadingHead
	default:
		a.push(i)
	}
}

// headReread takes the head after a push that may not have arrived.
func (c *Core) headReread(name string, q *queue, o Outcome) {
	a := &q.attempt
	i := q.lineup.Intention.Fact
	switch {
	case o.Err != nil:
		c.failed(name, q, unreadable(o.Err))
	case o.Head == i.Base && concernOf(a.pushed) == eventsv1.RefusalConcern_REFUSAL_CONCERN_QUEUE:
		c.refusedOpen(q, a.pushed)
	case o.Head == i.Base:
		c.failed(name, q, unanswered(fmt.Errorf("the push of %s did not arrive: %w", events.ShortID(tip(i)), a.pushed)))
	default:
		a.head, a.state = o.Head, searchingHead
	}
}

// headSearched takes whether the head contains T: the record that closes the intention follows from it.
func (c *Core) headSearched(name string, q *queue, o Outcome) {
	a := &q.attempt
	if o.Err != nil {
		c.failed(name, q, unreadable(o.Err))
		return
	}
	i := q.lineup.Intention.Fact
	switch {
	case o.There:
		a.closes, a.state = landedFact(i, c.now), closing
	case errors.Is(a.pushed, ErrPushRefused):
		a.void(i, refusedFact(i, a.pushed, c.now))
	default:
		a.void(i, voidFact(i, "the mainline moved past "+events.ShortID(i.Base), false, c.now))
	}
}

// push goes on to the push of an intention: branches under review are moved before.
func (a *attempt) push(i *eventsv1.LandIntended) {
	if a.state = pushing; len(i.Heads) > 0 {
		a.state = movingHeads
	}
}

// void goes on to the record that closes an intention without a landing. Branches under review are moved back first: after the record
// nobody knows where they were.
func (a *attempt) void(i *eventsv1.LandIntended, f *eventsv1.LandVoid) {
	a.closes = f
	if a.state = closing; len(i.Heads) > 0 {
		a.state = takingBack
	}
}

// headsMoved takes how moving branches under review ended. What lands is proven, wherever they are.
func (c *Core) headsMoved(name string, q *queue, err error) {
	a, i := &q.attempt, q.lineup.Intention.Fact
	switch {
	case errors.Is(err, ErrUnknownCommit) && !a.remade && q.lineup.PendingAt(i.Change) != nil:
		a.state = remaking
		return
	case err != nil:
		c.log(slog.LevelWarn, "a branch under review is not at what lands; the host will show the review as closed", name, "change", i.Change.Change, "error", err)
	}
	a.state = pushing
}

// takeBackTries is how often branches under review are tried to be moved back, at once: the head of the mainline, which showed that what
// they were moved for does not land, is not read again before that is in the log.
const takeBackTries = 5

// headsTakenBack takes how moving branches under review back ended.
func (c *Core) headsTakenBack(name string, q *queue, err error) {
	a := &q.attempt
	if a.unmoved++; err != nil && a.unmoved < takeBackTries {
		return
	}
	if err != nil {
		c.log(slog.LevelWarn, "a branch under review stays at commits that have not landed; push what was there again", name, "change", q.lineup.Intention.Fact.Change.Change, "error", err)
	}
	a.unmoved, a.state = 0, closing
}

func landedFact(i *eventsv1.LandIntended, now time.Time) *eventsv1.ChangeLanded {
	return &eventsv1.ChangeLanded{
		Change: i.Change, Decision: i.Decision, Base: i.Base, Commits: i.Commits, Tree: i.Tree,
		Proof: i.Proof, Bypasses: i.Bypasses, StampUs: now.UnixMicro(), Deleted: i.Deleted, Quarantined: i.Quarantined,
	}
}

func voidFact(i *eventsv1.LandIntended, reason string, pushRefused bool, now time.Time) *eventsv1.LandVoid {
	return &eventsv1.LandVoid{Change: i.Change, Decision: i.Decision, Commit: tip(i), Reason: reason, Refused: pushRefused, StampUs: now.UnixMicro()}
}

// refusedFact closes an intention whose commits the remote refuses.
func refusedFact(i *eventsv1.LandIntended, why error, now time.Time) *eventsv1.LandVoid {
	f := voidFact(i, sentenceOf(why), true, now)
	f.Concern = concernOf(why)
	return f
}

// sentenceOf returns what the remote said, or else what is known.
func sentenceOf(why error) string {
	if refusal, is := errors.AsType[*PushRefusal](why); is {
		return refusal.Sentence
	}
	return oneLine(why.Error())
}

// tip returns the last commit that an intention makes.
func tip(i *eventsv1.LandIntended) string { return i.Commits[len(i.Commits)-1] }
