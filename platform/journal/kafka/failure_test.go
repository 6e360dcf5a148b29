package kafka_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/journal"
	"landfall.build/platform/journal/kafka"
)

var ctx = context.Background()

func claim(service string) events.Envelope {
	return events.Envelope{ID: "claim", Source: service, Queue: "main", Term: -1, Message: &eventsv1.Claim{Service: service}}
}

func intention(id string) events.Envelope {
	return events.Envelope{ID: id, Source: events.ServiceLander, Queue: "main", Term: 0, Message: &eventsv1.LandIntended{}}
}

func admission(id string) events.Envelope {
	return events.Envelope{ID: id, Source: events.ServiceGateway, Queue: "main", Term: -1, Message: &eventsv1.ChangeAdmitted{}}
}

// read returns the ids of a partition's entries up to its present end.
func read(t *testing.T, l *kafka.Log, topic string, partition int32) (ids []string) {
	t.Helper()
	end, err := l.End(ctx, topic, partition)
	if err != nil {
		t.Fatal(err)
	}
	c, err := l.Follow(ctx, topic, partition, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for at := int64(-1); at < end-1; {
		e, err := c.Next(ctx)
		if err != nil {
			t.Fatal(err)
		}
		at = e.Offset
		ids = append(ids, e.ID)
	}
	return ids
}

func TestNothingOvertakesAFailedAppendOfAClaimedWriter(t *testing.T) {
	c := cluster(t)
	l := open(t, c, nil)
	if _, err := l.Append(ctx, events.TopicChanges, 1, claim(events.ServiceLander), intention("a")); err != nil {
		t.Fatal(err)
	}
	// The broker refuses one request from here on; those behind it are on their way by then.
	c.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Topic: events.TopicChanges, Err: kerr.MessageTooLarge})
	const n = 200
	results := make(chan error, n)
	for i := range n {
		l.AppendAsync(ctx, events.TopicChanges, 1, intention(fmt.Sprint(i)), func(_ int64, err error) { results <- err })
	}
	for i := range n {
		if err := <-results; !errors.Is(err, journal.ErrAppend) {
			t.Fatalf("append %d behind a failed one: %v", i, err)
		}
	}
	if _, err := l.Append(ctx, events.TopicChanges, 1, intention("overtakes")); !errors.Is(err, journal.ErrAppend) {
		t.Errorf("an append overtook: %v", err)
	}
	if _, err := l.Append(ctx, events.TopicChanges, 1, admission("admitted")); err != nil {
		t.Errorf("a writer that needs no term is held up: %v", err)
	}
	if _, err := l.Append(ctx, events.TopicChanges, 2, intention("elsewhere")); err != nil {
		t.Errorf("another partition is held up: %v", err)
	}
	if _, err := l.Append(ctx, events.TopicChanges, 1, claim(events.ServiceLander), intention("b")); err != nil {
		t.Errorf("a new term does not begin: %v", err)
	}
	want := []string{"claim", "a", "admitted", "claim", "b"}
	if got := read(t, l, events.TopicChanges, 1); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestAnAppendFailsInTheEndWhenTheBrokerIsGone(t *testing.T) {
	c := cluster(t)
	l := open(t, c, func(o *kafka.Options) { o.DeliveryTimeout = time.Second })
	if _, err := l.Append(ctx, events.TopicBuilds, 0, admission("a")); err != nil {
		t.Fatal(err)
	}
	c.Close()
	if _, err := l.Append(ctx, events.TopicBuilds, 0, admission("b")); !errors.Is(err, journal.ErrAppend) {
		t.Errorf("got %v", err)
	}
}

func TestClosingFailsWhatIsNotAcknowledged(t *testing.T) {
	c := cluster(t)
	l := open(t, c, nil)
	if _, err := l.Append(ctx, events.TopicBuilds, 0, admission("a")); err != nil {
		t.Fatal(err)
	}
	cursor, err := l.Follow(ctx, events.TopicBuilds, 0, 1)
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
	results := make(chan error, 3)
	for range 3 {
		l.AppendAsync(ctx, events.TopicBuilds, 0, admission("b"), func(_ int64, err error) { results <- err })
	}
	l.Close()
	for range 3 {
		if err := <-results; !errors.Is(err, journal.ErrAppend) || !errors.Is(err, journal.ErrClosed) {
			t.Errorf("got %v", err)
		}
	}
	if _, err := l.Append(ctx, events.TopicBuilds, 0, admission("c")); !errors.Is(err, journal.ErrClosed) {
		t.Errorf("append after Close: %v", err)
	}
	if _, err := cursor.Next(ctx); !errors.Is(err, journal.ErrClosed) {
		t.Errorf("a cursor after Close: %v", err)
	}
	if _, err := l.Follow(ctx, events.TopicBuilds, 0, 0); !errors.Is(err, journal.ErrClosed) {
		t.Errorf("Follow after Close: %v", err)
	}
}

func TestPartitionsThatMoveBetweenBrokersLoseAndRepeatNothing(t *testing.T) {
	c := cluster(t, kfake.NumBrokers(3))
	l := open(t, c, nil)
	cursor, err := l.Follow(ctx, events.TopicBuilds, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	const n = 600
	acknowledged := make(chan error, n)
	go func() {
		for i := range n {
			if i%60 == 30 {
				if err := c.MoveTopicPartition(events.TopicBuilds, 0, int32(i/60)%3); err != nil {
					t.Error(err)
				}
			}
			l.AppendAsync(ctx, events.TopicBuilds, 0, admission(fmt.Sprint(i)), func(_ int64, err error) { acknowledged <- err })
		}
	}()
	for i := range n {
		if err := <-acknowledged; err != nil {
			t.Fatal(err)
		}
		if e, err := cursor.Next(ctx); err != nil || e.ID != fmt.Sprint(i) || e.Offset != int64(i) {
			t.Fatalf("record %d: %s at %d, %v", i, e.ID, e.Offset, err)
		}
	}
}
