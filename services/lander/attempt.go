package lander

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"time"

	"google.golang.org/protobuf/proto"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/runner"
)

// state is what an attempt waits for.
type state int

// The states of an attempt. Each but idle asks for one effect; the arrow says what the effect's outcome leads to.
//
//	idle            write a record that the last attempt left (ChangeMoved, MainlineUnreachable, MainlineReachable,
//	                LandingsPaused, LandingsResumed),
//	                else read the head, if there is something to do:
//	                an open intention → pushing (the head is its base) or searchingHead;
//	                else → listing (the head moved past the queue) or making
//	listing         which commits came past the queue → reportingMoves, or dropping (the mainline was rewritten)
//	dropping        which landings a rewritten mainline does not contain → reportingMoves
//	reportingMoves  write a MainlineMoved for each commit → making
//	making          make T for the next decision → answering, or idle (this change's T cannot be made: others have their turn)
//	answering       write what the guard says: LandIntended, Refused, ChangeRejected or ChangeEjected → idle
//	pushing         push T → closing (it arrived, or its only push is refused), remaking (this mirror lacks T), fencing (it is
//	                refused, and an earlier push of it may still arrive) or rereadingHead
//	remaking        make T again → pushing, or rereadingHead (it comes out otherwise)
//	fencing         push a commit without changes, on top of which no push of T can arrive → rereadingHead
//	rereadingHead   read the head after a push without an answer → searchingHead, or idle (nothing arrived: the push is tried again)
//	searchingHead   does the head contain T → closing
//	closing         write ChangeLanded or LandVoid → idle
const (
	idle state = iota
	listing
	dropping
	reportingMoves
	making
	answering
	pushing
	remaking
	fencing
	rereadingHead
	searchingHead
	closing
)

func (s state) String() string {
	return [...]string{"idle", "listing", "dropping", "reportingMoves", "making", "answering", "pushing", "remaking", "fencing", "rereadingHead", "searchingHead", "closing"}[s]
}

// attempt is the work under way in a queue: from a read of the remote's head to the record that ends it. It is this owner's
// own, and no part of the fold.
type attempt struct {
	state state
	// mustReadHead: the head is to be read, whether there is a decision or not.
	mustReadHead bool
	// waiting: the mainline could not be worked on; it is tried again at the next tick.
	waiting bool

	// head is what the remote said. moves are the records of what came past the queue, still to be written.
	head  string
	moves []*eventsv1.MainlineMoved
	// decision is the one that T is made for on base; made is T, or commitsErr why there is none.
	decision   decided
	base       string
	made       *Landing
	commitsErr error
	// remade: T was made again here. pushed is how the push ended. closes is the record that closes the intention.
	remade bool
	pushed error
	closes proto.Message

	// unpushed is T of an intention that this owner opened and that nobody has pushed yet; "" for none. Of any other intention
	// a push may still be under way: another owner's, or one without an answer.
	unpushed string

	// moveAhead is a change that is to be moved in front of aheadOf, which the remote refuses; "" for none.
	moveAhead, aheadOf string

	trouble trouble
	rest    rest
}

// restart gives up what is under way; what was seen of the mainline stays.
func (a *attempt) restart() {
	*a = attempt{mustReadHead: a.mustReadHead, waiting: a.waiting, unpushed: a.unpushed, moveAhead: a.moveAhead, aheadOf: a.aheadOf, trouble: a.trouble, rest: a.rest}
}

// abandonObsolete restarts an attempt whose decision is answered, whose base is no longer the head, or whose intention is closed.
func (q *queue) abandonObsolete() {
	a := &q.attempt
	switch a.state {
	case making, answering:
		if q.lineup.PendingAt(a.decision.change) == nil || q.isAnswered(a.decision) || q.lineup.Head != a.base || q.lineup.Intention != nil {
			a.restart()
		}
	case pushing, remaking, fencing, rereadingHead, searchingHead, closing:
		if q.lineup.Intention == nil {
			a.restart()
		}
	}
}

// effect returns what a queue does next, nil if there is nothing. builds is the offset behind what is folded of landfall.builds.
func (q *queue) effect(name string, flaky FlakyPolicy, now time.Time, builds int64) runner.Effect {
	a := &q.attempt
	switch a.state {
	case idle:
		return q.begin(name, flaky, now, builds)
	case listing:
		return ListMoves{name, q.lineup.Head, a.head}
	case dropping:
		return FindDropped{name, a.head, slices.Clone(q.landings)}
	case reportingMoves:
		m := a.moves[0]
		return q.append(name, "", m, m.From, m.To, q.nth())
	case making:
		return MakeLanding{name, a.base, q.lineup.PendingAt(a.decision.change).Admission, a.decision.stampUS, q.quarantined()}
	case answering:
		m := q.answerTo(a.decision, a.base, a.made, a.commitsErr)
		identity := []string{a.decision.id}
		if _, intended := m.(*eventsv1.LandIntended); intended {
			identity = append(identity, a.base)
		}
		return q.append(name, a.decision.change.Change, m, identity...)
	case pushing:
		i := q.lineup.Intention.Fact
		return PushLanding{name, i.Base, tip(i)}
	case remaking:
		i := q.lineup.Intention.Fact
		return MakeLanding{name, i.Base, q.lineup.PendingAt(i.Change).Admission, i.StampUs, i.Quarantined}
	case fencing:
		i := q.lineup.Intention.Fact
		return PushNothing{name, i.Base, i.StampUs}
	case rereadingHead:
		return ReadHead{name}
	case searchingHead:
		return FindCommit{name, a.head, tip(q.lineup.Intention.Fact)}
	case closing:
		i := q.lineup.Intention.Fact
		if _, landed := a.closes.(*eventsv1.ChangeLanded); landed {
			return q.append(name, i.Change.Change, a.closes, i.Decision)
		}
		return q.append(name, i.Change.Change, a.closes, i.Decision, tip(i))
	}
	panic(fmt.Sprintf("the lander has no state %d", a.state))
}

// begin returns the first effect of an attempt, or the record that the last one left to be written.
func (q *queue) begin(name string, flaky FlakyPolicy, now time.Time, builds int64) runner.Effect {
	a := &q.attempt
	if m := q.nextQuarantine(flaky, now); m != nil {
		return q.recordQuarantine(name, m, now)
	}
	switch {
	case a.moveAhead != "":
		return q.append(name, a.moveAhead, &eventsv1.ChangeMoved{
			Change: a.moveAhead, Before: a.aheadOf, Who: events.ServiceLander, Why: "the remote refuses " + a.aheadOf, StampUs: now.UnixMicro(),
		}, a.moveAhead, a.aheadOf, q.nth())
	case a.trouble.report != nil:
		return q.append(name, "", a.trouble.report, q.nth(), strconv.FormatInt(a.trouble.report.StampUs, 10))
	case a.trouble.recovered && q.unreachable != nil:
		return q.append(name, "", &eventsv1.MainlineReachable{StampUs: now.UnixMicro()}, q.nth(), strconv.FormatInt(now.UnixMicro(), 10))
	}
	if e := q.recordFreeze(name, now); e != nil {
		return e
	}
	switch {
	case a.waiting:
		return nil
	case a.mustReadHead, q.lineup.Intention != nil && !q.rests(now), q.lineup.Intention == nil && q.ready(now, builds) != nil:
		return ReadHead{name}
	}
	return nil
}

// ready returns the decision that is to be answered now, nil if there is none, or if its evidence is not folded yet.
func (q *queue) ready(now time.Time, builds int64) *decided {
	d := q.nextDecision(now)
	if d == nil || d.builds > builds {
		return nil
	}
	return d
}

func (q *queue) append(name, subject string, m proto.Message, identity ...string) runner.Effect {
	return runner.Append{Queue: name, Subject: subject, Identity: identity, Message: m}
}

// nth tells a record from the same one made before: somebody may push to and fro.
func (q *queue) nth() string { return strconv.FormatUint(q.lineup.Sequence, 10) }

// outcome takes what came of an effect on a mainline.
func (c *Core) outcome(name string, q *queue, o Outcome) {
	a := &q.attempt
	switch a.state {
	case idle:
		c.headRead(name, q, o)
	case listing:
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
	case dropping:
		if o.Err != nil {
			c.failed(name, q, unreadable(o.Err))
			return
		}
		a.moves = []*eventsv1.MainlineMoved{{From: q.lineup.Head, To: a.head, Forced: true, Dropped: o.Dropped, StampUs: c.now.UnixMicro()}}
		a.state = reportingMoves
	case making:
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
	case pushing:
		c.pushEnded(name, q, o.Err)
	case remaking:
		i := q.lineup.Intention.Fact
		a.remade = true
		switch {
		case o.Err != nil:
			a.pushed, a.state = fmt.Errorf("make %s again on %s: %w", i.Change.Change, i.Base, o.Err), rereadingHead
		case !slices.Equal(o.Landing.Commits, i.Commits):
			a.pushed, a.state = fmt.Errorf("%w: %s; this lander makes other commits of %s, so only one with the mirror of the lander that made these can push them; start that one, or push any commit to the branch to give them up", ErrUnknownCommit, tip(i), i.Change.Change), rereadingHead
		default:
			a.state = pushing
		}
	case fencing:
		// Whether it arrived or T did, the head shows it.
		if o.Err != nil {
			a.pushed = fmt.Errorf("%w; nor does it take a commit without changes: %v", a.pushed, o.Err)
		}
		a.state = rereadingHead
	case rereadingHead:
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
	case searchingHead:
		if o.Err != nil {
			c.failed(name, q, unreadable(o.Err))
			return
		}
		i := q.lineup.Intention.Fact
		if a.state = closing; o.There {
			a.closes = landedFact(i, c.now)
		} else {
			a.closes = voidFact(i, "the mainline moved past "+events.ShortID(i.Base), false, c.now)
			if errors.Is(a.pushed, ErrPushRefused) {
				a.closes = refusedFact(i, a.pushed, c.now)
			}
		}
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
		// One read of the head settles an intention: it is the base, and T is pushed, or it is searched for T.
		switch {
		case o.Head != i.Fact.Base:
			a.state = searchingHead
		case q.rests(c.now):
			a.restart()
			a.mustReadHead = false
		default:
			a.state = pushing
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
			a.closes, a.state = refusedFact(i, err, c.now), closing
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

// written is called once a record of this owner's is in the log, and everything up to it is applied.
func (c *Core) written(name string, q *queue, m proto.Message) {
	a := &q.attempt
	switch m := m.(type) {
	case *eventsv1.MainlineMoved:
		if a.state != reportingMoves {
			return
		}
		if a.moves = a.moves[1:]; len(a.moves) == 0 {
			c.followed(name, q)
		}
	case *eventsv1.MainlineUnreachable:
		a.trouble.reportedAt, a.trouble.report = c.now, nil
	case *eventsv1.MainlineReachable:
		a.trouble.recovered = false
	case *eventsv1.LandingsPaused, *eventsv1.LandingsResumed:
		c.freezeWritten(name, q)
	case *eventsv1.TargetQuarantined, *eventsv1.QuarantineEnded: // what the queue was doing goes on
	case *eventsv1.ChangeMoved:
		a.moveAhead, a.aheadOf = "", ""
	case *eventsv1.Refused:
		c.log(slog.LevelInfo, "refused", name, "change", m.Change.Change, "why", m.Message)
		c.succeeded(name, q)
	case *eventsv1.LandIntended:
		// A cancellation or a new revision before it wins, and then it opened nothing. What it opened is settled next.
		a.restart()
		a.rest.found = nil
		if q.lineup.Intention != nil {
			a.unpushed = tip(q.lineup.Intention.Fact)
		}
	case *eventsv1.LandVoid:
		if m.Refused {
			q.deferPush(m.Change.Change, c.now)
			a.aheadOf, a.moveAhead = m.Change.Change, q.nextBehind(m.Change.Change)
		}
		c.succeeded(name, q)
	default:
		c.succeeded(name, q)
	}
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
