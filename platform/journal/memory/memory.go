// Package memory is the journal in one process's memory, for tests and the simulator. Everything goes
// through the same codec, parts and offsets as with Kafka. It does nothing by itself: no clock, no
// goroutine, no random source; what a broker may do to an append is decided by the caller's Fault.
package memory

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"google.golang.org/protobuf/proto"

	"landfall.build/events"
	"landfall.build/platform/journal"
)

// Verdict is what happens to one append of one event.
type Verdict int

const (
	// Deliver writes it and acknowledges it.
	Deliver Verdict = iota
	// FailBefore fails it without writing anything.
	FailBefore
	// FailAfter writes it, and returns an error to the writer.
	FailAfter
	// Late fails it now; it stays in flight and is written by DeliverLate.
	Late
	// Torn writes the first part of a record in several parts, and fails. A record in one part is
	// not written.
	Torn
)

// Options of a log. Every field but Partitions may be left out.
type Options struct {
	// ID is the log's id, "memory" if empty.
	ID         string
	Partitions int32
	// Shared hands readers the very messages that were appended, without the codec: neither the writer
	// nor a reader may change one. It is for whoever runs thousands of logs. Land requests, and records
	// of several parts, go through the codec all the same.
	Shared bool
	// Fault decides about every append, in the order of the appends of a partition. It is called
	// with the log locked: it must not call the log.
	Fault func(topic string, partition int32, e events.Envelope) Verdict
}

// Log implements journal.Log.
type Log struct {
	id         string
	partitions int32
	shared     bool
	claimed    map[journal.ClaimedWriter]bool
	fault      func(topic string, partition int32, e events.Envelope) Verdict

	mu     sync.Mutex
	closed bool
	logs   map[place]*partition
	failed map[writer]error
}

type place struct {
	topic     string
	partition int32
}

// writer is a service whose failed append on a partition ends its ownership of it.
type writer struct {
	place
	source string
}

type partition struct {
	records []written
	late    [][]written
	cursors []*cursor
}

// written is one record: as bytes, or, in a shared log, as the entry that readers get.
type written struct {
	bytes journal.Record
	entry *journal.Entry
}

// New makes an empty log with all topics of events.Topics.
func New(o Options) *Log {
	if o.ID == "" {
		o.ID = "memory"
	}
	l := &Log{id: o.ID, partitions: max(1, o.Partitions), shared: o.Shared, fault: o.Fault,
		claimed: journal.ClaimedWriters(), logs: map[place]*partition{}, failed: map[writer]error{}}
	for _, t := range events.Topics() {
		for p := range l.partitions {
			l.logs[place{t.Name, p}] = &partition{}
		}
	}
	return l
}

// ID implements journal.Log.
func (l *Log) ID() string { return l.id }

// Partitions implements journal.Log.
func (l *Log) Partitions() int32 { return l.partitions }

// Append implements journal.Log. It stops at the first event that fails.
func (l *Log) Append(ctx context.Context, topic string, partition int32, es ...events.Envelope) ([]int64, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	offsets := make([]int64, 0, len(es))
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range es {
		offset, err := l.append(place{topic, partition}, e)
		if err != nil {
			return nil, err
		}
		offsets = append(offsets, offset)
	}
	return offsets, nil
}

// AppendAsync implements journal.Log: it is done, and done is called, before it returns.
func (l *Log) AppendAsync(ctx context.Context, topic string, partition int32, e events.Envelope, done func(offset int64, err error)) {
	offsets, err := l.Append(ctx, topic, partition, e)
	if err != nil {
		done(-1, err)
		return
	}
	done(offsets[0], nil)
}

func (l *Log) append(at place, e events.Envelope) (int64, error) {
	p, err := l.partition(at)
	if err != nil {
		return -1, err
	}
	records, err := l.recordsOf(at, e)
	w, sticky := writer{at, e.Source}, l.claimed[journal.ClaimedWriter{Topic: at.topic, Service: e.Source}]
	if err != nil {
		if sticky {
			l.failed[w] = fmt.Errorf("%w: not tried, since an earlier append failed: %w", journal.ErrAppend, err)
		}
		return -1, err
	}
	if sticky {
		if journal.BeginsTerm(e) {
			delete(l.failed, w)
		}
		if err := l.failed[w]; err != nil {
			return -1, err
		}
	}
	verdict := Deliver
	if l.fault != nil {
		verdict = l.fault(at.topic, at.partition, e)
	}
	switch verdict {
	case Deliver, FailAfter:
		p.write(records)
	case Late:
		p.late = append(p.late, records)
	case Torn:
		p.write(records[:min(1, len(records)-1)])
	case FailBefore:
	}
	if verdict == Deliver {
		return int64(len(p.records)) - 1, nil
	}
	err = fmt.Errorf("%w: injected fault on %s/%d", journal.ErrAppend, at.topic, at.partition)
	if sticky {
		l.failed[w] = err
	}
	return -1, err
}

func (l *Log) recordsOf(at place, e events.Envelope) ([]written, error) {
	if l.shared && e.Message != nil && at.topic != events.TopicLandRequests && proto.Size(e.Message) <= events.MaxRecordBytes {
		e.Part, e.Parts = 0, 0
		return []written{{entry: &journal.Entry{Topic: at.topic, Partition: at.partition, Envelope: e}}}, nil
	}
	records, err := journal.RecordsOf(at.topic, at.partition, e)
	if err != nil {
		return nil, err
	}
	list := make([]written, len(records))
	for i, r := range records {
		list[i].bytes = r
	}
	return list, nil
}

func (l *Log) partition(at place) (*partition, error) {
	if l.closed {
		return nil, journal.ErrClosed
	}
	p := l.logs[at]
	if p == nil {
		return nil, fmt.Errorf("no topic %s with a partition %d in this log", at.topic, at.partition)
	}
	return p, nil
}

func (p *partition) write(records []written) {
	for _, r := range records {
		offset := int64(len(p.records))
		if r.entry != nil {
			r.entry.Offset = offset
		} else {
			r.bytes.Offset = offset
		}
		p.records = append(p.records, r)
	}
	if len(records) > 0 {
		for _, c := range p.cursors {
			c.signal()
		}
	}
}

// DeliverLate writes the oldest append in flight on a partition, and says whether there was one.
func (l *Log) DeliverLate(topic string, partition int32) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.logs[place{topic, partition}]
	if p == nil || len(p.late) == 0 {
		return false
	}
	records := p.late[0]
	p.late = slices.Delete(p.late, 0, 1)
	p.write(records)
	return true
}

// Write appends records as they are, as a program that is not Landfall may; their offsets are set.
func (l *Log) Write(_ context.Context, records ...journal.Record) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, r := range records {
		p, err := l.partition(place{r.Topic, r.Partition})
		if err != nil {
			return err
		}
		p.write([]written{{bytes: r}})
	}
	return nil
}

// End implements journal.Log.
func (l *Log) End(ctx context.Context, topic string, partition int32) (int64, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	p, err := l.partition(place{topic, partition})
	if err != nil {
		return 0, err
	}
	return int64(len(p.records)), ctx.Err()
}

// Close ends the log and every cursor. What was written is gone with the process.
func (l *Log) Close() {
	l.mu.Lock()
	l.closed = true
	var open []*cursor
	for _, p := range l.logs {
		open = append(open, p.cursors...)
	}
	l.mu.Unlock()
	for _, c := range open {
		c.Close()
	}
}
