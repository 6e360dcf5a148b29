package gateway

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	"landfall.build/engine/admission"
	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/access"
	"landfall.build/platform/configuration"
	"landfall.build/platform/journal"
	"landfall.build/platform/runner"
	"landfall.build/platform/telemetry"
	"landfall.build/services/gateway/state"
)

const (
	maxBatch = 512
	// maxWaiting bounds the requests of a queue that are not answered. A queue whose repository does not answer must not fill
	// the memory, so reading its partition waits.
	maxWaiting   = 20_000
	maxRedecided = 20
	appendPause  = 200 * time.Millisecond
)

const unknownQueueAdvice = "Name a queue of the configuration: landfall validate lists them. Once the queue is there, landfall dead-letters send asks again."

// takeRequests reads one partition of the land requests from its beginning: which requests are answered is known
// from landfall.changes alone, so no position is stored. Each request goes to the queue that it names, whatever its partition.
func (g *Gateway) takeRequests(ctx context.Context, partition int32) error {
	cursor, err := g.Log.Follow(ctx, events.TopicLandRequests, partition, 0)
	if err != nil {
		return fmt.Errorf("follow %s/%d: %w", events.TopicLandRequests, partition, err)
	}
	defer cursor.Close()
	for {
		e, err := cursor.Next(ctx)
		if err != nil {
			return fmt.Errorf("read %s/%d: %w", events.TopicLandRequests, partition, err)
		}
		land, is := e.Message.(*eventsv1.LandRequest)
		if !is {
			g.bury(ctx, runner.DeadLetter{Entry: e, Reason: fmt.Sprint(e.Err)})
			continue
		}
		q := g.queues[land.Queue]
		if q == nil {
			g.bury(ctx, runner.DeadLetter{Entry: e, Reason: fmt.Sprintf("%s: there is no queue %q", admission.UnknownQueue, land.Queue), Advice: unknownQueueAdvice})
			continue
		}
		own := land.RequestId
		unproven, err := g.attribute(ctx, e, land)
		if err != nil {
			return err
		}
		a := g.requestOf(e, land)
		a.own = own
		a.problem = cmp.Or(unproven, admission.Complete(land, q.limits()), g.refusalOf(land))
		select {
		case q.room <- struct{}{}:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		q.inbox.put(a)
	}
}

// refusalOf returns why a program on Kafka may not ask for what it does, nil if it may. The API has asked already what its callers may.
func (g *Gateway) refusalOf(land *eventsv1.LandRequest) *admission.Refusal {
	issuer := land.Actor.GetIssuer()
	if (issuer == access.IssuerLog || issuer == access.IssuerPublisher) && g.Config.Access.Mode == configuration.AccessRequired && !access.MayHurry(land.Actor, land.Benefit) {
		return forbidden("A benefit above 1 needs the role operator; a program on Kafka has the role lander. Ask by the gateway's API.")
	}
	return nil
}

func forbidden(format string, values ...any) *admission.Refusal {
	return &admission.Refusal{Code: admission.Forbidden, Message: fmt.Sprintf(format, values...)}
}

func (g *Gateway) requestOf(e journal.Entry, land *eventsv1.LandRequest) *asked {
	received := e.Time
	if received.IsZero() {
		received = time.Now()
	}
	id := land.RequestId
	if !admission.ValidRequestID(id) {
		id = events.DeriveID(g.Log.ID(), "land-request", fmt.Sprint(e.Partition), fmt.Sprint(e.Offset))
	}
	return &asked{Request: admission.Request{
		ID: id, Land: land, ReceivedUS: received.UnixMicro(), Place: &eventsv1.RequestPlace{Partition: e.Partition, Offset: e.Offset},
	}, delivery: g.delivery(id, e.Partition, e.Offset), publisher: publisherOf(e, land), read: time.Now(),
		trace: telemetry.Traceparent(telemetry.SpanContext(e.Trace))}
}

// delivery returns what identifies a record of landfall.land-requests among those under the same request id: one that is read
// again has its answer, another one is somebody who asks again. It is the id of the record that refuses the delivery for the
// moment, so that the log alone has which ones were refused.
func (g *Gateway) delivery(request string, partition int32, offset int64) string {
	return events.DeriveID(g.Log.ID(), "refusal", request, fmt.Sprint(partition), fmt.Sprint(offset))
}

// answerID returns the id of any other answer.
func (g *Gateway) answerID(request string, tries int) string {
	return events.DeriveID(g.Log.ID(), "answer", request, fmt.Sprint(tries))
}

// deliveryOf returns the delivery that a refusal answers, "" if it answers the request for good. Gateways of earlier
// versions refused everything for good, and a newer one must not decide such a request again.
func (g *Gateway) deliveryOf(r *eventsv1.RequestRefused, id string) string {
	for tries := range maxRedecided + 2 {
		if id == g.answerID(r.RequestId, tries) {
			return ""
		}
	}
	return id
}

// unanswered returns the requests that were not answered before, and tells those who wait for the others.
func (q *queue) unanswered(batch []*asked) []*asked {
	return slices.DeleteFunc(batch, func(a *asked) bool {
		if q.standing(a) != state.Answered {
			return false
		}
		q.tellAnswered(a)
		<-q.room
		return true
	})
}

func sleep(ctx context.Context, pause time.Duration) bool {
	select {
	case <-time.After(pause):
		return true
	case <-ctx.Done():
		return false
	}
}

// settle appends the answers and reads them back, in rounds: a request that depends on an earlier one of the batch is
// decided once that one's answer is folded, and one that another gateway's record was ahead of is decided again.
func (q *queue) settle(ctx context.Context, batch []*asked) error {
	q.settling.Lock()
	defer q.settling.Unlock()
	for range batch {
		defer func() { <-q.room }()
	}
	for len(batch) > 0 {
		now, later := splitRound(batch)
		var records []proto.Message
		var of []*asked
		admitted := 0
		for _, a := range now {
			var m proto.Message
			standing := q.standing(a)
			if a.again = standing == state.Repeated; a.again {
				m = q.again(a.Request)
			} else if standing == state.Answered {
				q.tellAnswered(a)
				continue
			} else {
				m = q.decideOne(a, admitted)
			}
			if _, refused := m.(*eventsv1.RequestRefused); !refused {
				admitted++
			}
			records, of = append(records, m), append(of, a)
		}
		if err := q.appendAnswers(ctx, of, records); err != nil {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			// They may have been written: requests that were answered so are found answered.
			q.gateway.Logger.Warn("answers to land requests could not be appended; trying again", "queue", q.settings.Name, "error", err)
			if !sleep(ctx, appendPause) {
				return context.Cause(ctx)
			}
		}
		batch = later
		for i := len(of) - 1; i >= 0; i-- {
			if a := of[i]; q.standing(a) != state.Answered {
				a.tries++
				batch = slices.Insert(batch, 0, a)
			}
		}
	}
	return nil
}

func (q *queue) decideOne(a *asked, admitted int) proto.Message {
	switch {
	case a.problem != nil:
		return admission.Refused(a.Request, a.problem)
	case a.tries > maxRedecided:
		return admission.Refused(a.Request, &admission.Refusal{Code: admission.TooLate,
			Message: "Others kept changing this change at the same time; look at it, then ask again."})
	}
	return q.decide(a.Request, a.pinned, admitted)
}

// splitRound returns the requests that do not depend on an earlier one of the batch, and those that do. Nothing depends on
// a request that is refused whatever else is in the queue.
func splitRound(batch []*asked) (now, later []*asked) {
	before := touched{}
	for _, a := range batch {
		switch depends := before.by(a); {
		case depends:
			later = append(later, a)
		default:
			now = append(now, a)
			if a.problem != nil {
				before["request "+a.ID]++
				continue
			}
		}
		before.add(a, 1)
	}
	return now, later
}

func (q *queue) appendAnswers(ctx context.Context, of []*asked, records []proto.Message) error {
	if len(records) == 0 {
		return nil
	}
	g := q.gateway
	partition := events.PartitionOf(q.settings.Name, g.Log.Partitions())
	envelopes := make([]events.Envelope, len(records))
	for i, m := range records {
		id := g.answerID(of[i].ID, of[i].tries)
		if refused, is := m.(*eventsv1.RequestRefused); is && (of[i].again || admission.Code(refused.Code).Passing()) {
			id = of[i].delivery
		}
		envelopes[i] = g.envelope(q.settings.Name, of[i].Land.Change, id, g.traceOf(m, of[i].trace), m)
	}
	offsets, err := g.Log.Append(ctx, events.TopicChanges, partition, envelopes...)
	if err != nil {
		return err
	}
	return g.readBack(ctx, partition, offsets)
}

// traceOf returns the trace of the answer to a request that came with a trace or without. An admission keeps it, and has one in any case.
func (g *Gateway) traceOf(answer proto.Message, asked string) string {
	var a *eventsv1.Admission
	switch m := answer.(type) {
	case *eventsv1.ChangeAdmitted:
		a = m.Admission
	case *eventsv1.ChangeRevised:
		a = m.Admission
	default:
		return asked
	}
	if a.Trace = asked; asked == "" {
		a.Trace = telemetry.Traceparent(telemetry.OwnTrace(g.Log.ID(), a.Queue, a.Change, a.Revision))
	}
	return a.Trace
}

func (g *Gateway) envelope(queue, subject, id, trace string, m proto.Message) events.Envelope {
	return events.Envelope{ID: id, Source: events.ServiceGateway, Instance: g.Instance, Queue: queue, Subject: subject, Time: time.Now(), Term: -1, Trace: trace, Message: m}
}
