package gateway

import (
	"context"
	"fmt"

	"google.golang.org/protobuf/proto"

	"landfall.build/events"
	"landfall.build/platform/registry"
	"landfall.build/services/gateway/api"
)

// ReadModels implements api.ModelStore. Models are large and seldom asked for, so they are read for each request, of one at a time.
func (g *Gateway) ReadModels(ctx context.Context, queue string, f func(*registry.Registry) error) error {
	select {
	case g.readingModels <- struct{}{}:
		defer func() { <-g.readingModels }()
	case <-ctx.Done():
		return api.ErrUnanswered
	}
	models, err := registry.Read(ctx, g.Log, queue)
	if err != nil {
		return err
	}
	return f(models)
}

// startNoticingModels tells those who watch when something becomes of a model of a queue, from now on.
func (g *Gateway) startNoticingModels(ctx context.Context, start func(func(context.Context) error)) error {
	begun := map[int32]bool{}
	for name := range g.queues {
		partition := events.PartitionOf(name, g.Log.Partitions())
		if begun[partition] {
			continue
		}
		begun[partition] = true
		end, err := g.Log.End(ctx, events.TopicModels, partition)
		if err != nil {
			return fmt.Errorf("end of %s/%d: %w", events.TopicModels, partition, err)
		}
		start(func(ctx context.Context) error {
			cursor, err := g.Log.Follow(ctx, events.TopicModels, partition, end)
			if err != nil {
				return fmt.Errorf("follow %s/%d: %w", events.TopicModels, partition, err)
			}
			defer cursor.Close()
			for {
				e, err := cursor.Next(ctx)
				if err != nil {
					return fmt.Errorf("read %s/%d: %w", events.TopicModels, partition, err)
				}
				if e.Message != nil {
					g.lists.Changed(api.PartModels, e.Queue)
				}
			}
		})
	}
	return nil
}

// ChooseModel implements api.ModelStore. It is finished even if the client waits no longer.
func (g *Gateway) ChooseModel(ctx context.Context, queue string, fact proto.Message) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), appendWait)
	defer cancel()
	if err := registry.Publish(ctx, g.Log, events.ServiceGateway, g.Instance, queue, fact); err != nil {
		g.Logger.Error("the log did not confirm which model is in use", "queue", queue, "error", err)
		return fmt.Errorf("%w: %w", api.ErrUnconfirmed, err)
	}
	return nil
}
