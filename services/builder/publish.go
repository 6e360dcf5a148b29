package builder

import (
	"context"
	"strconv"
	"time"

	"google.golang.org/protobuf/proto"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
)

// envelope returns a record of the builder's. Its id is derived from what it is about, so that readers know a repeat.
func (b *Builder) envelope(queue, change, trace string, message proto.Message) events.Envelope {
	var identity []string
	switch m := message.(type) {
	case *eventsv1.BuildPrepared:
		identity = []string{m.Build}
	case *eventsv1.StepLeased:
		identity = []string{m.Lease, strconv.FormatInt(m.UntilUs, 10)} // also of a group: what it holds for only shrinks
	case *eventsv1.StepFinished:
		identity = []string{m.Target, m.Hash, strconv.FormatUint(uint64(m.Attempt), 10)}
	case *eventsv1.EvidenceForgotten:
		identity = []string{b.Instance, strconv.FormatInt(time.Now().UnixNano(), 10)} // the same may be forgotten again
		for _, v := range m.Versions {
			identity = append(identity, v.Target, v.Hash)
		}
	}
	return events.Envelope{
		ID:     events.DeriveID(b.Log.ID(), append([]string{events.TypeOf(message), queue}, identity...)...),
		Source: events.ServiceBuilder, Instance: b.Instance, Queue: queue, Subject: change,
		Time: time.Now(), Term: -1, Trace: trace, Message: message,
	}
}

// append writes one record and returns its offset.
func (b *Builder) append(ctx context.Context, queue string, e events.Envelope) (int64, error) {
	offsets, err := b.Log.Append(ctx, events.TopicBuilds, events.PartitionOf(queue, b.Log.Partitions()), e)
	if err != nil {
		return -1, err
	}
	return offsets[0], nil
}

// publish writes one record, and tries again until it is in the log or the context ends. Readers drop repeats.
func (b *Builder) publish(ctx context.Context, queue, change, trace string, message proto.Message) error {
	_, err := b.publishAt(ctx, queue, change, trace, message)
	return err
}

// publishAt is publish, and returns the offset.
func (b *Builder) publishAt(ctx context.Context, queue, change, trace string, message proto.Message) (offset int64, err error) {
	e := b.envelope(queue, change, trace, message)
	for pause := 50 * time.Millisecond; ; pause = min(2*pause, 2*time.Second) {
		if offset, err = b.append(ctx, queue, e); err == nil {
			return offset, nil
		}
		if ctx.Err() != nil {
			return -1, err
		}
		b.Logger.Warn("a record could not be written and is tried again", "queue", queue, "type", events.TypeOf(message), "error", err)
		select {
		case <-ctx.Done():
			return -1, err
		case <-time.After(pause):
		}
	}
}
