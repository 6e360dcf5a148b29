package lander

import (
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
//	idle            write a record that the last attempt left (ChangeMoved, MainlineUnreachable, MainlineReachable, LandingsPaused,
//	                LandingsResumed),
//	                else read the head, if there is something to do:
//	                an open intention → movingHeads (the head is its base) or searchingHead;
//	                else → listing (the head moved past the queue) or making
//	listing         which commits came past the queue → reportingMoves, or dropping (the mainline was rewritten)
//	dropping        which landings a rewritten mainline does not contain → reportingMoves
//	reportingMoves  write a MainlineMoved for each commit → making
//	making          make T for the next decision → answering, or idle (this change's T cannot be made: others have their turn)
//	answering       write what the guard says: LandIntended, Refused, ChangeRejected or ChangeEjected → idle
//	movingHeads     move branches under review to what lands; if there are none, or once that is tried → pushing, or remaking
//	pushing         push T → closing (it arrived, or its only push is refused), remaking (this mirror lacks T), fencing (it is
//	                refused, and an earlier push of it may still arrive) or rereadingHead
//	remaking        make T again → movingHeads, or rereadingHead (it comes out otherwise)
//	fencing         push a commit without changes, on top of which no push of T can arrive → rereadingHead
//	rereadingHead   read the head after a push without an answer → searchingHead, or idle (nothing arrived: the push is tried again)
//	searchingHead   does the head contain T → closing
//	takingBack      move branches under review back, of what does not land → closing
//	closing         write ChangeLanded or LandVoid → idle
const (
	idle state = iota
	listing
	dropping
	reportingMoves
	making
	answering
	movingHeads
	pushing
	remaking
	fencing
	rereadingHead
	searchingHead
	takingBack
	closing
)

func (s state) String() string {
	return [...]string{"idle", "listing", "dropping", "reportingMoves", "making", "answering", "movingHeads", "pushing", "remaking", "fencing", "rereadingHead", "searchingHead", "takingBack", "closing"}[s]
}

// attempt is the work under way in a queue: from a read of the remote's head to the record that ends it. It is this owner's
// own, and no part of the fold.
type attempt struct {
	state state
	// mustReadHead: the head is to be read, whether there is a decision or not.
	mustReadHead bool
	// waiting: the mainline could not be worked on; it is tried again at the next tick.
	waiting bool

	// head is the head that was read of the remote. moves are the records of what came past the queue, still to be written.
	head  string
	moves []*eventsv1.MainlineMoved
	// decision is the one that T is made for, on base. made is T; commitsErr is why it could not be made.
	decision   decided
	base       string
	made       *Landing
	commitsErr error
	// remade: T was made again here. pushed is how the push ended. closes is the record that closes the intention.
	remade bool
	pushed error
	closes proto.Message

	// unmoved counts how often heads could not be taken back.
	unmoved int

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
	case movingHeads, pushing, remaking, fencing, rereadingHead, searchingHead, takingBack, closing:
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
	case movingHeads:
		return MoveHeads{name, q.lineup.Intention.Fact.Heads}
	case takingBack:
		return TakeBackHeads{name, q.lineup.Intention.Fact.Heads}
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
	if e := q.recordPause(name, now); e != nil {
		return e
	}
	switch {
	case a.waiting:
		return nil
	case a.mustReadHead, q.lineup.Intention != nil && !q.restsOpen(now), q.lineup.Intention == nil && q.ready(now, builds) != nil:
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
	a := runner.Append{Queue: name, Subject: subject, Identity: identity, Message: m}
	if c := q.lineup.Pending(subject); c != nil {
		a.Trace = c.Admission.Trace
	}
	return a
}

// nth tells a record from an equal one before it: a branch may be pushed back and forth.
func (q *queue) nth() string { return strconv.FormatUint(q.lineup.Sequence, 10) }

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
		c.pauseWritten(name, q)
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
