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
	// Unbounded: it takes what it takes.
	Unbounded bool
}

// Answer works out an answer, and reads what it wants. What cannot be read within the bounds is left out, and the answer says so; an
// error is one of the log.
func (r Reader) Answer(ctx context.Context, queue string, i *view.Inquiry, ask view.Ask) error {
	i.Now(ask)
	if !i.Wants() {
		return nil
	}
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
	cursor, err := r.Log.Follow(ctx, events.TopicProfiles, partition, max(0, i.Offset-journal.MaxSpan))
	if err != nil {
		return fmt.Errorf("read %s/%d: %w", events.TopicProfiles, partition, err)
	}
	defer cursor.Close()
	terms := journal.NewTerms(events.TopicProfiles)
	terms.Restore(events.ServiceProfiler, i.Term)
	for next := i.Offset; next < end; {
		if next-i.Offset > maxRecords && !r.Unbounded {
			i.Omit(fmt.Sprintf("What was known then goes back further than %d records; %s", maxRecords, patient))
			return nil
		}
		e, err := take(ctx, cursor)
		switch {
		case errors.Is(err, errSilent):
			i.Omit("The log could not be read in time; " + patient)
			return nil
		case err != nil:
			return fmt.Errorf("read %s/%d: %w", events.TopicProfiles, partition, err)
		case e.Offset < i.Offset:
			continue // what the beginning rests on
		}
		next = e.Offset + 1
		m, is := e.Message.(*eventsv1.Profile)
		if !terms.Counts(e) || !is || e.Queue != queue {
			continue
		}
		if i.Take(m, ask); !i.Wants() {
			return nil
		}
	}
	i.End()
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
