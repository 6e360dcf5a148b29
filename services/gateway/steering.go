package gateway

import (
	"context"
	"crypto/rand"
	"fmt"
	"time"

	"go.opentelemetry.io/otel/trace"
	"google.golang.org/protobuf/proto"

	"landfall.build/engine/lineup"
	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/telemetry"
	"landfall.build/services/gateway/api"
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
	if a, known := q.earlier(r); known {
		return a, nil
	}
	g.access.sign(g.Log.ID(), r)
	waiting, stop := q.await(r.RequestId)
	defer stop()
	envelope := g.envelope(r.Queue, r.Change, events.DeriveID(g.Log.ID(), "land", r.RequestId, rand.Text()), telemetry.Traceparent(trace.SpanContextFromContext(ctx)), r)
	partition := events.PartitionOf(r.Queue, g.Log.Partitions())
	offset, err := g.appendAsked(ctx, events.TopicLandRequests, partition, envelope)
	if err != nil {
		select {
		case a := <-waiting.answer: // it was written, and only the confirmation was lost
			return a, nil
		default:
			return api.Answer{}, err
		}
	}
	q.delivered(r, waiting, g.delivery(r.RequestId, partition, offset))
	select {
	case a := <-waiting.answer:
		return a, nil
	case <-ctx.Done():
		return api.Answer{}, api.ErrUnanswered
	}
}

// Steer implements api.Backend.
func (g *Gateway) Steer(ctx context.Context, queue, subject string, fact proto.Message) (lineup.Consequence, error) {
	q := g.queues[queue]
	if q == nil {
		return lineup.Consequence{}, api.ErrUnknownQueue
	}
	if err := g.Ready(); err != nil {
		return lineup.Consequence{}, err
	}
	id := events.DeriveID(g.Log.ID(), "steer", queue, rand.Text())
	folded := make(chan lineup.Consequence, 1)
	traceparent := ""
	q.mu.Lock()
	q.consequences[id] = folded
	if c := q.state.View.Lineup().Pending(subject); c != nil {
		traceparent = c.Admission.Trace
	}
	q.mu.Unlock()
	defer func() {
		q.mu.Lock()
		delete(q.consequences, id)
		q.mu.Unlock()
	}()
	partition := events.PartitionOf(queue, g.Log.Partitions())
	if _, err := g.appendAsked(ctx, events.TopicChanges, partition, g.envelope(queue, subject, id, traceparent, fact)); err != nil {
		select {
		case consequence := <-folded:
			return consequence, nil
		default:
			return lineup.Consequence{}, err
		}
	}
	select {
	case consequence := <-folded:
		return consequence, nil
	case <-ctx.Done():
		return lineup.Consequence{}, api.ErrUnanswered
	}
}

// appendWait is how long the log has to confirm what somebody asked for.
const appendWait = 10 * time.Second

// appendAsked appends what somebody asked for. The append is finished even if the client waits no longer: else it would look
// like one that no broker took.
func (g *Gateway) appendAsked(ctx context.Context, topic string, partition int32, e events.Envelope) (offset int64, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), appendWait)
	defer cancel()
	offsets, err := g.Log.Append(ctx, topic, partition, e)
	if err != nil {
		g.Logger.Error("the log did not confirm a record", "topic", topic, "queue", e.Queue, "change", e.Subject, "error", err)
		return 0, fmt.Errorf("%w: %w", api.ErrUnconfirmed, err)
	}
	return offsets[0], nil
}
