// Package profilelog reads landfall.profiles for full explanations: what was known of a change when each of its builds was
// scheduled and each decision about it taken. No service keeps that. The profiles hold it, from the record on that first named the
// oldest change that was pending when this one was admitted.
package profilelog

import (
	"context"
	"errors"
	"fmt"
	"time"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/journal"
	"landfall.build/services/gateway/view"
)

// Limits of one reading. A change that was held for weeks is explained by `landfall replay`, which shows its progress.
const (
	maxRecords = 200_000
	maxTime    = 15 * time.Second
	// patience is how long a broker may take to give the next record.
	patience = 5 * time.Second
)

// Reader reads the profiles of queues.
type Reader struct {
	Log journal.Log
	// Unbounded readings have no limits.
	Unbounded bool
}

// Answer works out the answer to an inquiry. What cannot be read within the limits is left out, and the answer says so. An error is
// the log's.
func (r Reader) Answer(ctx context.Context, queue string, i *view.Inquiry, ask view.Ask) error {
	i.ExplainNow(ask)
	if !i.WantsLog() {
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
	for at := i.Offset; at < end; {
		if at-i.Offset > maxRecords && !r.Unbounded {
			i.Omit(fmt.Sprintf("What was known then is more than %d records back; %s", maxRecords, useReplay))
			return nil
		}
		e, err := next(ctx, cursor)
		switch {
		case errors.Is(err, errSilent):
			i.Omit("The log could not be read in time; " + useReplay)
			return nil
		case err != nil:
			return fmt.Errorf("read %s/%d: %w", events.TopicProfiles, partition, err)
		case e.Offset < i.Offset:
			continue // only the parts of the record at i.Offset are wanted of these
		}
		at = e.Offset + 1
		m, is := e.Message.(*eventsv1.Profile)
		if !terms.Counts(e) || !is || e.Queue != queue {
			continue
		}
		if i.ExplainThen(m, ask); !i.WantsLog() {
			return nil
		}
	}
	i.EndOfLog()
	return nil
}

const useReplay = "`landfall replay --at OFFSET --change CHANGE --full` has no limit."

// errSilent is returned where the broker gave no record in time.
var errSilent = errors.New("silent")

// next returns the next record. It waits at most patience for it.
func next(ctx context.Context, cursor journal.Cursor) (journal.Entry, error) {
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
