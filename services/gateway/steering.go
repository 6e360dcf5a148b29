package gateway

import (
	"context"
	"crypto/rand"

	"google.golang.org/protobuf/proto"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/services/gateway/api"
	"landfall.build/services/lineup"
)

// Land implements api.Backend.
func (g *Gateway) Land(ctx context.Context, r *eventsv1.LandRequest) (api.Answer, error) {
	q := g.queues[r.Queue]
	if q == nil {
		return api.Answer{}, api.ErrUnknownQueue
	}
	if err := g.Ready(); err != nil {
		return api.Answer{}, err
	}
	if r.RequestId == "" {
		r.RequestId = rand.Text()
	}
	answer, stop := q.await(r.RequestId)
	defer stop()
	envelope := g.envelope(r.Queue, r.Change, events.DeriveID(g.Log.ID(), "land", r.RequestId, rand.Text()), r)
	partition := events.PartitionOf(r.Queue, g.Log.Partitions())
	if _, err := g.Log.Append(ctx, events.TopicLandRequests, partition, envelope); err != nil {
		return api.Answer{}, g.unanswered(ctx, r.Queue, err)
	}
	select {
	case a := <-answer:
		return a, nil
	case <-ctx.Done():
		return api.Answer{}, api.ErrUnanswered
	}
}

// Steer implements api.Backend.
func (g *Gateway) Steer(ctx context.Context, queue, subject string, fact proto.Message) (lineup.Effect, error) {
	q := g.queues[queue]
	if q == nil {
		return lineup.Effect{}, api.ErrUnknownQueue
	}
	if err := g.Ready(); err != nil {
		return lineup.Effect{}, err
	}
	id := events.DeriveID(g.Log.ID(), "steer", queue, rand.Text())
	folded := make(chan lineup.Effect, 1)
	q.mu.Lock()
	q.effects[id] = folded
	q.mu.Unlock()
	defer func() {
		q.mu.Lock()
		delete(q.effects, id)
		q.mu.Unlock()
	}()
	partition := events.PartitionOf(queue, g.Log.Partitions())
	if _, err := g.Log.Append(ctx, events.TopicChanges, partition, g.envelope(queue, subject, id, fact)); err != nil {
		return lineup.Effect{}, g.unanswered(ctx, queue, err)
	}
	select {
	case effect := <-folded:
		return effect, nil
	case <-ctx.Done():
		return lineup.Effect{}, api.ErrUnanswered
	}
}

// unanswered is what a client hears of an append of which nobody knows whether it happened.
func (g *Gateway) unanswered(ctx context.Context, queue string, err error) error {
	if ctx.Err() == nil {
		g.Logger.Error("the log did not take a record", "queue", queue, "err", err)
	}
	return api.ErrUnanswered
}
