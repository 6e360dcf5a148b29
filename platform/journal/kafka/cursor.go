package kafka

import (
	"context"
	"sync"

	"github.com/twmb/franz-go/pkg/kgo"

	"landfall.build/platform/journal"
)

// pace is how far ahead a cursor reads. Its queue is paused above so many bytes and resumed below a quarter of that. What one
// fetch brings of a partition, or one larger batch, may come on top.
type pace struct {
	queued                   int
	fetched, ofEachPartition int32
}

// fast is for readers that take all there is, sparing for those that take few records.
var (
	fast    = pace{queued: 16 << 20, fetched: 16 << 20, ofEachPartition: 4 << 20}
	sparing = pace{queued: 1 << 20, fetched: 2 << 20, ofEachPartition: 256 << 10}
)

// recordOverhead is what a queued record costs beside its key and value, about.
const recordOverhead = 512

// cursor is the queue of one partition between the reader and its owner.
type cursor struct {
	at    place
	start int64
	pace  pace
	parts *journal.Assembler
	ready chan struct{}
	// room is signalled when the queue is short again while it is filled from the archive.
	room chan struct{}

	mu sync.Mutex
	// reader fills the queue; nil while the archive does.
	reader *reader
	queue  []*kgo.Record
	// next is the offset behind the last record that was put into the queue.
	next   int64
	bytes  int
	paused bool
	closed bool
	err    error
	done   chan struct{}
}

func newCursor(at place, start, from int64, p pace) *cursor {
	return &cursor{at: at, start: start, next: start, pace: p, parts: journal.NewAssembler(from), ready: make(chan struct{}, 1),
		room: make(chan struct{}, 1), done: make(chan struct{})}
}

func sizeOf(r *kgo.Record) int { return len(r.Key) + len(r.Value) + recordOverhead }

func (c *cursor) signal() { raise(c.ready) }

func raise(flag chan struct{}) {
	select {
	case flag <- struct{}{}:
	default:
	}
}

// put is called by the reader.
func (c *cursor) put(records []*kgo.Record) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || c.err != nil {
		return
	}
	c.queue = append(c.queue, records...)
	c.next = records[len(records)-1].Offset + 1
	for _, r := range records {
		c.bytes += sizeOf(r)
	}
	if c.bytes > c.pace.queued && !c.paused {
		c.paused = true
		c.reader.pause(c.at)
	}
	c.signal()
}

// putArchived puts a record of the archive, and waits until the queue has room for the next.
func (c *cursor) putArchived(ctx context.Context, r *kgo.Record) error {
	c.mu.Lock()
	c.queue = append(c.queue, r)
	c.next = r.Offset + 1
	c.bytes += sizeOf(r)
	c.paused = c.bytes > c.pace.queued
	full := c.paused
	c.signal()
	c.mu.Unlock()
	if !full {
		return ctx.Err()
	}
	select {
	case <-c.room:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// leave takes a cursor from its reader, to be filled from the archive behind what is queued. It reports whether the cursor is open.
func (c *cursor) leave() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reader, c.start, c.paused = nil, c.next, false
	return !c.closed && c.err == nil
}

// fail ends the cursor with an error, after what is queued.
func (c *cursor) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil {
		c.err = err
	}
	c.signal()
}

// pop takes the next record that is queued.
func (c *cursor) pop() (*kgo.Record, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, journal.ErrClosed
	}
	if len(c.queue) == 0 {
		return nil, c.err
	}
	r := c.queue[0]
	c.queue[0] = nil
	c.queue = c.queue[1:]
	c.bytes -= sizeOf(r)
	if c.paused && c.bytes < c.pace.queued/4 {
		c.paused = false
		if c.reader == nil {
			raise(c.room)
		} else {
			c.reader.resume(c)
		}
	}
	if len(c.queue) > 0 || c.err != nil {
		c.signal()
	}
	return r, nil
}

// TryNext implements journal.Cursor.
func (c *cursor) TryNext() (e journal.Entry, ok bool, err error) {
	for {
		r, err := c.pop()
		if err != nil || r == nil {
			return journal.Entry{}, false, err
		}
		if e, ok := c.parts.Add(recordOf(r)); ok {
			return e, true, nil
		}
	}
}

// Next implements journal.Cursor.
func (c *cursor) Next(ctx context.Context) (journal.Entry, error) {
	for {
		r, err := c.wait(ctx)
		if err != nil {
			return journal.Entry{}, err
		}
		if e, ok := c.parts.Add(recordOf(r)); ok {
			return e, nil
		}
	}
}

// wait waits for the next record of a partition, as it is in the log.
func (c *cursor) wait(ctx context.Context) (*kgo.Record, error) {
	for {
		r, err := c.pop()
		if r != nil || err != nil {
			return r, err
		}
		select {
		case <-c.ready:
		case <-c.done:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// Ready implements journal.Cursor.
func (c *cursor) Ready() <-chan struct{} { return c.ready }

// Close implements journal.Cursor.
func (c *cursor) Close() {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return
	}
	c.closed = true
	c.queue, c.bytes = nil, 0
	close(c.done)
	c.signal()
	r := c.reader
	c.mu.Unlock()
	if r != nil {
		r.drop(c)
	}
}
