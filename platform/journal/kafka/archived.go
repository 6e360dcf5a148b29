package kafka

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"landfall.build/events"
	"landfall.build/platform/journal"
	"landfall.build/platform/journal/archive"
)

var (
	// ErrCut is returned for a log whose oldest records are neither with the brokers nor in the archive.
	ErrCut     = errors.New("records are gone from the log")
	errDiffers = errors.New("a record differs in the archive")
	// ErrNoArchive is returned where records are to be moved, and there is no archive.
	ErrNoArchive = errors.New("there is no archive")
)

func cutAt(topic string, partition int32, first int64) error {
	return fmt.Errorf("%w: %s/%d begins at record %d; name the archive that has those before it (broker.archive), or restore the brokers from a backup",
		ErrCut, topic, partition, first)
}

// checkBeginning returns an error unless each partition is whole: the archive, if there is one, has all that was deleted.
func checkBeginning(ctx context.Context, admin *kadm.Client, old *archive.Archive) error {
	var names []string
	for _, t := range events.Topics() {
		names = append(names, t.Name)
	}
	first, err := admin.ListStartOffsets(ctx, names...)
	if err == nil {
		err = first.Error()
	}
	if err != nil {
		return fmt.Errorf("look where the topics begin: %w", err)
	}
	var ends map[archive.Place]int64
	for _, topic := range slices.Sorted(maps.Keys(first)) {
		for _, partition := range slices.Sorted(maps.Keys(first[topic])) {
			at := first[topic][partition].Offset
			if at <= 0 {
				continue
			}
			if old == nil {
				return cutAt(topic, partition, at)
			}
			if ends == nil {
				if ends, err = old.Ends(ctx); err != nil {
					return err
				}
			}
			if end := ends[archive.Place{Topic: topic, Partition: partition}]; end < at {
				return fmt.Errorf("%w: %s/%d begins at record %d, and the archive %s ends at %d; restore what is between them from a backup",
					ErrCut, topic, partition, at, old, end)
			}
		}
	}
	return nil
}

// checkArchive returns ErrOtherLog unless the archive's last record of landfall.changes/0 is the brokers' record at that offset. It is
// asked where the log's id comes from the archive.
func (l *Log) checkArchive(ctx context.Context) error {
	at := place{events.TopicChanges, 0}
	first, err := l.listOffset(ctx, at.topic, at.partition, -2)
	if err != nil || first == 0 {
		return err
	}
	if l.options.Archive == nil {
		return cutAt(at.topic, at.partition, first)
	}
	archived, err := l.options.Archive.End(ctx, at.archived())
	if err != nil {
		return err
	}
	end, err := l.End(ctx, at.topic, at.partition)
	if err != nil {
		return err
	}
	if archived > end {
		return fmt.Errorf("%w: %s has %d records of %s/%d, and the log %d", archive.ErrOtherLog, l.options.Archive, archived, at.topic, at.partition, end)
	}
	err = l.compare(ctx, at, archived-1, archived)
	if errors.Is(err, errDiffers) {
		return fmt.Errorf("%w: %w", archive.ErrOtherLog, err)
	}
	return err
}

// readArchive fills a cursor from the archive, and gives it to a reader where the archive ends.
func (l *Log) readArchive(c *cursor) {
	ctx, cancel := context.WithCancel(l.ctx)
	defer cancel()
	go func() {
		select {
		case <-c.done:
			cancel()
		case <-ctx.Done():
		}
	}()
	err := l.readArchived(ctx, c)
	switch {
	case l.ctx.Err() != nil:
		c.Close()
	case err != nil:
		c.fail(err)
	}
}

func (l *Log) readArchived(ctx context.Context, c *cursor) error {
	for {
		next, err := l.options.Archive.Read(ctx, c.at.topic, c.at.partition, c.start, func(r journal.Record) error {
			return c.putArchived(ctx, kafkaRecord(r))
		})
		if err != nil {
			return fmt.Errorf("read %s/%d: %w", c.at.topic, c.at.partition, err)
		}
		c.start = next
		// More may have been moved into the archive meanwhile.
		first, err := l.listOffset(ctx, c.at.topic, c.at.partition, -2)
		if err != nil {
			return err
		}
		if next >= first {
			return l.attach(c)
		}
	}
}

func (p place) archived() archive.Place { return archive.Place{Topic: p.topic, Partition: p.partition} }

func kafkaRecord(r journal.Record) *kgo.Record {
	headers := make([]kgo.RecordHeader, len(r.Headers))
	for i, h := range r.Headers {
		headers[i] = kgo.RecordHeader{Key: h.Key, Value: h.Value}
	}
	return &kgo.Record{Topic: r.Topic, Partition: r.Partition, Offset: r.Offset, Key: r.Key, Value: r.Value, Headers: headers, Timestamp: r.Time}
}
