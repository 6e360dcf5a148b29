package kafka

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"landfall.build/events"
	"landfall.build/platform/journal"
	"landfall.build/platform/journal/archive"
)

// Move says what MoveToArchive moves.
type Move struct {
	// Before is a time: records that were written before it are moved.
	Before time.Time
	// Least is how many bytes of a partition are worth a segment: fewer are left with the brokers.
	Least int64
	// Segment is how many bytes of records make a segment, about; 32 MiB if it is 0.
	Segment int
	// Kept is how many records of a partition stay with the brokers at least; 512 if it is 0.
	Kept int64
	// Look: nothing is moved.
	Look bool
	// Progress, if set, is called with what was done with each partition.
	Progress func(Moved)
}

// Moved is what was done with one partition.
type Moved struct {
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"`
	// Begin is the first record that the brokers have now.
	Begin int64 `json:"begin"`
	// Records are how many were put into the archive, and Bytes how large their segments are. With Look they are how many records there
	// are to be put there, and 0.
	Records int64 `json:"records"`
	Bytes   int64 `json:"bytes"`
	// Deleted is how many records were deleted from the brokers.
	Deleted int64 `json:"deleted"`
}

// keptByDefault is Move.Kept, so that a reader that goes on needs no archive for the parts of its first record.
const keptByDefault = journal.MaxSpan

// MoveToArchive puts the old records of every partition into the archive, compares them there, and then deletes them from the brokers.
// Whatever ends it in between, each record is in one of the two, and it can be called again. A partition that fails keeps no other
// from being moved.
func (l *Log) MoveToArchive(ctx context.Context, m Move) error {
	if l.options.Archive == nil {
		return ErrNoArchive
	}
	if err := l.checkOwner(ctx); err != nil {
		return err
	}
	var failed []error
	for _, t := range events.Topics() {
		old, err := l.Admin().ListOffsetsAfterMilli(ctx, m.Before.UnixMilli(), t.Name)
		if err == nil {
			err = old.Error()
		}
		if err != nil {
			return errors.Join(append(failed, fmt.Errorf("look for what is older in %s: %w", t.Name, err))...)
		}
		for p := range l.partitions {
			moved, err := l.movePartition(ctx, m, place{t.Name, p}, old[t.Name][p].Offset)
			if err != nil {
				failed = append(failed, fmt.Errorf("%s/%d: %w", t.Name, p, err))
			}
			if m.Progress != nil {
				m.Progress(moved)
			}
		}
	}
	return errors.Join(failed...)
}

// checkOwner returns ErrOtherLog if the archive has a segment of another log.
func (l *Log) checkOwner(ctx context.Context) error {
	ends, err := l.options.Archive.Ends(ctx)
	if err != nil {
		return err
	}
	for p, end := range ends {
		if end == 0 {
			continue
		}
		// A segment that is read says whose it is.
		_, err := l.options.Archive.Read(ctx, p.Topic, p.Partition, end-1, func(journal.Record) error { return errEnough })
		if errors.Is(err, archive.ErrOtherLog) {
			return err
		}
		return nil // what else is wrong with it is told where it matters
	}
	return nil
}

// errEnough ends a reading.
var errEnough = errors.New("that is enough")

// movePartition moves the records before an offset.
func (l *Log) movePartition(ctx context.Context, m Move, at place, before int64) (Moved, error) {
	out := Moved{Topic: at.topic, Partition: at.partition}
	first, err := l.listOffset(ctx, at.topic, at.partition, -2)
	if err != nil {
		return out, err
	}
	out.Begin = first
	end, err := l.End(ctx, at.topic, at.partition)
	if err != nil {
		return out, err
	}
	// Behind the look at the brokers: another run may be under way.
	archived, err := l.options.Archive.End(ctx, at.archived())
	if err != nil {
		return out, err
	}
	if archived < first {
		return out, cutAt(at.topic, at.partition, first)
	}
	// A broker without a record of a partition may forget where that ends.
	before = min(before, end-max(1, cmp.Or(m.Kept, keptByDefault)))
	if before > archived {
		if m.Look {
			out.Records = before - archived
			return out, nil
		}
		w := l.options.Archive.Write(l.id, at.archived(), archived, m.Segment)
		err := l.copyRecords(ctx, w, m.Least, at, archived, before)
		out.Records, out.Bytes, archived = w.Records, w.Bytes, w.Next()
		if err != nil {
			return out, err
		}
	}
	// The last record of the archive stays with the brokers, to show that the two belong together.
	until := min(before, archived-1)
	if until <= first || m.Look {
		return out, nil
	}
	if err := l.compare(ctx, at, first, until); err != nil {
		return out, fmt.Errorf("nothing is deleted: %w", err)
	}
	deleted, err := l.Admin().DeleteRecords(ctx, kadm.Offsets{at.topic: {at.partition: kadm.Offset{Topic: at.topic, Partition: at.partition, At: until}}})
	if err == nil {
		err = deleted.Error()
	}
	if err != nil {
		return out, fmt.Errorf("delete what the archive has: %w", withRights(l.client, err))
	}
	out.Begin, out.Deleted = until, until-first
	return out, nil
}

// compare returns an error unless the archive has each of a range of records as the brokers have it.
func (l *Log) compare(ctx context.Context, at place, from, to int64) error {
	c := newCursor(at, from, from, fast)
	if err := l.attach(c); err != nil {
		return err
	}
	defer c.Close()
	next := from
	_, err := l.options.Archive.Read(ctx, at.topic, at.partition, from, func(kept journal.Record) error {
		r, err := c.wait(ctx)
		switch {
		case err != nil:
			return err
		case !archive.Same(kept, recordOf(r)):
			return fmt.Errorf("%w, record %d of %s/%d in %s: look who else writes there", errDiffers, r.Offset, at.topic, at.partition, l.options.Archive)
		}
		if next = r.Offset + 1; next >= to {
			return errEnough
		}
		return nil
	})
	switch {
	case errors.Is(err, errEnough):
		return nil
	case err == nil:
		return fmt.Errorf("the archive %s ends at record %d, before %d", l.options.Archive, next, to)
	}
	return err
}

// copyRecords writes the records of a partition from an offset up to another into the archive.
func (l *Log) copyRecords(ctx context.Context, w *archive.Writer, least int64, at place, from, to int64) error {
	c := newCursor(at, from, from, fast)
	if err := l.attach(c); err != nil {
		return err
	}
	defer c.Close()
	for next := from; next < to; {
		r, err := c.wait(ctx)
		if err != nil {
			return err
		}
		if next = r.Offset + 1; next > to {
			break
		}
		if err := w.Add(ctx, recordOf(r)); err != nil {
			return err
		}
	}
	if w.Pending() < least {
		return nil
	}
	return w.Flush(ctx, to)
}
