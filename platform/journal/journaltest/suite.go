// Package journaltest is what every implementation of journal.Log must do, as tests.
package journaltest

import (
	"context"
	"fmt"
	"testing"
	"time"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/journal"
)

// Log is a journal under test, with a way to write what Landfall's own writers would not.
type Log interface {
	journal.Log
	Write(ctx context.Context, records ...journal.Record) error
}

// claim is one property. It has a partition of its own topic to itself, but not an empty one: every
// offset is relative to the end at the start, so the suite also runs on a log that is in use.
type claim struct {
	name string
	test func(t *testing.T, p partition)
}

// Run tests a log. It needs at least one partition; with fewer partitions than claims they share them,
// one after another.
func Run(t *testing.T, log Log) {
	for i, c := range append(append(order, parts...), waiting...) {
		t.Run(c.name, func(t *testing.T) {
			p := partition{t: t, log: log, topic: events.TopicBuilds, number: int32(i) % log.Partitions()}
			p.base = p.end()
			c.test(t, p)
		})
	}
}

// partition is the place that a claim is tested in.
type partition struct {
	t      *testing.T
	log    Log
	topic  string
	number int32
	base   int64
}

// limit ends a test that hangs; nothing is concluded from how long something takes.
func (p partition) limit() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	p.t.Cleanup(cancel)
	return ctx
}

func (p partition) end() int64 {
	p.t.Helper()
	end, err := p.log.End(p.limit(), p.topic, p.number)
	if err != nil {
		p.t.Fatalf("End: %v", err)
	}
	return end
}

func (p partition) append(es ...events.Envelope) []int64 {
	p.t.Helper()
	offsets, err := p.log.Append(p.limit(), p.topic, p.number, es...)
	if err != nil {
		p.t.Fatalf("Append: %v", err)
	}
	if len(offsets) != len(es) {
		p.t.Fatalf("Append of %d gave %d offsets", len(es), len(offsets))
	}
	return offsets
}

func (p partition) write(records ...journal.Record) {
	p.t.Helper()
	for i := range records {
		records[i].Topic, records[i].Partition = p.topic, p.number
	}
	if err := p.log.Write(p.limit(), records...); err != nil {
		p.t.Fatalf("Write: %v", err)
	}
}

func (p partition) follow(from int64) journal.Cursor {
	p.t.Helper()
	c, err := p.log.Follow(p.limit(), p.topic, p.number, from)
	if err != nil {
		p.t.Fatalf("Follow from %d: %v", from, err)
	}
	p.t.Cleanup(c.Close)
	return c
}

func (p partition) next(c journal.Cursor) journal.Entry {
	p.t.Helper()
	e, err := c.Next(p.limit())
	if err != nil {
		p.t.Fatalf("Next: %v", err)
	}
	return e
}

// expect reads events with these ids at these offsets, and nothing in between.
func (p partition) expect(c journal.Cursor, offset int64, id string) journal.Entry {
	p.t.Helper()
	e := p.next(c)
	if e.Err != nil {
		p.t.Fatalf("record at %d: %v", e.Offset, e.Err)
	}
	if e.Offset != offset || e.ID != id {
		p.t.Fatalf("got %s at %d, want %s at %d", e.ID, e.Offset-p.base, id, offset-p.base)
	}
	if e.Topic != p.topic || e.Partition != p.number {
		p.t.Fatalf("a record of %s/%d came from %s/%d", e.Topic, e.Partition, p.topic, p.number)
	}
	return e
}

// event returns a finished step with some output.
func event(id string, output int) events.Envelope {
	tail := make([]byte, output)
	for i := range tail {
		tail[i] = byte(i*7 + len(id))
	}
	return events.Envelope{
		ID: id, Source: events.ServiceBuilder, Instance: "b1", Queue: "main", Subject: "change-" + id,
		Time: time.Unix(1_700_000_000, 123_456_789).UTC(), Term: -1, Trace: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
		Message: &eventsv1.StepFinished{Target: "//" + id, Hash: "h", Attempt: 1, Outcome: eventsv1.StepOutcome_STEP_OUTCOME_PASSED, OutputTail: tail},
	}
}

func numbered(i int) events.Envelope { return event(fmt.Sprintf("e%04d", i), 16) }
