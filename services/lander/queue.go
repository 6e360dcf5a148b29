package lander

import (
	"cmp"
	"slices"
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
	// refusedSinceUS is when the remote first refused a push since the last landing, 0 for never. refusing has its sentence while
	// it refuses every push, as far as refusals show; the log has that as lineup.RefusedByRemote.
	refusedSinceUS int64
	refusing       *eventsv1.LandingsPaused
	// disproved has, by pending change, the offset of the last refusal that disproved what the change was decided on.
	disproved map[string]int64
	// unprepared are builds of pending changes whose trees could not be made.
	unprepared unprepared
	// flakes counts which targets contradict themselves.
	flakes *flakes.Stats
	// landings are the newest, up to maxLandings.
	landings landings
	// unreachable is the record of a mainline that cannot be worked on, nil if it can.
	unreachable *eventsv1.MainlineUnreachable
	// unmakeable are pending changes of which this owner cannot make T.
	unmakeable map[string]*unmakeable `snapshot:"-"`
	// attempt is what this owner is doing.
	attempt attempt `snapshot:"-"`
}

// unmakeable is what this owner knows of a change whose T it cannot make.
type unmakeable struct {
	since, notBefore time.Time
	times            int
}

// makingPatience is how long the lander tries to make T of a change, while others go on, before it ejects the change.
const makingPatience = 5 * time.Minute

// deferMaking puts off the next try to make a change's T. longEnough reports whether it was tried for makingPatience.
func (q *queue) deferMaking(change string, now time.Time) (longEnough bool) {
	u := q.unmakeable[change]
	if u == nil || now.Before(u.since) { // the clock was set back
		u = &unmakeable{since: now}
		q.unmakeable[change] = u
	}
	u.times++
	u.notBefore = now.Add(backoff(u.times))
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

// foldChange folds one counted fact of landfall.changes.
func (q *queue) foldChange(m proto.Message, offset int64) {
	switch f := m.(type) {
	case *eventsv1.MainlineAnalyzed:
		q.pushes.Analyzed(f)
		return
	case *eventsv1.MainlineSurveyed:
		if f.Commit == q.lineup.Head && !(f.Again && q.lineup.Intention != nil) {
			q.pushes.Surveyed(f)
		}
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
		delete(q.pushRefused, e.ID()) // its pushes are tried again, even if it was ejected for them
		q.admitOther()
	}
	if consequence.Applied {
		q.foldApplied(m, offset)
	}
	q.decisions = slices.DeleteFunc(q.decisions, q.isAnswered)
}

// foldApplied folds what the lander keeps beside the lineup, of a fact that changed the lineup.
func (q *queue) foldApplied(m proto.Message, offset int64) {
	switch f := m.(type) {
	case *eventsv1.MainlineMoved:
		q.pushes.Moved(f, q.lineup.Sequence)
		q.landings.moved(f)
	case *eventsv1.LandIntended:
		q.markAnswered(f.Change, f.Decision)
	case *eventsv1.Refused:
		q.markAnswered(f.Change, f.Decision)
		if f.Disproved {
			q.disproved[f.Change.Change] = offset
		}
		q.unprepared.refused(f)
		if f.Base == q.lineup.Head {
			q.pushes.Doubted(f.BaseUnproven)
		}
	case *eventsv1.LandVoid:
		if f.Refused {
			q.foldPushRefusal(f)
		}
	case *eventsv1.LandingsPaused:
		q.refusing = f
	case *eventsv1.LandingsResumed:
		q.refusing = nil
	case *eventsv1.QueueResumed:
		q.attempt.rest = rest{} // a person asks for a try
	case *eventsv1.ChangeLanded:
		q.pushes.Landed(f, q.lineup.Sequence)
		q.landings.add(f)
		q.countLanding()
	}
	q.ledger.TakeBack(m)
	q.flakes.TakeBack(m)
}

// markAnswered notes that a decision has its answer.
func (q *queue) markAnswered(c *eventsv1.ChangeRef, decision string) {
	if q.answered[c.Change] == nil {
		q.answered[c.Change] = map[string]bool{}
	}
	q.answered[c.Change][decision] = true
}

// foldDecision folds one counted record of landfall.decisions.
func (q *queue) foldDecision(d *eventsv1.Decision) {
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

// nextDecision returns the decision that is to be tried now, nil if there is none: the first that may be, but for changes that the
// remote has refused since the last landing, which come last. While the remote refuses
// every push, a landing comes last and seldom, or at once if the remote has refused one change alone, and not this one. It is that
// of the change that was refused least often, which shows best whether the remote takes something again.
func (q *queue) nextDecision(now time.Time) *decided {
	var landing *decided
	for i := range q.decisions {
		d := &q.decisions[i]
		if q.lineup.PendingAt(d.change) == nil || q.isAnswered(*d) {
			continue
		}
		var notBefore time.Time
		r := q.pushRefused[d.change.Change]
		if r != nil && q.refusing == nil && !q.refusedTooOften(d.change.Change) {
			notBefore = r.notBefore
		}
		if u := q.unmakeable[d.change.Change]; u != nil && u.notBefore.After(notBefore) {
			notBefore = u.notBefore
		}
		switch {
		case isAhead(notBefore, now):
		case d.land == nil || q.refusing == nil && q.isUntried(d.change.Change):
			return d
		case q.refusing == nil:
			landing = cmp.Or(landing, d)
		case (!q.rests(now) || q.refusesOne() && q.isUntried(d.change.Change)) && (landing == nil || q.timesRefused(d) < q.timesRefused(landing)):
			landing = d
		}
	}
	return landing
}

// isAhead reports whether a time to wait for has not come. One that is too far away was set before the clock was set back.
func isAhead(notBefore, now time.Time) bool {
	return now.Before(notBefore) && notBefore.Sub(now) <= maxBackoff
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

// foldBuild folds one counted record of landfall.builds.
func (q *queue) foldBuild(m proto.Message) {
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
