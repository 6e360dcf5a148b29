// Package lineup folds landfall.changes: which changes of a queue are pending, in which order, on which mainline, and which
// landing is intended. The gateway, the analyzer, the enumerator and the lander share it. It is pure, so the same facts in
// the same order give all of them the same lineup.
package lineup

import (
	"crypto/sha256"

	eventsv1 "landfall.build/events/v1"
)

// State is what became of a revision.
type State int

// The states. All but Pending are final for the revision.
const (
	Pending State = iota + 1
	Landed
	Rejected
	Ejected
	Cancelled
)

func (s State) String() string {
	switch s {
	case Pending:
		return "pending"
	case Landed:
		return "landed"
	case Rejected:
		return "rejected"
	case Ejected:
		return "ejected"
	case Cancelled:
		return "cancelled"
	}
	return "unknown"
}

// positionStep is the distance between neighbours. It leaves room, so that a move seldom renumbers the queue.
const positionStep = 1 << 20

// Change is a pending change at its present revision.
type Change struct {
	Admission *eventsv1.Admission
	// Position orders the queue: smaller is ahead.
	Position int64
	// Holds by name, in the order in which they were put on.
	Holds []Hold
	// AdmittedOffset is the offset of its admission in landfall.changes.
	AdmittedOffset int64
	// Urgent is set once an operator has moved it to the front, or one that requires it.
	Urgent bool
}

// ID returns the change's id.
func (c *Change) ID() string { return c.Admission.Change }

// Revision returns the change's present revision.
func (c *Change) Revision() uint64 { return c.Admission.Revision }

// Ref returns the change at this revision as the log names it.
func (c *Change) Ref() *eventsv1.ChangeRef {
	return &eventsv1.ChangeRef{Change: c.Admission.Change, Revision: c.Admission.Revision}
}

// Hold keeps a change from landing.
type Hold struct{ Name, Who, Why string }

// Settled is what is kept of the newest revision of a change that is no longer pending.
type Settled struct {
	Revision uint64
	State    State
}

// digest stands for a change's id. How a change ended is never forgotten, or it could land twice. So it is kept small, and
// without pointers that the garbage collector would have to follow.
type digest [16]byte

func digestOf(id string) (d digest) {
	sum := sha256.Sum256([]byte(id))
	copy(d[:], sum[:])
	return d
}

// Intention is a LandIntended that neither ChangeLanded nor LandVoid has closed yet.
type Intention struct {
	Fact *eventsv1.LandIntended
	// Offset is its offset in landfall.changes.
	Offset int64
}

// Tip returns the last commit that it wants on the mainline.
func (i *Intention) Tip() string { return i.Fact.Commits[len(i.Fact.Commits)-1] }

// Pause says who paused a queue, why, and since when.
type Pause struct {
	Who, Why string
	// SinceUS is in microseconds since 1970, 0 if it is not known.
	SinceUS int64
}

// Queue is the lineup of one queue. The zero value is not usable; see New.
type Queue struct {
	pending map[string]*Change
	order   []*Change
	settled map[digest]Settled
	// Intention is the open one, nil if there is none.
	Intention *Intention
	// Head is the head of the mainline as the log has it, empty before the first MainlineMoved.
	Head string
	// Sequence counts the moves of the mainline, landings included.
	Sequence uint64
	Paused   *Pause
	// RefusedByRemote is why and since when the remote refuses every push, nil if it does not. Unlike a pause it keeps nobody
	// from being decided: the lander tries with what is decided whether the remote takes something again.
	RefusedByRemote *eventsv1.LandingsPaused
}

// New returns a queue without facts.
func New() *Queue {
	return &Queue{pending: map[string]*Change{}, settled: map[digest]Settled{}}
}

// Pending returns the change if it is pending, else nil.
func (q *Queue) Pending(id string) *Change { return q.pending[id] }

// PendingAt returns the change if exactly that revision is pending, else nil.
func (q *Queue) PendingAt(ref *eventsv1.ChangeRef) *Change {
	if c := q.pending[ref.GetChange()]; c != nil && c.Revision() == ref.GetRevision() {
		return c
	}
	return nil
}

// Order returns the pending changes in queue order. Callers must not change the list.
func (q *Queue) Order() []*Change { return q.order }

// SettledAs returns how the newest revision that is no longer pending ended.
func (q *Queue) SettledAs(id string) (Settled, bool) {
	s, ok := q.settled[digestOf(id)]
	return s, ok
}

// Known returns the newest revision that was ever admitted, 0 if none was.
func (q *Queue) Known(id string) uint64 {
	if c := q.pending[id]; c != nil {
		return c.Revision()
	}
	return q.settled[digestOf(id)].Revision
}

// Intended reports whether an intention is open for the change.
func (q *Queue) Intended(id string) bool {
	return q.Intention != nil && q.Intention.Fact.Change.Change == id
}

// RequirementState returns what has become of a change that another one requires. One that was never admitted is Cancelled.
func (q *Queue) RequirementState(id string) State {
	if q.pending[id] != nil {
		return Pending
	}
	if s, ok := q.settled[digestOf(id)]; ok {
		return s.State
	}
	return Cancelled
}

// MissingRequirement returns a requirement of c that can no longer land, or that requires c in turn; empty if all have
// landed or may land.
func (q *Queue) MissingRequirement(c *Change) string {
	for _, id := range c.Admission.Requires {
		if s := q.RequirementState(id); s != Pending && s != Landed {
			return id
		}
		if p := q.pending[id]; p != nil && q.Requires(p, c.ID()) {
			return id
		}
	}
	return ""
}

// Requires reports whether a change requires another one, itself or through pending changes that it requires.
func (q *Queue) Requires(c *Change, id string) bool {
	if len(c.Admission.Requires) == 0 {
		return false // most changes; all of the queue is asked with every admission
	}
	seen := map[string]bool{}
	var walk func(c *Change) bool
	walk = func(c *Change) bool {
		if c == nil || seen[c.ID()] {
			return false
		}
		seen[c.ID()] = true
		for _, r := range c.Admission.Requires {
			if r == id || walk(q.pending[r]) {
				return true
			}
		}
		return false
	}
	return walk(c)
}
