// Package steps is the builder's core: which builds have to be prepared, which target versions have to be run, in which order
// and as which attempt, who holds the right to run each, and what nobody needs any more (M19a, M20a, M24, M27).
//
// It is a fold of landfall.decisions and landfall.builds, and of what landfall.changes takes back. Every instance of the
// builder holds the same fold, so any worker of any instance may take any step. No answer rests on what a worker
// remembers: a step is done when the log says so.
package steps

import (
	"google.golang.org/protobuf/proto"

	"landfall.build/engine/evidence"
	"landfall.build/engine/lineup"
	"landfall.build/engine/quota"
	eventsv1 "landfall.build/events/v1"
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
	// Workers is how many workers the pool has, 0 if that is not known. Whoever asks for steps sets it.
	Workers int `snapshot:"-"`
	liveBuilds
	// schedules counts the builds that were scheduled, starts how often one began to ask for versions.
	schedules, starts uint64
	// early holds preparations whose schedule has not been read yet: the two topics have no common order.
	early map[string]*eventsv1.BuildPrepared
	// closed holds builds that are over and may come back, oldest first; see revive.go.
	closed []*build

	// ledger is what the log has about versions. It outlives builds, as everywhere: what is green is not built again (M24)
	// until it is forgotten, and no attempt gets a number that an older one had.
	ledger *evidence.Ledger
	// lineup is who is pending.
	lineup *lineup.Queue
	memory memory
	// wanted has what the live builds ask for.
	wanted    map[Version]*wanted
	leases    map[Version]*Lease
	estimates estimates
	fair      fairness
	choice    choice `snapshot:"-"`
}

// liveBuilds are the builds that are scheduled and neither over nor aborted, and those aborted ones that linger: by id, as they were
// scheduled, and by change as they were scheduled.
type liveBuilds struct {
	live     map[string]*build
	order    []*build
	ofChange map[string][]*build `snapshot:"index"`
}

// New returns a queue about which nothing is known.
func New() *Queue {
	return &Queue{
		liveBuilds: liveBuilds{live: map[string]*build{}, ofChange: map[string][]*build{}}, early: map[string]*eventsv1.BuildPrepared{},
		ledger: evidence.NewLedger(), lineup: lineup.New(), memory: newMemory(), wanted: map[Version]*wanted{},
		leases: map[Version]*Lease{}, estimates: newEstimates(), choice: choice{quotas: newQuotas(nil, map[quota.Account]int{})},
	}
}

// Apply folds one counted record of the queue, and reports whether it means anything here. Records of other types do not.
//
// For two instances to agree, a Decision is folded after what it rests on (its positions), and what takes evidence back after
// every result that stood in the log before it.
func (q *Queue) Apply(message proto.Message, origin Origin) bool {
	switch m := message.(type) {
	case *eventsv1.Decision:
		q.foldDecision(m, origin)
	case *eventsv1.BuildPrepared:
		q.memory.addTree(m)
		q.foldPrepared(m)
	case *eventsv1.StepLeased:
		q.foldLeased(m)
	case *eventsv1.StepFinished:
		q.memory.mention(Version{Target: m.GetTarget(), Hash: m.GetHash()})
		q.foldFinished(m)
	case *eventsv1.EvidenceForgotten:
		q.foldForgotten(m)
	case *eventsv1.TargetQuarantined, *eventsv1.QuarantineEnded:
		q.quarantine(message)
	default:
		return q.foldChange(message, origin.Offset)
	}
	return true
}

// foldChange folds a fact of landfall.changes: who is pending no more, and what takes evidence back. One that came too late
// to change the lineup changes nothing here.
func (q *Queue) foldChange(message proto.Message, offset int64) bool {
	head := q.lineup.Head
	consequence := q.lineup.Apply(message, offset)
	if !consequence.Applied {
		return false
	}
	if q.lineup.Head != head {
		q.leaveHead(head)
	}
	if consequence.Left != nil {
		q.changeLeft(consequence.Left.ID(), consequence.Left.Revision(), consequence.Revised)
	}
	if consequence.Entered != nil {
		q.memory.addChange(consequence.Entered.Admission)
		q.knowAuthor(consequence.Entered)
	}
	// Only an order of an operator makes a change urgent, and perhaps others that it requires.
	switch {
	case consequence.Reordered:
		q.noteUrgency(q.order)
	case consequence.Left != nil:
		q.noteUrgency(q.ofChange[consequence.Left.ID()])
	}
	if m, is := message.(*eventsv1.ChangeLanded); is {
		q.memory.replaceOnMainline(m)
	}
	q.takeBack(message)
	return true
}

// Withdraws reports whether a record takes evidence back. Such a record waits for the schedules and results before it.
func Withdraws(message proto.Message) bool { return evidence.TakesBack(message) }

// Early returns the number of preparations whose schedule has not been read.
func (q *Queue) Early() int { return len(q.early) }

// ForgetEarly drops preparations without a schedule. It is called once every decision is folded that stood in the log when
// the last of them was folded: then they are of builds that are over.
func (q *Queue) ForgetEarly() { clear(q.early) }

// Idle reports whether no build is live or lingers.
func (q *Queue) Idle() bool { return len(q.live) == 0 }
