// Package lander makes decisions take effect, or refuses to: the push and the land guard (M21–M23a). It
// reads landfall.decisions, folds landfall.changes and landfall.builds, and writes to landfall.changes
// under its term. Its core is package guard.
package lander

import (
	"context"
	"errors"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	eventsv1 "landfall.build/events/v1"
	"landfall.build/services/evidence"
	"landfall.build/services/foreign"
	"landfall.build/services/lander/guard"
	"landfall.build/services/lineup"
)

// Mainline is the branch that a queue lands on, in git or in a model of it. Errors mean that nothing is
// known; the lander asks again.
type Mainline interface {
	// Head asks the remote itself. ErrNoBranch says that it answers, and does not have the branch.
	Head(ctx context.Context) (string, error)
	// Between lists the commits that the mainline gained from one head to another, oldest first; forced
	// says that from is no ancestor of to.
	Between(ctx context.Context, from, to string) (moves []Move, forced bool, err error)
	// Make makes the commits of a change on base, deterministically: the same arguments, the same ids.
	Make(ctx context.Context, base string, a *eventsv1.Admission, stampUS int64) (*Landing, error)
	// Contains says whether commit is head or an ancestor of it. A head that Head gave is known with its history, so
	// a commit that is not known here is none of it.
	Contains(ctx context.Context, head, commit string) (bool, error)
	// Push puts commit on the branch if the branch is still at base (M22). ErrMoved: it was not. ErrRefused and
	// ErrUnknownCommit say what they say. Any other error: whether it arrived is not known.
	Push(ctx context.Context, base, commit string) error
}

// ErrNoBranch says that the repository has no branch of that name: it was deleted, or renamed.
var ErrNoBranch = errors.New("the repository does not have the branch")

// ErrMoved says that somebody else pushed first: nothing of ours is on the branch because of this push.
var ErrMoved = errors.New("the mainline moved")

// ErrRefused says that the remote will not have the commit: nothing of it is on the branch.
var ErrRefused = errors.New("the remote refuses the push")

// ErrGone says that the remote answers, and does not give out a commit of the change any more: its branch was deleted
// or rewritten after it was admitted, and no mirror here has it.
var ErrGone = errors.New("the repository does not give out the change's commits any more; push them, and land the change again")

// ErrUnknownCommit says that this mirror does not have the commit, and that nothing was pushed: another lander has
// made it, in a mirror of its own. It can be made again.
var ErrUnknownCommit = errors.New("the commit is not known here")

// Move is one commit that came past the queue.
type Move struct{ Commit, Author, Title string }

// Landing is what a change makes of a mainline.
type Landing struct {
	// Commits of the mainline to be, oldest first, and the last one's tree; empty with an obstacle.
	Commits []string
	Tree    string
	// Deleted are the targets that it removes.
	Deleted []string
	guard.Candidate
}

// queue is the lander's state of one queue.
type queue struct {
	lineup *lineup.Queue
	ledger *evidence.Ledger
	// foreign is what came past the queue (M23a).
	foreign *foreign.Pushes
	// decisions that are not answered, in the order of the log.
	decisions []decided
	// answered decisions of pending changes, by change.
	answered map[string]map[string]bool
	// refused are pending changes whose commits the remote would not have.
	refused map[string]*refusal
	// disproved is where the guard last found of each pending change that its tree is not what a decision had it for.
	disproved map[string]int64
	// unprepared are builds of pending changes whose trees could not be made.
	unprepared unprepared
	// landings are the newest.
	landings landings
	// unreachable is what the log says of a mainline that cannot be worked on, nil if it can; trouble is what this
	// process has seen of it.
	unreachable *eventsv1.MainlineUnreachable
	trouble     trouble `snapshot:"-"`
}

// refusal is what is known of a change that the remote refuses.
type refusal struct {
	times   int
	message string
	// othersLand: another change has landed since, so it is not the remote that takes nothing.
	othersLand bool
	// notBefore is when it is worth trying again; it is this process's own, not part of the fold.
	notBefore time.Time `snapshot:"-"`
}

// Bounds on trying again what the remote refuses: a change is ejected after that many refusals if others
// land; while nothing does, it stays in the queue and is tried ever more rarely.
const (
	maxRefusals    = 3
	refusalBackoff = time.Second
	maxBackoff     = time.Minute
)

func (q *queue) refuse(f *eventsv1.LandVoid) {
	r := q.refused[f.Change.Change]
	if r == nil {
		r = &refusal{}
		q.refused[f.Change.Change] = r
	}
	r.times++
	r.message = f.Reason
}

// waitsBehindRefused is the first change behind one that the remote goes on refusing that can be tried in its place, ""
// if there is none, or if others land as it is. Behind a change that is green everywhere nothing is built for the case
// that it stays: whoever meets it would wait for good, and as long as nobody lands it is not ejected either.
func (q *queue) waitsBehindRefused(change string) string {
	c, r := q.lineup.Pending(change), q.refused[change]
	if c == nil || r == nil || r.times < maxRefusals || r.othersLand {
		return ""
	}
	for _, k := range q.lineup.Order() {
		if k.Position > c.Position && len(k.Holds) == 0 && q.refused[k.ID()] == nil && !q.lineup.Requires(k, change) {
			return k.ID()
		}
	}
	return ""
}

// deferRefused puts off the next try of a change that was just refused.
func (q *queue) deferRefused(change string, now time.Time) {
	if r := q.refused[change]; r != nil {
		r.notBefore = now.Add(min(maxBackoff, refusalBackoff<<min(r.times-1, 10)))
	}
}

// decided is one decision that the lander has to act on.
type decided struct {
	id      string
	change  *eventsv1.ChangeRef
	land    *eventsv1.LandDecided
	reject  *eventsv1.RejectDecided
	eject   *eventsv1.EjectDecided
	stampUS int64
	policy  *eventsv1.StepPolicy
	// builds is the offset in landfall.builds up to which evidence must be folded first; changes is what was read of
	// landfall.changes when it was decided.
	builds, changes int64
}

func newQueue() *queue {
	return &queue{
		lineup: lineup.New(), ledger: evidence.NewLedger(),
		foreign: foreign.New(), answered: map[string]map[string]bool{}, refused: map[string]*refusal{},
		disproved: map[string]int64{}, unprepared: unprepared{},
	}
}

func (q *queue) evidence(policy *eventsv1.StepPolicy) guard.Evidence {
	return guard.Evidence{Ledger: q.ledger, Policy: policy, Foreign: q.foreign}
}

// change folds one counted fact of landfall.changes.
func (q *queue) change(m proto.Message, offset int64) {
	switch f := m.(type) {
	case *eventsv1.MainlineAnalyzed:
		q.foreign.Analyzed(f)
		return
	case *eventsv1.MainlineUnreachable:
		q.unreachable = f
		return
	case *eventsv1.MainlineReachable:
		q.unreachable = nil
		return
	}
	eff := q.lineup.Apply(m, offset)
	if eff.Left != nil {
		q.decisions = slices.DeleteFunc(q.decisions, q.over)
		delete(q.answered, eff.Left.ID())
		delete(q.refused, eff.Left.ID())
		delete(q.disproved, eff.Left.ID())
		q.unprepared.forget(eff.Left.Ref())
	}
	if eff.Applied {
		q.applied(m, offset)
	}
}

// applied draws from a fact that changed the lineup what the lander keeps beside it.
func (q *queue) applied(m proto.Message, offset int64) {
	switch f := m.(type) {
	case *eventsv1.MainlineMoved:
		q.foreign.Moved(f, q.lineup.Sequence)
		q.landings.moved(f)
	case *eventsv1.LandIntended:
		q.answer(f.Change, f.Decision)
	case *eventsv1.Refused:
		q.answer(f.Change, f.Decision)
		if f.Disproved {
			q.disproved[f.Change.Change] = offset
		}
	case *eventsv1.LandVoid:
		if f.Refused {
			q.refuse(f)
		}
	case *eventsv1.ChangeLanded:
		q.foreign.Landed(f, q.lineup.Sequence)
		q.landings.add(f)
		for _, r := range q.refused {
			r.othersLand = true
		}
	case *eventsv1.ChangeRejected:
		q.withdraw(f.Reason)
	case *eventsv1.ChangeEjected:
		q.withdraw(f.Reason)
	}
}

func (q *queue) answer(c *eventsv1.ChangeRef, decision string) {
	if q.answered[c.Change] == nil {
		q.answered[c.Change] = map[string]bool{}
	}
	q.answered[c.Change][decision] = true
}

func (q *queue) withdraw(r *eventsv1.Reason) {
	for _, p := range r.GetFailed() {
		q.ledger.Withdraw(evidence.Version{Target: p.GetVersion().GetTarget(), Hash: p.GetVersion().GetHash()}, p.GetAttempt())
	}
}

// decide notes what a counted record of landfall.decisions asks for.
func (q *queue) decide(d *eventsv1.Decision) {
	for _, i := range d.Items {
		x := decided{stampUS: d.StampUs, builds: d.GetPositions().GetBuilds(), changes: d.GetPositions().GetChanges(), policy: d.Steps}
		switch v := i.Item.(type) {
		case *eventsv1.DecisionItem_LandDecided:
			x.id, x.change, x.land = v.LandDecided.Decision, v.LandDecided.Change, v.LandDecided
		case *eventsv1.DecisionItem_RejectDecided:
			x.id, x.change, x.reject = v.RejectDecided.Decision, v.RejectDecided.Change, v.RejectDecided
		case *eventsv1.DecisionItem_EjectDecided:
			x.id, x.change, x.eject = v.EjectDecided.Decision, v.EjectDecided.Change, v.EjectDecided
		default:
			continue
		}
		q.decisions = append(q.decisions, x)
	}
}

// over says that a decision asks for nothing any more. One of a change that is not known yet does: the topics are read one
// after the other, and whoever stops in between may read a decision before the admission that it is about.
func (q *queue) over(d decided) bool {
	known := q.lineup.Known(d.change.GetChange()) >= d.change.GetRevision()
	return known && q.lineup.PendingAt(d.change) == nil || q.answered[d.change.Change][d.id]
}

// next is the first decision that still asks for something and may be tried now, nil if there is none.
func (q *queue) next(now time.Time) *decided {
	q.decisions = slices.DeleteFunc(q.decisions, q.over)
	for i := range q.decisions {
		if q.lineup.PendingAt(q.decisions[i].change) == nil {
			continue
		}
		r := q.refused[q.decisions[i].change.Change]
		if r == nil || !now.Before(r.notBefore) || r.notBefore.Sub(now) > maxBackoff { // the clock was set back
			return &q.decisions[i]
		}
	}
	return nil
}

// overruled is a change ahead of c that the guard has found to be otherwise since d was decided, nil if there is none. Who goes out
// is taken to go whatever those ahead make of the mainline, and what was taken of that one has been found wrong: what it
// would mend in c is not known.
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

// step folds a finished step.
func (q *queue) step(f *eventsv1.StepFinished) { q.ledger.Apply(f) }

// forget folds what is not known any more: a candidate that rests on it is refused, and built again.
func (q *queue) forget(f *eventsv1.EvidenceForgotten) { q.ledger.Forget(f, nil) }

// prepared notes what the mainline's own versions are, and which trees could not be made.
func (q *queue) prepared(f *eventsv1.BuildPrepared) {
	q.foreign.Prepared(f)
	q.unprepared.add(f, q.lineup.Known(f.Change.GetChange()), q.lineup.PendingAt(f.Change) != nil)
}
