package registry

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"google.golang.org/protobuf/proto"

	"landfall.build/events"
	"landfall.build/platform/journal"
	"landfall.build/platform/journal/reading"
)

// Publish writes a record of landfall.models for a queue.
func Publish(ctx context.Context, log journal.Log, source, instance, queue string, m proto.Message) error {
	now := time.Now()
	partition := events.PartitionOf(queue, log.Partitions())
	if n := proto.Size(m); n > events.MaxModelBytes {
		return fmt.Errorf("a model of %d bytes is not published: at most %d are taken", n, events.MaxModelBytes)
	}
	_, err := log.Append(ctx, events.TopicModels, partition, events.Envelope{
		ID:     events.DeriveID(log.ID(), events.TypeOf(m), queue, instance, strconv.FormatInt(now.UnixNano(), 10)),
		Source: source, Instance: instance, Queue: queue, Time: now, Term: -1, Message: m,
	})
	if err != nil {
		return fmt.Errorf("write to %s: %w", events.TopicModels, err)
	}
	return nil
}

// Read returns what landfall.models holds of a queue now.
func Read(ctx context.Context, log journal.Log, queue string) (*Registry, error) {
	models := New()
	err := reading.Each(ctx, log, events.TopicModels, events.PartitionOf(queue, log.Partitions()), func(e *journal.Entry) bool {
		if e.Queue == queue && e.Message != nil {
			models.Apply(e.Message)
		}
		return true
	})
	return models, err
}
