// Package stage runs the pure cores of enumerator, profiler, prioritizer and selector over a log: terms,
// one record per input, what is written stands (ARCHITECTURE section 3).
//
// A core is a state with three motions. Apply folds one counted input. Decide says what to write for it
// and changes nothing that a later answer could show. Fold takes a record of the stage's own as written. Behind the last own record the
// stage is live: what Decide says is sent, and folded as soon as it is sent. Before it, only what the log
// holds is folded; nothing is computed again, so a new version of the code changes no past.
package stage

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/protobuf/proto"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/services/journal"
)

// Core is the state of one queue in one stage. Its methods are called by one goroutine.
type Core interface {
	// Apply folds one counted input of the queue at its offset.
	Apply(input proto.Message, offset int64)
	// Decide gives the record for the inputs since the last Fold, nil for none. It changes nothing that a later answer
	// could show: asking twice, or not at all, makes no difference.
	Decide() proto.Message
	// Fold takes a record as written.
	Fold(output proto.Message)
}

// Stage says what a stage reads and writes.
type Stage struct {
	Service string
	// Input and Output are topics; the stage writes Output alone.
	Input, Output string
	// New makes the state of one queue.
	New func(queue string) Core
	// Position is the offset in landfall.speculations that a record of the stage answers, InputPosition
	// that of an input.
	Position      func(output proto.Message) int64
	InputPosition func(e journal.Entry) int64
	// Warnings, if set, are what people should be told when a record is written, such as that a model cannot be used.
	Warnings func(output proto.Message) []string
	// Reports: no gateway reads the input, so the stage itself says which of its records cannot be decoded.
	Reports bool
}

// Partition is a stage on one partition: the pure part of the loop. Feed it records of both topics in the
// order of the log; it says what to write.
type Partition struct {
	stage  Stage
	queues map[string]Core
	input  *journal.Terms
	output *journal.Terms
	// own are counted records of the stage that are ahead of the input read so far, in order.
	own  []ownRecord
	live bool
	// inputNext is the offset behind the last input that was taken, counted or not, and position the highest that
	// one had; stale is set by an own record for a position that a snapshot had passed.
	inputNext, position int64
	thawed, stale       bool
}

type ownRecord struct {
	queue    string
	position int64
	message  proto.Message
}

// NewPartition knows nothing yet.
func NewPartition(s Stage) *Partition {
	return &Partition{stage: s, queues: map[string]Core{}, input: journal.NewTerms(s.Input), output: journal.NewTerms(s.Output), position: -1}
}

func (p *Partition) core(queue string) Core {
	c := p.queues[queue]
	if c == nil {
		c = p.stage.New(queue)
		p.queues[queue] = c
	}
	return c
}

// Core is the state of a queue, nil if the log has nothing of it.
func (p *Partition) Core(queue string) Core { return p.queues[queue] }

// Own takes a record of the output topic, up to and including the stage's own claim.
func (p *Partition) Own(e journal.Entry) {
	if p.output.Counts(e) && e.Source == p.stage.Service {
		at := p.stage.Position(e.Message)
		p.stale = p.stale || p.thawed && at <= p.position
		p.own = append(p.own, ownRecord{e.Queue, at, e.Message})
	}
}

// Fits says whether the next input may be taken. Own records that answer no input, because the topic was
// written to by somebody else or repeats a record, are given back, for people to look at: they cannot be
// folded, and waiting for their input would be for ever. Without such a record ahead of the input, and before
// the claim is read, the caller must read on in the own topic.
func (p *Partition) Fits(e journal.Entry) (ok bool, orphans int) {
	if !p.input.Admits(e) {
		// A claim, or from before one: it says nothing of the positions that are still to come.
		return true, 0
	}
	for len(p.own) > 0 && p.own[0].position < p.stage.InputPosition(e) {
		p.own = p.own[1:]
		orphans++
	}
	return p.live || len(p.own) > 0, orphans
}

// Live says that everything up to the claim was read: from the first input behind the last own record,
// the stage writes.
func (p *Partition) Live() { p.live = true }

// Input takes the next record of the input topic. If out is not nil it is to be written, under the stage's
// term, for queue; it is part of the state already.
func (p *Partition) Input(e journal.Entry) (queue string, out proto.Message) {
	p.inputNext = e.Offset + 1
	if !p.input.Counts(e) {
		return "", nil
	}
	p.position = max(p.position, p.stage.InputPosition(e))
	c := p.core(e.Queue)
	c.Apply(e.Message, e.Offset)
	if len(p.own) > 0 {
		if p.own[0].position == p.stage.InputPosition(e) && p.own[0].queue == e.Queue {
			c.Fold(p.own[0].message)
			p.own = p.own[1:]
		}
		return "", nil
	}
	if !p.live {
		return "", nil
	}
	if out := c.Decide(); out != nil {
		c.Fold(out)
		return e.Queue, out
	}
	return "", nil
}

// Behind says that the input read so far is behind the stage's last record.
func (p *Partition) Behind() bool { return len(p.own) > 0 }

// NeedsOwn says that the caller must read on in the output topic before the next input: whether an own
// record answers it is not known yet.
func (p *Partition) NeedsOwn() bool { return !p.live && len(p.own) == 0 }

// Claim appends the claim that opens a term, and returns the term.
func Claim(ctx context.Context, log journal.Log, service, instance, version, topic string, partition int32, now time.Time) (int64, error) {
	offsets, err := log.Append(ctx, topic, partition, events.Envelope{
		ID:     events.DeriveID(log.ID(), "claim", service, instance, topic, fmt.Sprint(partition), fmt.Sprint(now.UnixNano())),
		Source: service, Instance: instance, Time: now, Term: -1,
		Message: &eventsv1.Claim{Service: service, Instance: instance, Version: version, ClaimedUs: now.UnixMicro()},
	})
	if err != nil {
		return 0, fmt.Errorf("claim partition %d of %s: %w", partition, topic, err)
	}
	return offsets[0], nil
}
