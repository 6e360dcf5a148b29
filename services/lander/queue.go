package lander

import (
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	"landfall.build/engine/directpush"
	"landfall.build/engine/evidence"
	"landfall.build/engine/flakes"
	"landfall.build/engine/guard"
	"landfall.build/engine/lineup"
	eventsv1 "landfall.build/events/v1"
)

// queue is the lander's state of one queue.
type queue struct {
	lineup *lineup.Queue
	ledger *evidence.Ledger
	// pushes is what came past the queue (M23a).
	pushes *directpush.Pushes
	// decisions that are not answered, in the order of the log.
	decisions []decided
	// answered decisions of pending changes, by change.
	answered map[string]map[string]bool
	// pushRefused are changes whose commits the remote would not have: pending ones, and those that were ejected for it
	// while nothing landed since. A guard's refusal is none of these.
	pushRefused map[string]*pushRefusals
	// disproved has, by pending change, the offset of the last refusal that disproved what the change was decided on.
	disproved map[string]int64
	// unprepared are builds of pending changes whose trees could not be made.
	unprepared unprepared
	// flakes says which targets contradict themselves.
	flakes *flakes.Stats
	// landings are the newest.
	landings landings
	// unreachable is what the log says of a mainline that cannot be worked on, nil if it can.
	unreachable *eventsv1.MainlineUnreachable
	// unmakeable are pending changes of which this owner cannot make T.
	unmakeable map[string]*unmakeable `snapshot:"-"`
	// attempt is what this owner is doing.
	attempt attempt `snapshot:"-"`
}

// pushRefusals is what is known of a change whose pushes the remote refuses.
type pushRefusals struct {
	times   int
	message string
	// othersLand: another change has landed since it was refused first, and times counts from there. What came before may
	// have been a remote that took nothing.
	othersLand bool
	// notBefore is when it is worth trying again; it is this process's own, not part of the fold.
	notBefore time.Time `snapshot:"-"`
}

// Bounds on trying again what the remote refuses to take. A change is ejected after maxPushRefusals refused pushes since
// another one landed. While none lands, it is tried ever more rarely, and ejected after maxLonePushRefusals, which takes about
// two minutes, if no other pending change is refused: then nothing says that the remote takes nothing.
const (
	maxPushRefusals     = 3
	maxLonePushRefusals = 8
	firstBackoff        = time.Second
	maxBackoff          = time.Minute
)

func (q *queue) countPushRefusal(f *eventsv1.LandVoid) {
	r := q.pushRefused[f.Change.Change]
	if r == nil {
		r = &pushRefusals{}
		// The remote refuses one more change: perhaps it takes nothing again.
		for _, other := range q.pushRefused {
			other.othersLand = false
		}
		q.pushRefused[f.Change.Change] = r
	}
	r.times++
	r.message = f.Reason
}

// countLanding counts the refusals of all other changes anew: the remote takes something.
func (q *queue) countLanding() {
	for change, r := range q.pushRefused {
		if q.lineup.Pending(change) == nil {
			delete(q.pushRefused, change)
		} else if !r.othersLand {
			r.othersLand, r.times = true, 0
		}
	}
}

// refusedTooOften reports whether a change is to be ejected because the remote refuses its commits, and not everybody's.
func (q *queue) refusedTooOften(change string) bool {
	r := q.pushRefused[change]
	if r == nil {
		return false
	}
	return r.othersLand && r.times >= maxPushRefusals ||
		len(q.pushRefused) == 1 && r.times >= maxLonePushRefusals && !deniesEverybody(r.message)
}

// deniesEverybody reports whether the remote's words are those by which git servers refuse the pusher or the branch, and no
// change in particular.
func deniesEverybody(sentence string) bool {
	sentence = strings.ToLower(sentence)
	return slices.ContainsFunc([]string{
		"permission", "denied", "not allowed to push", "protected branch", "read-only", "read only", "403", "frozen", "freeze",
	}, func(word string) bool { return strings.Contains(sentence, word) })
}

// nextBehind returns the change to move in front of one whose pushes the remote goes on refusing: the first behind it that
// can be tried in its place. It returns "" if there is none, or if others land anyway. A green change is expected to land, so
// nothing is built for the case that it stays in the queue: without the move, no change that conflicts with it could land, and
// as long as none lands it is not ejected (pushRefusals.othersLand).
func (q *queue) nextBehind(change string) string {
	c, r := q.lineup.Pending(change), q.pushRefused[change]
	if c == nil || r == nil || r.times < maxPushRefusals || r.othersLand {
		return ""
	}
	for _, k := range q.lineup.Order() {
		if k.Position > c.Position && len(k.Holds) == 0 && q.pushRefused[k.ID()] == nil && !q.lineup.Requires(k, change) {
			return k.ID()
		}
	}
	return ""
}

// deferPush puts off the next try of a change whose push was just refused.
func (q *queue) deferPush(change string, now time.Time) {
	if r := q.pushRefused[change]; r != nil {
		r.notBefore = now.Add(min(maxBackoff, firstBackoff<<min(r.times-1, 10)))
	}
}

// unmakeable is what this owner knows of a change whose T it cannot make.
type unmakeable struct {
	since, notBefore time.Time
	times            int
}

// makingPatience is how long T is tried to be made of a change, while others go on, before the change is ejected for it.
const makingPatience = 5 * time.Minute

// deferMaking puts off the next try to make a change's T. longEnough reports whether it was tried for makingPatience.
func (q *queue) deferMaking(change string, now time.Time) (longEnough bool) {
	u := q.unmakeable[change]
	if u == nil || now.Before(u.since) { // the clock was set back
		u = &unmakeable{since: now}
		q.unmakeable[change] = u
	}
	u.notBefore = now.Add(min(maxBackoff, firstBackoff<<min(u.times, 10)))
	u.times++
	return now.Sub(u.since) >= makingPatience
}

// decided is one decision that the lander has to act on.
type decided struct {
	id     string
	change *eventsv1.ChangeRef
	// item holds one of land, reject and eject.
	item   *eventsv1.DecisionItem
	land   *eventsv1.LandDecided
	reject *eventsv1.RejectDecided
	eject  *eventsv1.EjectDecided

	stampUS int64
	policy  *eventsv1.StepPolicy
	// builds is the offset in landfall.builds up to which evidence must be folded first; changes is what was read of
	// landfall.changes when it was decided.
	builds, changes int64
}

// newDecided returns what an item decides about a change; ok is false if it decides nothing.
func newDecided(i *eventsv1.DecisionItem) (d decided, ok bool) {
	d = decided{item: i, land: i.GetLandDecided(), reject: i.GetRejectDecided(), eject: i.GetEjectDecided()}
	switch {
	case d.land != nil:
		d.id, d.change = d.land.Decision, d.land.Change
	case d.reject != nil:
		d.id, d.change = d.reject.Decision, d.reject.Change
	case d.eject != nil:
		d.id, d.change = d.eject.Decision, d.eject.Change
	}
	return d, d.change != nil
}

func newQueue() *queue {
	return &queue{
		lineup: lineup.New(), ledger: evidence.NewLedger(), flakes: flakes.New(),
		pushes: directpush.New(), answered: map[string]map[string]bool{}, pushRefused: map[string]*pushRefusals{},
		disproved: map[string]int64{}, unprepared: unprepared{}, unmakeable: map[string]*unmakeable{},
	}
}

func (q *queue) evidence(policy *eventsv1.StepPolicy) guard.Evidence {
	return guard.Evidence{Ledger: q.ledger, Policy: policy, Pushes: q.pushes}
}

// change folds one counted fact of landfall.changes.
func (q *queue) change(m proto.Message, offset int64) {
	switch f := m.(type) {
	case *eventsv1.MainlineAnalyzed:
		q.pushes.Analyzed(f)
		return
	case *eventsv1.MainlineUnreachable:
		q.unreachable = f
		return
	case *eventsv1.MainlineReachable:
		q.unreachable = nil
		return
	case *eventsv1.TargetQuarantined, *eventsv1.QuarantineEnded:
		q.foldQuarantine(m)
		return
	}
	consequence := q.lineup.Apply(m, offset)
	if consequence.Left != nil {
		delete(q.answered, consequence.Left.ID())
		if e, is := m.(*eventsv1.ChangeEjected); !is || e.GetReason().GetClass() != eventsv1.ReasonClass_REASON_CLASS_PUSH_REFUSED {
			delete(q.pushRefused, consequence.Left.ID())
		}
		delete(q.disproved, consequence.Left.ID())
		delete(q.unmakeable, consequence.Left.ID())
		q.unprepared.forget(consequence.Left.Ref())
	}
	if e := consequence.Entered; e != nil {
		delete(q.pushRefused, e.ID()) // it is tried anew, even if it was ejected for it
	}
	if consequence.Applied {
		q.applied(m, offset)
	}
	q.decisions = slices.DeleteFunc(q.decisions, q.isAnswered)
}

// applied draws from a fact that changed the lineup what the lander keeps beside it.
func (q *queue) applied(m proto.Message, offset int64) {
	switch f := m.(type) {
	case *eventsv1.MainlineMoved:
		q.pushes.Moved(f, q.lineup.Sequence)
		q.landings.moved(f)
	case *eventsv1.LandIntended:
		q.answer(f.Change, f.Decision)
	case *eventsv1.Refused:
		q.answer(f.Change, f.Decision)
		if f.Disproved {
			q.disproved[f.Change.Change] = offset
		}
		q.unprepared.refused(f)
		if f.Base == q.lineup.Head {
			q.pushes.Doubted(f.BaseUnproven)
		}
	case *eventsv1.LandVoid:
		if f.Refused {
			q.countPushRefusal(f)
		}
	case *eventsv1.ChangeLanded:
		q.pushes.Landed(f, q.lineup.Sequence)
		q.landings.add(f)
		q.countLanding()
	}
	for _, p := range evidence.Withdrawn(m) {
		q.ledger.Withdraw(evidence.VersionOf(p), p.GetAttempt())
	}
}

func (q *queue) answer(c *eventsv1.ChangeRef, decision string) {
	if q.answered[c.Change] == nil {
		q.answered[c.Change] = map[string]bool{}
	}
	q.answered[c.Change][decision] = true
}

// decide notes what a counted record of landfall.decisions asks for.
func (q *queue) decide(d *eventsv1.Decision) {
	for _, i := range d.Items {
		if x, ok := newDecided(i); ok {
			x.stampUS, x.builds, x.changes, x.policy = d.StampUs, d.GetPositions().GetBuilds(), d.GetPositions().GetChanges(), d.Steps
			q.decisions = append(q.decisions, x)
		}
	}
	q.decisions = slices.DeleteFunc(q.decisions, q.isAnswered)
}

// isAnswered reports whether nothing is left to do for a decision: it has its answer, or its change has left the queue. A
// change that is not admitted here yet may still come: the topics are read one after the other, and whoever stops in between
// may read a decision before the admission of its change.
func (q *queue) isAnswered(d decided) bool {
	known := q.lineup.Known(d.change.GetChange()) >= d.change.GetRevision()
	return known && q.lineup.PendingAt(d.change) == nil || q.answered[d.change.Change][d.id]
}

// nextDecision returns the first decision that may be tried now, nil if there is none.
func (q *queue) nextDecision(now time.Time) *decided {
	for i := range q.decisions {
		d := &q.decisions[i]
		if q.lineup.PendingAt(d.change) == nil || q.isAnswered(*d) {
			continue
		}
		var notBefore time.Time
		if r := q.pushRefused[d.change.Change]; r != nil {
			notBefore = r.notBefore
		}
		if u := q.unmakeable[d.change.Change]; u != nil && u.notBefore.After(notBefore) {
			notBefore = u.notBefore
		}
		if !now.Before(notBefore) || notBefore.Sub(now) > maxBackoff { // the clock was set back
			return d
		}
	}
	return nil
}

// overruled returns a change ahead of c whose decision the guard disproved after d was made, nil if there is none. A rejection
// assumes that no change ahead can repair c. That rested on what the guard has disproved, so c is decided again.
func (q *queue) overruled(c *lineup.Change, d decided) *lineup.Change {
	for _, ahead := range q.lineup.Order() {
		if ahead.Position >= c.Position {
			return nil
		}
		if at, refused := q.disproved[ahead.ID()]; refused && at >= d.changes {
			return ahead
		}
	}
	return nil
}

// build folds one counted record of landfall.builds.
func (q *queue) build(m proto.Message) {
	switch f := m.(type) {
	case *eventsv1.StepFinished:
		if q.ledger.Apply(f) {
			q.flakes.Apply(f)
		}
	case *eventsv1.EvidenceForgotten:
		// A candidate that rests on what is forgotten is refused, and built again.
		q.ledger.Forget(f, nil)
	case *eventsv1.BuildPrepared:
		q.pushes.Prepared(f)
		q.unprepared.add(f, q.lineup.Known(f.Change.GetChange()), q.lineup.PendingAt(f.Change) != nil)
	}
}
