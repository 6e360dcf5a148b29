package memory

import (
	"context"
	"slices"

	"landfall.build/platform/journal"
)

// cursor reads the partition's own slice, so it holds no records.
type cursor struct {
	log   *Log
	of    *partition
	parts *journal.Assembler
	from  int64
	ready chan struct{}
	done  chan struct{}

	// Guarded by log.mu.
	next   int64
	closed bool
}

// Follow implements journal.Log.
func (l *Log) Follow(ctx context.Context, topic string, partition int32, from int64) (journal.Cursor, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	p, err := l.partition(place{topic, partition})
	if err != nil {
		return nil, err
	}
	c := &cursor{log: l, of: p, parts: journal.NewAssembler(from), from: from, ready: make(chan struct{}, 1), done: make(chan struct{}),
		next: journal.ReadFrom(from)}
	p.cursors = append(p.cursors, c)
	if c.next < int64(len(p.records)) {
		c.signal()
	}
	return c, nil
}

func (c *cursor) signal() {
	select {
	case c.ready <- struct{}{}:
	default:
	}
}

// Ready implements journal.Cursor.
func (c *cursor) Ready() <-chan struct{} { return c.ready }

// TryNext implements journal.Cursor.
func (c *cursor) TryNext() (e journal.Entry, ok bool, err error) {
	for {
		c.log.mu.Lock()
		if c.closed {
			c.log.mu.Unlock()
			return journal.Entry{}, false, journal.ErrClosed
		}
		if c.next >= int64(len(c.of.records)) {
			c.log.mu.Unlock()
			return journal.Entry{}, false, nil
		}
		r := c.of.records[c.next]
		c.next++
		if c.next < int64(len(c.of.records)) {
			c.signal()
		}
		c.log.mu.Unlock()
		if r.entry != nil {
			if r.entry.Offset >= c.from {
				return *r.entry, true, nil
			}
			continue
		}
		if e, ok := c.parts.Add(r.bytes); ok {
			return e, true, nil
		}
	}
}

// Next implements journal.Cursor.
func (c *cursor) Next(ctx context.Context) (journal.Entry, error) {
	for {
		e, ok, err := c.TryNext()
		if ok || err != nil {
			return e, err
		}
		select {
		case <-c.ready:
		case <-c.done:
		case <-ctx.Done():
			return journal.Entry{}, ctx.Err()
		}
	}
}

// Close implements journal.Cursor.
func (c *cursor) Close() {
	c.log.mu.Lock()
	defer c.log.mu.Unlock()
	if c.closed {
		return
	}
	c.closed = true
	close(c.done)
	c.signal()
	c.of.cursors = slices.DeleteFunc(c.of.cursors, func(o *cursor) bool { return o == c })
}
