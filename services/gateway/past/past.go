// Package past reads from the log what a full explanation wants of it: what was known of a change when each of its builds was
// scheduled and each decision about it taken. Nobody keeps that; the profiles tell it again, from the record on that first named
// the oldest change that was pending when this one came.
package past

import (
	"context"
	"errors"
	"fmt"
	"time"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/services/gateway/view"
	"landfall.build/services/journal"
)

// Bounds of one reading. A change that was held for weeks is explained by `landfall replay`, which shows how far it is.
const (
	maxRecords = 200_000
	maxTime    = 15 * time.Second
	// patience is how long a broker may take to give the next record.
	patience = 5 * time.Second
)

// Reader reads the past of queues.
type Reader struct {
	Log journal.Log
	// Ask calls its argument with a queue, which nobody changes meanwhile.
	Ask func(queue string, f func(*view.Queue))
	// Unbounded: it takes what it takes.
	Unbounded bool
}

// Tell reads what is wanted. What cannot be read within the bounds is left out, and the explanation says so; an error is one of the
// log.
func (r Reader) Tell(ctx context.Context, queue string, p *view.Past) error {
	if !r.Unbounded {
		limited, cancel := context.WithTimeout(ctx, maxTime)
		defer cancel()
		ctx = limited
	}
	partition := events.PartitionOf(queue, r.Log.Partitions())
	end, err := r.Log.End(ctx, events.TopicProfiles, partition)
	if err != nil {
		return fmt.Errorf("end of %s/%d: %w", events.TopicProfiles, partition, err)
	}
	// A record in parts has the offset of the last one.
	cursor, err := r.Log.Follow(ctx, events.TopicProfiles, partition, max(0, p.Offset-journal.MaxSpan))
	if err != nil {
		return fmt.Errorf("read %s/%d: %w", events.TopicProfiles, partition, err)
	}
	defer cursor.Close()
	terms := journal.NewTerms(events.TopicProfiles)
	terms.Restore(events.ServiceProfiler, p.Term)
	for next := p.Offset; next < end; {
		if next-p.Offset > maxRecords && !r.Unbounded {
			p.Omit(fmt.Sprintf("What was known then goes back further than %d records; %s", maxRecords, patient))
			return nil
		}
		e, err := take(ctx, cursor)
		switch {
		case errors.Is(err, errSilent):
			p.Omit("The log could not be read in time; " + patient)
			return nil
		case err != nil:
			return fmt.Errorf("read %s/%d: %w", events.TopicProfiles, partition, err)
		case e.Offset < p.Offset:
			continue // what the beginning rests on
		}
		next = e.Offset + 1
		m, is := e.Message.(*eventsv1.Profile)
		if !terms.Counts(e) || !is || e.Queue != queue {
			continue
		}
		if more := p.Take(m, func(f func(*view.Queue)) { r.Ask(queue, f) }); !more {
			return nil
		}
	}
	p.Missing()
	return nil
}

const patient = "`landfall replay --at OFFSET --change CHANGE --full` takes the time that it takes."

// errSilent: nothing came in time.
var errSilent = errors.New("silent")

func take(ctx context.Context, cursor journal.Cursor) (journal.Entry, error) {
	if e, ok, err := cursor.TryNext(); ok || err != nil {
		return e, err
	}
	waiting, cancel := context.WithTimeoutCause(ctx, patience, errSilent)
	defer cancel()
	e, err := cursor.Next(waiting)
	if err != nil && (errors.Is(context.Cause(waiting), errSilent) || errors.Is(ctx.Err(), context.DeadlineExceeded)) {
		return e, errSilent
	}
	return e, err
}
