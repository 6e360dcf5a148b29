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
	// Progress, if set, is told what was done with each partition, as soon as it is.
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
// Whatever ends it in between, each record is in one of the two, and it can be called again.
func (l *Log) MoveToArchive(ctx context.Context, m Move) error {
	if l.options.Archive == nil {
		return ErrNoArchive
	}
	ends, err := l.options.Archive.Ends(ctx)
	if err != nil {
		return err
	}
	for _, t := range events.Topics() {
		old, err := l.Admin().ListOffsetsAfterMilli(ctx, m.Before.UnixMilli(), t.Name)
		if err == nil {
			err = old.Error()
		}
		if err != nil {
			return fmt.Errorf("look for what is older in %s: %w", t.Name, err)
		}
		for p := range l.partitions {
			at := place{t.Name, p}
			moved, err := l.movePartition(ctx, m, at, ends[archive.Place{Topic: t.Name, Partition: p}], old[t.Name][p].Offset)
			if err != nil {
				return fmt.Errorf("%s/%d: %w", t.Name, p, err)
			}
			if m.Progress != nil {
				m.Progress(moved)
			}
		}
	}
	return nil
}

// movePartition moves the records before an offset, and knows that the archive has those before another.
func (l *Log) movePartition(ctx context.Context, m Move, at place, archived, before int64) (Moved, error) {
	out := Moved{Topic: at.topic, Partition: at.partition}
	first, err := l.listOffset(ctx, at.topic, at.partition, -2)
	if err != nil {
		return out, err
	}
	end, err := l.End(ctx, at.topic, at.partition)
	if err != nil {
		return out, err
	}
	out.Begin = first
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
		w := l.options.Archive.Write(l.id, archive.Place{Topic: at.topic, Partition: at.partition}, archived, m.Segment)
		if err := l.copyRecords(ctx, w, m.Least, at, archived, before); err != nil {
			return out, err
		}
		out.Records, out.Bytes, archived = int64(w.Records), w.Bytes, w.Next()
	}
	// The last record of the archive stays with the brokers, to show that the two belong together.
	if until := min(before, archived-1); until > first && !m.Look {
		if err := l.compare(ctx, at, first, until); err != nil {
			return out, err
		}
		deleted, err := l.Admin().DeleteRecords(ctx, kadm.Offsets{at.topic: {at.partition: kadm.Offset{Topic: at.topic, Partition: at.partition, At: until}}})
		if err == nil {
			err = deleted.Error()
		}
		if err != nil {
			return out, fmt.Errorf("delete what the archive has: %w", withRights(l.client, err))
		}
		out.Begin, out.Deleted = until, until-first
	}
	return out, nil
}

// compare returns an error unless the archive has each of a range of records as the brokers have it.
func (l *Log) compare(ctx context.Context, at place, from, to int64) error {
	c := newCursor(at, from, from, sparing)
	if err := l.attach(c); err != nil {
		return err
	}
	defer c.Close()
	errDone := errors.New("all are the same")
	next := from
	_, err := l.options.Archive.Read(ctx, at.topic, at.partition, from, func(kept journal.Record) error {
		r, err := c.wait(ctx)
		switch {
		case err != nil:
			return err
		case !archive.Same(kept, recordOf(r)):
			return fmt.Errorf("record %d is another one in the archive %s: nothing was deleted; look who else writes there", r.Offset, l.options.Archive)
		case r.Offset >= to-1:
			next = to
			return errDone
		}
		next = r.Offset + 1
		return nil
	})
	if err == nil {
		err = fmt.Errorf("the archive %s ends at record %d, before %d", l.options.Archive, next, to)
	}
	if errors.Is(err, errDone) {
		return nil
	}
	return err
}

// copyRecords writes the records of a partition from an offset up to another into the archive.
func (l *Log) copyRecords(ctx context.Context, w *archive.Writer, least int64, at place, from, to int64) error {
	c := newCursor(at, from, from, sparing)
	if err := l.attach(c); err != nil {
		return err
	}
	defer c.Close()
	for {
		r, err := c.wait(ctx)
		if err != nil {
			return err
		}
		if r.Offset >= to {
			break
		}
		if err := w.Add(ctx, recordOf(r)); err != nil {
			return err
		}
		if r.Offset == to-1 {
			break
		}
	}
	if w.Pending() < least {
		return nil
	}
	return w.Flush(ctx, to)
}
