// Package lander makes decisions take effect, or refuses to: the push and the land guard (M21–M23a). It
// reads landfall.decisions, folds landfall.changes and landfall.builds, and writes to landfall.changes
// under its term. Its core is a state machine for each queue (attempt.go); what may take effect is decided by package engine/guard.
package lander

import (
	"context"
	"errors"

	"landfall.build/engine/guard"
	eventsv1 "landfall.build/events/v1"
)

// Mainline is the branch that a queue lands on, in git or in a model of it. Errors mean that nothing is
// known; the lander asks again.
type Mainline interface {
	// Head asks the remote itself. ErrNoBranch: it answers, and does not have the branch.
	Head(ctx context.Context) (string, error)
	// Between lists the commits that the mainline gained from one head to another, oldest first; forced
	// reports whether from is no ancestor of to.
	Between(ctx context.Context, from, to string) (moves []Move, forced bool, err error)
	// Make makes the commits of a change on base, deterministically: the same arguments, the same ids. ErrGone and
	// ErrUnmakeable speak about the change, any other error about the repository or this machine. quarantined are names of
	// targets, with * for any text; the commits name those that the change affects.
	Make(ctx context.Context, base string, a *eventsv1.Admission, stampUS int64, quarantined []string) (*Landing, error)
	// Contains reports whether commit is head or an ancestor of it. A head that Head gave is known with its history, so
	// a commit that is not known here is none of it.
	Contains(ctx context.Context, head, commit string) (bool, error)
	// Push puts commit on the branch if the branch is still at base (M22). ErrMoved: it was not. ErrPushRefused and
	// ErrUnknownCommit: it did not arrive. Any other error: whether it arrived is not known.
	Push(ctx context.Context, base, commit string) error
	// MoveHeads moves branches under review to what lands, each that is still where it was when it was asked for, and waits a while for the
	// host to show them there. ErrUnknownCommit: none was moved. Any other error says which are not there or not shown; the change lands
	// all the same, and the host shows its review as closed.
	MoveHeads(ctx context.Context, heads []*eventsv1.ReviewHead) error
	// TakeBackHeads moves branches back, each that is where MoveHeads has moved it. An error means that it is not known whether all are.
	TakeBackHeads(ctx context.Context, heads []*eventsv1.ReviewHead) error
	// PushNothing pushes a commit that changes no file, as Push does. Behind it no push from base can arrive any more.
	PushNothing(ctx context.Context, base string, stampUS int64) error
}

// ErrNoBranch means that the repository has no branch of that name: it was deleted, or renamed.
var ErrNoBranch = errors.New("the repository does not have the branch")

// ErrMoved means that somebody else pushed first: nothing of ours is on the branch because of this push.
var ErrMoved = errors.New("the mainline moved")

// ErrPushRefused means that the remote will not have the commit: nothing of it is on the branch.
var ErrPushRefused = errors.New("the remote refuses the push")

// PushRefusal is an ErrPushRefused with the remote's own sentence.
type PushRefusal struct {
	// Sentence is one line of at most 300 bytes, without anything of git's.
	Sentence string
	// Everybody reports whether the words are those by which servers refuse whoever pushes, or the branch.
	Everybody bool
	Err       error
}

func (r *PushRefusal) Error() string { return r.Err.Error() }

// Unwrap returns the kind of error, and its cause.
func (r *PushRefusal) Unwrap() []error { return []error{ErrPushRefused, r.Err} }

// ErrGone means that the remote answers, and does not give out a commit of the change any more: its branch was deleted
// or rewritten after it was admitted, and no mirror here has it.
var ErrGone = errors.New("the repository does not give out the change's commits any more; push them, and land the change again")

// ErrUnmakeable means that T cannot be made of this very change: its analysis panics or does not end, or git breaks off at it,
// while commits can be made on the same base.
var ErrUnmakeable = errors.New("the change's landing commits cannot be made, though others can be on the same mainline")

// ErrUnknownCommit means that this mirror does not have the commit, and that nothing was pushed: another lander has
// made it, in a mirror of its own. It can be made again.
var ErrUnknownCommit = errors.New("the commit is not known here")

// Move is one commit that came past the queue.
type Move struct{ Commit, Author, Title string }

// Landing is what a change makes of a mainline.
type Landing struct {
	// Commits of the mainline to be, oldest first, and the last one's tree; empty with an obstacle.
	Commits []string
	Tree    string
	// Deleted are the targets that it removes, Quarantined those that it affects and that need not pass, sorted.
	Deleted, Quarantined []string
	guard.Candidate
}
