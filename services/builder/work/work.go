// Package work is the builder's core: which builds want preparing, which target versions want running, in
// which order and at which attempt, who holds the right to run each, and what nobody needs any more
// (MODEL M19a, M20a, M24 to M27).
//
// It is a fold of landfall.decisions and landfall.builds, and of what landfall.changes withdraws. Every
// instance of the builder holds the same fold, so that any worker of any instance may take any step. What
// it answers never names a worker's own memory: a step is done when the log says so.
package work

import (
	"google.golang.org/protobuf/proto"

	eventsv1 "landfall.build/events/v1"
	"landfall.build/services/evidence"
	"landfall.build/services/lineup"
)

// Version is a target version, whatever build asked for it.
type Version = evidence.Version

// Origin is the record of the log that something comes from.
type Origin struct {
	Offset int64
	Trace  string
}

// Queue is the state of one queue. It is for one goroutine at a time.
type Queue struct {
	// builds are those that are scheduled and not over, aborted ones that linger among them.
	builds map[string]*build
	// order has the same builds, the most valuable first.
	order    []*build
	sequence uint64
	// early are preparations whose schedule has not been read yet: the two topics have no common order.
	early map[string]*eventsv1.BuildPrepared

	// closed are builds that ended without success, oldest first; see revive.go.
	closed []*build

	// ledger is what the log has about versions. It outlives builds, as everywhere: what is green is not
	// built again (M24) until it is forgotten, and no attempt gets a number that an older one had.
	ledger *evidence.Ledger
	// lineup is who is pending.
	lineup *lineup.Queue
	memory memory
	// asking are the builds that ask for a version, lingering ones among them.
	asking    map[Version][]*build
	leases    map[Version]*Lease
	durations map[string]*duration
}

// New is a queue of which nothing is known.
func New() *Queue {
	return &Queue{
		builds: map[string]*build{}, early: map[string]*eventsv1.BuildPrepared{},
		ledger: evidence.NewLedger(), lineup: lineup.New(), memory: newMemory(), asking: map[Version][]*build{},
		leases: map[Version]*Lease{}, durations: map[string]*duration{},
	}
}

// Apply folds one counted record of the queue. It says whether the record has a meaning here; records of
// other types are stepped over.
//
// For two instances to agree, a Decision is to be folded after what it rests on (its positions), and a
// ChangeRejected or ChangeEjected after every result that stood in the log before it.
func (q *Queue) Apply(message proto.Message, origin Origin) bool {
	switch m := message.(type) {
	case *eventsv1.Decision:
		q.decide(m, origin)
	case *eventsv1.BuildPrepared:
		q.memory.tree(m)
		q.prepared(m)
	case *eventsv1.StepLeased:
		q.leased(m)
	case *eventsv1.StepFinished:
		q.memory.name(Version{Target: m.GetTarget(), Hash: m.GetHash()})
		q.finished(m)
	case *eventsv1.EvidenceForgotten:
		q.forget(m)
	default:
		return q.fact(message, origin.Offset)
	}
	return true
}

// fact folds a fact of landfall.changes: who is pending no more, and what takes evidence back. One that changes
// nothing, since it came too late, changes nothing here.
func (q *Queue) fact(message proto.Message, offset int64) bool {
	effect := q.lineup.Apply(message, offset)
	if !effect.Applied {
		return false
	}
	if effect.Left != nil {
		q.left(effect.Left.ID(), effect.Left.Revision())
	}
	if effect.Entered != nil {
		q.memory.entered(effect.Entered.Admission)
	}
	switch m := message.(type) {
	case *eventsv1.ChangeLanded:
		q.memory.landed(m)
	case *eventsv1.ChangeRejected:
		q.withdraw(m.GetReason())
	case *eventsv1.ChangeEjected:
		q.withdraw(m.GetReason())
	}
	return true
}

// Withdraws says whether a record takes evidence back: such a one waits for the schedules and results before
// it.
func Withdraws(message proto.Message) bool {
	switch m := message.(type) {
	case *eventsv1.ChangeRejected:
		return len(m.GetReason().GetFailed()) > 0
	case *eventsv1.ChangeEjected:
		return len(m.GetReason().GetFailed()) > 0
	}
	return false
}

// Early is the number of preparations whose schedule has not been read.
func (q *Queue) Early() int { return len(q.early) }

// ForgetEarly drops preparations without a schedule. It is to be called once every decision that stood in
// the log when the last of them was folded has been folded too: they are of builds that are over.
func (q *Queue) ForgetEarly() { clear(q.early) }

// Idle says that no build is live or lingers.
func (q *Queue) Idle() bool { return len(q.builds) == 0 }
