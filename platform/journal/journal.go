// Package journal is the log as the services see it: append to one partition, follow one partition,
// know which records count. The Kafka implementation and the in-memory one that tests and the
// simulator use pass the same conformance suite.
package journal

import (
	"context"
	"errors"

	"landfall.build/events"
)

var (
	// ErrClosed is returned once the log, or the cursor, was closed.
	ErrClosed = errors.New("journal closed")
	// ErrAppend wraps the failure of an append whose outcome is unknown: the records may be in the log,
	// or come into it later. Whoever owns the partition gives it up and starts from the log.
	ErrAppend = errors.New("append failed; whether the records were written is not known")
)

// Entry is one record of a partition, decoded.
type Entry struct {
	Topic     string
	Partition int32
	// Offset is that of the record, or of the last part of a record in several parts.
	Offset int64
	events.Envelope
	// Err is set, and Message is nil, for a record that cannot be decoded (events.ErrUndecodable,
	// events.ErrUnknownType): readers step over it, one of them reports it.
	Err error
	// Key, Raw and Headers are those of a record of a topic that others write (land requests), or of one that cannot be
	// decoded; Raw is its value.
	Key, Raw []byte
	Headers  []events.Header
}

// HeaderType returns what a record calls itself, if it has kept its headers: one that cannot be decoded has.
func (e Entry) HeaderType() string {
	for _, h := range e.Headers {
		if h.Key == events.HeaderType {
			return string(h.Value)
		}
	}
	return ""
}

// Log is a set of topics. Implementations are safe for use by several goroutines.
type Log interface {
	// Append writes the envelopes, in this order, to one partition and returns the offset of each
	// once all are durable. After an error some may have been written (ErrAppend).
	Append(ctx context.Context, topic string, partition int32, e ...events.Envelope) ([]int64, error)
	// AppendAsync is Append for one envelope that does not wait until it is durable: done is called exactly
	// once, in the order of the calls for a partition. It waits only while too much is under way already; done
	// must not append.
	AppendAsync(ctx context.Context, topic string, partition int32, e events.Envelope, done func(offset int64, err error))
	// Follow reads a partition from an offset on until the cursor is closed.
	Follow(ctx context.Context, topic string, partition int32, from int64) (Cursor, error)
	// End returns the offset that the next record of a partition will get.
	End(ctx context.Context, topic string, partition int32) (int64, error)
	// Partitions returns the number of partitions of every topic.
	Partitions() int32
	// ID returns the log's own id, part of every derived id.
	ID() string
}

// Sparing is a log that can also be followed by somebody who needs few of the records: little is read ahead of what is taken.
type Sparing interface {
	FollowSparingly(ctx context.Context, topic string, partition int32, from int64) (Cursor, error)
}

// FollowSparingly follows a partition of a log sparingly if that is possible, else as usual. The records are the same.
func FollowSparingly(ctx context.Context, log Log, topic string, partition int32, from int64) (Cursor, error) {
	if s, can := log.(Sparing); can {
		return s.FollowSparingly(ctx, topic, partition, from)
	}
	return log.Follow(ctx, topic, partition, from)
}

// Cursor reads the records of one partition in order. It is for one goroutine.
type Cursor interface {
	// Next waits for the next record. It returns ErrClosed after Close, or the context's error.
	Next(ctx context.Context) (Entry, error)
	// TryNext returns at once; ok is false when no record has arrived.
	TryNext() (e Entry, ok bool, err error)
	// Ready is signalled when TryNext may have something; it may also be signalled for nothing.
	Ready() <-chan struct{}
	Close()
}
