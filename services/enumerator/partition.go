// Package enumerator is the one place where topics merge: it reads landfall.changes, landfall.builds and
// landfall.models, puts every fact of a queue into one order, stamps it, and writes it to
// landfall.speculations with the speculation graph's delta. Its core is package speculation.
package enumerator

import (
	"fmt"

	"google.golang.org/protobuf/proto"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/services/enumerator/speculation"
	"landfall.build/services/evidence"
	"landfall.build/services/journal"
)

// maxFacts bounds the facts of one record; what arrives together is planned once.
const maxFacts = 128

// Partition is the pure part of the enumerator's loop on one partition.
type Partition struct {
	queues    map[string]*speculation.Queue
	changes   *journal.Terms
	own       *journal.Terms
	positions *eventsv1.Positions
	stamp     int64
	count     int64
	// thawed partitions look whether what they hold counts; stale says that it does not.
	thawed, stale bool

	pending      []*eventsv1.Fact
	pendingQueue string
}

// NewPartition knows nothing yet.
func NewPartition() *Partition {
	return &Partition{
		queues:  map[string]*speculation.Queue{},
		changes: journal.NewTerms(events.TopicChanges), own: journal.NewTerms(events.TopicSpeculations),
		positions: &eventsv1.Positions{LanderTerm: -1}, stamp: 0,
	}
}

// Queue is a queue's state, made if there is none.
func (p *Partition) Queue(name string) *speculation.Queue {
	q := p.queues[name]
	if q == nil {
		q = speculation.New()
		p.queues[name] = q
	}
	return q
}

// Positions are the offsets at which the sources are to be read on, once all own records are folded.
func (p *Partition) Positions() *eventsv1.Positions {
	p.changes.Restore(events.ServiceLander, p.positions.LanderTerm)
	return p.positions
}

// Own takes a record of landfall.speculations: what was written is the state.
func (p *Partition) Own(e journal.Entry) {
	if !p.own.Counts(e) {
		return
	}
	s, ok := e.Message.(*eventsv1.Speculation)
	if !ok {
		return
	}
	p.fold(e.Queue, s)
}

func (p *Partition) fold(queue string, s *eventsv1.Speculation) {
	p.stale = p.stale || p.thawed && before(s.Positions, p.positions)
	q := p.Queue(queue)
	for _, f := range s.Facts {
		p.count++
		q.Apply(f, p.count)
	}
	q.Fold(s.Delta)
	p.positions, p.stamp = s.Positions, s.StampUs
}

// Take takes the next record of a source topic. It returns false, having taken nothing, when what is
// gathered must be written first (see Flush).
func (p *Partition) Take(e journal.Entry) bool {
	fact := p.factOf(e)
	if fact != nil && len(p.pending) > 0 && (p.pendingQueue != e.Queue || len(p.pending) >= maxFacts || p.alone(fact)) {
		return false
	}
	counts := e.Topic != events.TopicChanges || p.changes.Counts(e)
	next := proto.Clone(p.positions).(*eventsv1.Positions)
	switch e.Topic {
	case events.TopicChanges:
		next.Changes, next.LanderTerm = e.Offset+1, p.changes.Last(events.ServiceLander)
	case events.TopicBuilds:
		next.Builds = e.Offset + 1
	case events.TopicModels:
		next.Models = e.Offset + 1
	}
	p.positions = next
	if fact != nil && counts {
		p.pendingQueue = e.Queue
		p.pending = append(p.pending, fact)
	}
	return true
}

// factOf is nil for a record that is no fact of a queue.
func (p *Partition) factOf(e journal.Entry) *eventsv1.Fact {
	if e.Message == nil || e.Queue == "" {
		return nil
	}
	return FactOf(e)
}

// FactOf is the fact of a queue that a record of a source is, nil for one that is none: of another kind, of another
// topic than its own, or a model that is too large to be handed on.
func FactOf(e journal.Entry) *eventsv1.Fact {
	f, ok := speculation.FactOf(e.Message)
	if !ok || speculation.IsModel(f) != (e.Topic == events.TopicModels) || Unfit(e) != "" {
		return nil
	}
	if s := f.GetStepFinished(); s != nil {
		f.Fact = &eventsv1.Fact_StepFinished{StepFinished: evidence.WithoutOutput(s)}
	}
	return f
}

// Unfit says why a record that could be decoded is no fact though it should be, "" if there is nothing to say.
func Unfit(e journal.Entry) string {
	if e.Topic != events.TopicModels || e.Message == nil {
		return ""
	}
	if n := proto.Size(e.Message); n > events.MaxModelBytes {
		return fmt.Sprintf("a model of %d bytes, at most %d; the one before it stays in use", n, events.MaxModelBytes)
	}
	return ""
}

// alone says that a fact shares no record with those that are gathered: models are large.
func (p *Partition) alone(f *eventsv1.Fact) bool {
	return speculation.IsModel(f) || speculation.IsModel(p.pending[0])
}

// Gathered says whether there is something to flush.
func (p *Partition) Gathered() bool { return len(p.pending) > 0 }

// Flush gives the record for what was gathered, to be written under the enumerator's term; it is part of
// the state already. clock is the enumerator's own, in microseconds: stamps never run backwards.
func (p *Partition) Flush(clock int64) (queue string, s *eventsv1.Speculation) {
	if len(p.pending) == 0 {
		return "", nil
	}
	queue, s = p.pendingQueue, p.record(p.pendingQueue, p.pending, clock)
	p.pending, p.pendingQueue = nil, ""
	return queue, s
}

// Say gives a record for a fact of the enumerator's own: settings, a tick.
func (p *Partition) Say(queue string, fact *eventsv1.Fact, clock int64) *eventsv1.Speculation {
	return p.record(queue, []*eventsv1.Fact{fact}, clock)
}

func (p *Partition) record(queue string, facts []*eventsv1.Fact, clock int64) *eventsv1.Speculation {
	p.stamp = max(p.stamp, clock)
	q := p.Queue(queue)
	for _, f := range facts {
		p.count++
		q.Apply(f, p.count)
	}
	s := &eventsv1.Speculation{
		Positions: proto.Clone(p.positions).(*eventsv1.Positions), StampUs: p.stamp, Facts: facts, Delta: q.Decide(),
	}
	q.Fold(s.Delta)
	return s
}
