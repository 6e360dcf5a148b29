package outbox

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/journal/memory"
)

func TestWhatFailedIsListedAndSentAgain(t *testing.T) {
	log := memory.New(memory.Options{Partitions: 4})
	partition := events.PartitionOf("main", 4)
	put := func(topic, source, id string, term int64, m proto.Message) int64 {
		t.Helper()
		offsets, err := log.Append(t.Context(), topic, partition, events.Envelope{ID: id, Source: source, Queue: "main", Term: term, Message: m, JSON: true})
		if err != nil {
			t.Fatal(err)
		}
		return offsets[0]
	}
	for _, id := range []string{"main/2", "main/4", "main/6"} {
		put(events.TopicOutcomes, events.ServiceOutcomes, id, -1, &eventsv1.ChangeOutcome{Queue: "main", Subject: "a", State: "held", Sequence: 2})
	}
	const failed, givenUp, delivered = eventsv1.DeliveryState_DELIVERY_STATE_FAILED, eventsv1.DeliveryState_DELIVERY_STATE_GIVEN_UP, eventsv1.DeliveryState_DELIVERY_STATE_DELIVERED
	term := put(events.TopicDeliveries, events.ServiceWebhooks, "c", -1, &eventsv1.Claim{Service: events.ServiceWebhooks})
	stamp := int64(1000)
	say := func(term int64, id string, state eventsv1.DeliveryState) {
		stamp++
		put(events.TopicDeliveries, events.ServiceWebhooks, "", term, &eventsv1.WebhookDelivery{Endpoint: "bot", Id: id, Queue: "main", Subject: "a", State: state, Attempt: 1, Status: 500, Message: "it answers 500", NextUs: 5000, StampUs: stamp})
	}
	put(events.TopicDeliveries, events.ServiceWebhooks, "", term, &eventsv1.WebhookFollowed{Endpoint: "bot"})
	say(term, "main/2", failed)
	say(term, "main/4", givenUp)
	say(term, "main/6", failed)
	say(term, "main/6", delivered)
	say(term+100, "main/2", delivered) // by somebody who was replaced

	list, endpoints, err := read(t.Context(), log)
	if err != nil || !slices.Equal(endpoints, []string{"bot"}) {
		t.Fatal(endpoints, err)
	}
	var ids []string
	for _, d := range list {
		ids = append(ids, d.ID+" "+d.State)
	}
	if want := []string{"main/2 failed", "main/4 given_up"}; !slices.Equal(ids, want) {
		t.Errorf("it lists %v, want %v", ids, want)
	}
	var text bytes.Buffer
	if err := print(&text, list, false); err != nil || !strings.Contains(text.String(), "main/4  bot       a       1         1970-01-01T00:00:00Z  given up              it answers 500\n") || !strings.Contains(text.String(), "it answers 500") {
		t.Errorf("%v\n%s", err, text.String())
	}
	for _, c := range []struct{ id, named, problem string }{{"main/6", "", "no delivery"}, {"main/4", "nobody", "no endpoint"}} {
		if _, err := choose(list, endpoints, c.id, c.named); err == nil || !strings.Contains(err.Error(), c.problem) {
			t.Errorf("%v: %v", c, err)
		}
	}
	if err := send(t.Context(), log, "main/9", endpoints, time.Now()); err == nil {
		t.Error("what is not there is sent")
	}
	if err := send(t.Context(), log, "main/4", endpoints, time.Now()); err != nil {
		t.Fatal(err)
	}
	c, err := log.Follow(t.Context(), events.TopicDeliveries, partition, 7)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	e, ok, err := c.TryNext()
	if asked, is := e.Message.(*eventsv1.WebhookAsked); !ok || err != nil || !is || asked.Endpoint != "bot" || asked.Id != "main/4" || asked.Outcome.GetSubject() != "a" {
		t.Errorf("%v %v", e.Message, err)
	}
}
