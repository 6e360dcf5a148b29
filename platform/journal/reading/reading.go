// Package reading reads a partition of a topic, as a rule from its beginning, to an end that is fixed before, for tools that need what
// a log holds now.
package reading

import (
	"context"
	"errors"
	"fmt"
	"time"

	"landfall.build/platform/journal"
)

// Options of a reading.
type Options struct {
	// From is the first offset that is read: 0, or that behind a record of an earlier reading.
	From int64
	// Sparing reads little ahead, so that the reading holds little, and is not counted as read (journal.FollowSparingly).
	Sparing bool
	// Patience is how long a broker may take to give the next record; 10 s if 0.
	Patience time.Duration
	// Read, if set, is called with the number of offsets that were passed, every few hundred, by the goroutine that reads.
	Read func(offsets int64)
}

// reportEvery is how many offsets are passed between two calls of Options.Read.
const reportEvery = 256

// Reading is one pass. It is for one goroutine.
type Reading struct {
	o      Options
	cursor journal.Cursor
	topic  string
	end    int64
	// at is the offset behind what was read.
	at       int64
	ahead    *journal.Entry
	reported int64
	torn     int64
}

// To opens a partition; what is at end or behind it is left out.
func To(ctx context.Context, log journal.Log, topic string, partition int32, end int64, o Options) (*Reading, error) {
	follow := log.Follow
	if o.Sparing {
		follow = func(ctx context.Context, topic string, partition int32, from int64) (journal.Cursor, error) {
			return journal.FollowSparingly(ctx, log, topic, partition, from)
		}
	}
	cursor, err := follow(ctx, topic, partition, o.From)
	if err != nil {
		return nil, fmt.Errorf("read %s/%d: %w", topic, partition, err)
	}
	if o.Patience <= 0 {
		o.Patience = 10 * time.Second
	}
	return &Reading{o: o, cursor: cursor, topic: fmt.Sprintf("%s/%d", topic, partition), end: end, at: o.From, reported: o.From}, nil
}

// Each calls a function for each record that a partition holds now, until it returns false.
func Each(ctx context.Context, log journal.Log, topic string, partition int32, do func(e *journal.Entry) (goOn bool)) error {
	end, err := log.End(ctx, topic, partition)
	if err != nil {
		return fmt.Errorf("end of %s/%d: %w", topic, partition, err)
	}
	r, err := To(ctx, log, topic, partition, end, Options{})
	if err != nil {
		return err
	}
	defer r.Close()
	for {
		e, err := r.Take(ctx)
		if err != nil || e == nil || !do(e) {
			return err
		}
	}
}

// Close ends the reading; what was not read counts as passed.
func (r *Reading) Close() {
	r.cursor.Close()
	r.report(r.end)
}

func (r *Reading) report(at int64) {
	if r.o.Read != nil {
		r.o.Read(at - r.reported)
	}
	r.reported = at
}

// Torn counts offsets at the end that hold no whole record: parts of one whose writer died.
func (r *Reading) Torn() int64 { return r.torn }

// Peek returns the next entry and leaves it there; nil at the end.
func (r *Reading) Peek(ctx context.Context) (*journal.Entry, error) {
	if r.ahead != nil || r.at >= r.end {
		return r.ahead, nil
	}
	e, ok, err := r.cursor.TryNext()
	if err == nil && !ok {
		e, ok, err = r.wait(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("read %s from offset %d on: %w", r.topic, r.at, err)
	}
	if !ok || e.Offset >= r.end {
		if ok {
			r.torn = r.end - r.at
		}
		r.at = r.end
		return nil, nil
	}
	r.at, r.ahead = e.Offset+1, &e
	if r.at-r.reported >= reportEvery {
		r.report(r.at)
	}
	return r.ahead, nil
}

// Take returns the next entry and goes on; nil at the end.
func (r *Reading) Take(ctx context.Context) (*journal.Entry, error) {
	e, err := r.Peek(ctx)
	r.ahead = nil
	return e, err
}

// wait waits for a broker's answer. The last offsets of a partition may be parts of a record that never became
// whole: no entry comes of them, and ok is false. Farther from the end, a silent broker is an error: a reading that
// ended early would look complete.
func (r *Reading) wait(ctx context.Context) (e journal.Entry, ok bool, err error) {
	waiting, cancel := context.WithTimeout(ctx, r.o.Patience)
	defer cancel()
	e, err = r.cursor.Next(waiting)
	switch {
	case err == nil:
		return e, true, nil
	case ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded):
		return e, false, err
	case r.end-r.at <= journal.MaxSpan:
		r.torn = r.end - r.at
		return e, false, nil
	}
	return e, false, fmt.Errorf("the broker returned nothing for %s, and %d offsets are missing", r.o.Patience, r.end-r.at)
}
