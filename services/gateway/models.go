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
