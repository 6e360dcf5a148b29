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
	partition := events.PartitionOf(queue, log.Partitions())
	end, err := log.End(ctx, events.TopicModels, partition)
	if err != nil {
		return nil, fmt.Errorf("end of %s/%d: %w", events.TopicModels, partition, err)
	}
	r, err := reading.To(ctx, log, events.TopicModels, partition, end, reading.Options{})
	if err != nil {
		return nil, err
	}
	defer r.Close()
	models := New()
	for {
		e, err := r.Take(ctx)
		if err != nil || e == nil {
			return models, err
		}
		if e.Queue == queue && e.Message != nil {
			models.Apply(e.Message)
		}
	}
}
