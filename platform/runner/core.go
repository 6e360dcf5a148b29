// Package runner runs the mind of a service over a log: it claims a partition, reads, writes, keeps snapshots, and gives up
// when another instance has claimed. Enumerator, profiler, prioritizer, selector and lander differ in their cores alone.
//
// A core does nothing itself. It is folded from the log and asked what to do; what it answers are values, the effects,
// which the runner or the service carries out. So a simulation, a replay and the random schedules drive the same core, and
// the same runner, as production.
package runner

import (
	"context"
	"log/slog"
	"time"

	"google.golang.org/protobuf/proto"

	"landfall.build/events"
	"landfall.build/platform/journal"
)

// Core is a service's mind on one partition. One goroutine calls it.
type Core interface {
	// CanBatch reports whether a record of a source may join the inputs that were applied since the last Decide. If not, the
	// runner calls Decide and carries out the effects first.
	CanBatch(e journal.Entry) bool
	// Apply folds one input.
	Apply(in Input)
	// Decide returns what to do now, in this order. It changes nothing: asking twice, or not at all, makes no difference.
	Decide() []Effect
	// Fold takes an effect as carried out: a record that the service has written, now or before this owner, or an effect that
	// has no outcome.
	Fold(done Effect)

	// NeedsOwn reports whether the core must read its next own record before it can apply an input.
	NeedsOwn() bool
	// GoLive is called once, when the own topic is read up to the claim: the core holds all that its predecessors wrote. From
	// here on it decides.
	GoLive(now time.Time)
	// Stale reports whether an own record has shown that the snapshot that the core was restored from holds outputs that do
	// not count.
	Stale() bool
	// Next returns the offset of the first record of a source that the core has not applied.
	Next(topic string) int64
	// Snapshot returns the core's state. It is called only where nothing is undecided.
	Snapshot() proto.Message
}

// Input is what a core folds. One of Record, Outcome and Tick is set.
type Input struct {
	// Record is a record of a source as it was read, whether it counts or not.
	Record *journal.Entry
	// Outcome is what came of an effect that the service carried out.
	Outcome any
	// Tick says that time has passed.
	Tick *Tick
	// Now is the service's clock.
	Now time.Time
}

// Tick lets a core know the time.
type Tick struct {
	// Queue is the one whose turn it is; "" if the core knows whose.
	Queue string
}

// Effect is something to do, as data: Append, DeadLetter, Log, or what the service's Perform takes.
type Effect any

// Append writes a record under the owner's term.
type Append struct {
	Queue, Subject string
	// Identity tells the record from others of its type, queue and term.
	Identity []string
	Trace    string
	Message  proto.Message
	// Envelope, if set, is the whole record, which is the same whichever owner writes it: it has no term.
	Envelope *events.Envelope
	// Own is the record as it was read, if it was written before this owner wrote.
	Own *journal.Entry
}

// DeadLetter reports a record that cannot be handled. It is written once, whoever else has seen the record.
type DeadLetter struct {
	Entry  journal.Entry
	Reason string
	// Advice is what to do; by default what fits the record's topic.
	Advice string
}

// Log tells people.
type Log struct {
	Level slog.Level
	Text  string
	Args  []any
}

// Service says what a service reads, writes and thinks with.
type Service struct {
	// Name is the service's, as in events.Topics.
	Name string
	// Output is the topic that is claimed and written.
	Output string
	// Sources are the topics that the core applies, in the order in which what has arrived is taken.
	Sources []string
	// ReadsBack: the output is a source as well, and a record that was written is applied once it was read back, in the order of
	// the log. One effect is carried out at a time. Otherwise a record is part of the state as soon as it is sent.
	ReadsBack bool
	// Batch is how many records of a source are taken at most before the next source has its turn; at least 1.
	Batch int
	// TickEvery is the time between two ticks; none if it is 0.
	TickEvery time.Duration

	// New returns the core of a partition that knows nothing yet.
	New func() Core
	// Restore returns the core that a snapshot was taken of by the owner of a term.
	Restore func(state []byte, term int64) (Core, error)
	// Perform carries out an effect that the runner does not know. What it returns is the core's next input; an effect that
	// returns nil is folded.
	Perform func(ctx context.Context, e Effect) (outcome any)
	// Close is called at the end of an ownership. It may be nil.
	Close func()
}
