package journal

import (
	"fmt"
	"time"

	"landfall.build/events"
)

// Bounds of a record in parts. They are part of what a log means: every reader must drop the same
// records, wherever it starts, so they never change.
const (
	// MaxParts bounds the parts of one record: 32 MiB of Protobuf.
	MaxParts = 64
	// MaxSpan bounds how far the last part of a record stands behind its first, in offsets. A record
	// that other writers' records spread further counts for nobody, so a reader that starts at an
	// offset finds every record that ends there or later by reading MaxSpan records before it.
	MaxSpan = 512
)

// Record is one Kafka record as it is in the log.
type Record struct {
	Topic     string
	Partition int32
	Offset    int64
	Key       []byte
	Value     []byte
	Headers   []events.Header
	// Time is Kafka's own: of the client that wrote it, or of the broker; zero where nobody has said.
	Time time.Time
}

// RecordsOf returns the records of an event, in order, without offsets.
func RecordsOf(topic string, partition int32, e events.Envelope) ([]Record, error) {
	if e.Message == nil {
		return nil, fmt.Errorf("append to %s: an event without a message", topic)
	}
	values, headers, err := events.Encode(e)
	if err != nil {
		return nil, err
	}
	if len(values) > MaxParts {
		return nil, fmt.Errorf("append to %s: a %s of %d parts; at most %d (%d MiB) can be read back",
			topic, events.TypeOf(e.Message), len(values), MaxParts, MaxParts*events.MaxRecordBytes>>20)
	}
	records := make([]Record, len(values))
	for i := range values {
		records[i] = Record{Topic: topic, Partition: partition, Key: []byte(e.Queue), Value: values[i], Headers: headers[i]}
	}
	return records, nil
}

// ReadFrom returns the offset at which reading has to begin so that every record that ends at or after
// from is found whole.
func ReadFrom(from int64) int64 {
	return max(0, from-MaxSpan)
}
