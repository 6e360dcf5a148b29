package kafka_test

import (
	"bytes"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/journal"
	"landfall.build/platform/journal/kafka"
)

// refuses opens a log and expects an error that has all the words.
func refuses(t *testing.T, o kafka.Options, words ...string) {
	t.Helper()
	o.Log = quiet()
	l, err := kafka.Open(ctx, o)
	if err == nil {
		l.Close()
		t.Fatal("it opened")
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("the error does not say %q: %v", w, err)
		}
	}
}

func TestABrokerThatIsDownIsNamed(t *testing.T) {
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := free.Addr().String()
	free.Close()
	refuses(t, kafka.Options{Brokers: []string{addr}, Wait: 200 * time.Millisecond}, addr, "no Kafka broker answered")
}

// TestWaitingForABrokerSaysSoInALineAndNotWithEachTry.
func TestWaitingForABrokerSaysSoInALineAndNotWithEachTry(t *testing.T) {
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := free.Addr().String()
	free.Close()
	var said bytes.Buffer
	_, err = kafka.Open(ctx, kafka.Options{Brokers: []string{addr}, Wait: 3500 * time.Millisecond, Log: slog.New(slog.NewTextHandler(&said, nil))})
	if err == nil {
		t.Fatal("it opened")
	}
	if !strings.Contains(said.String(), "level=WARN") {
		t.Errorf("whoever sees warnings only waits in silence:\n%s", said.String())
	}
	if lines := strings.Count(said.String(), "\n"); lines != 1 || !strings.Contains(said.String(), "waiting for Kafka") {
		t.Errorf("%d lines:\n%s", lines, said.String())
	}
}

// TestABrokerThatIsNotReadyForOffsetsIsWaitedFor: a leader is being elected when a service starts.
func TestABrokerThatIsNotReadyForOffsetsIsWaitedFor(t *testing.T) {
	c := cluster(t)
	open(t, c, nil)
	until := time.Now().Add(4 * time.Second) // longer than a single question is asked again
	c.ControlKey(kmsg.ListOffsets.Int16(), func(r kmsg.Request) (kmsg.Response, error, bool) {
		if time.Now().After(until) {
			return nil, nil, false
		}
		c.KeepControl()
		response := r.ResponseKind().(*kmsg.ListOffsetsResponse)
		for _, asked := range r.(*kmsg.ListOffsetsRequest).Topics {
			topic := kmsg.NewListOffsetsResponseTopic()
			topic.Topic = asked.Topic
			for _, p := range asked.Partitions {
				partition := kmsg.NewListOffsetsResponseTopicPartition()
				partition.Partition, partition.ErrorCode = p.Partition, kerr.OffsetNotAvailable.Code
				topic.Partitions = append(topic.Partitions, partition)
			}
			response.Topics = append(response.Topics, topic)
		}
		return response, nil, true
	})
	open(t, c, nil)
	if time.Now().Before(until) {
		t.Error("it opened before the broker was ready")
	}
}

// TestARecordWithoutATimeOfItsOwnHasKafkas.
func TestARecordWithoutATimeOfItsOwnHasKafkas(t *testing.T) {
	l, began := open(t, cluster(t), nil), time.Now()
	if err := l.Write(ctx, journal.Record{Topic: events.TopicLandRequests, Value: []byte(`{"queue":"main"}`)}); err != nil {
		t.Fatal(err)
	}
	c, err := l.Follow(ctx, events.TopicLandRequests, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	e, err := c.Next(ctx)
	if err != nil || e.Time.Before(began.Add(-time.Second)) || e.Time.After(time.Now().Add(time.Second)) {
		t.Errorf("written at %s, read as of %s (%v)", began, e.Time, err)
	}
}

func TestABrokerThatComesLateIsWaitedFor(t *testing.T) {
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	opened := make(chan error)
	go func() {
		l, err := kafka.Open(ctx, kafka.Options{Brokers: []string{free.Addr().String()}, Log: quiet(), Partitions: 1})
		if err == nil {
			l.Close()
		}
		opened <- err
	}()
	// The port is open from the start, and nobody answers until now.
	cluster(t, kfake.ListenFn(func(string, string) (net.Listener, error) { return free, nil }))
	if err := <-opened; err != nil {
		t.Error(err)
	}
}

func TestTopicsMustFit(t *testing.T) {
	c := cluster(t)
	brokers := c.ListenAddrs()
	refuses(t, kafka.Options{Brokers: brokers}, events.TopicChanges, "do not exist")
	open(t, c, nil)
	refuses(t, kafka.Options{Brokers: brokers, Partitions: 5}, "landfall.", "has 4 partitions", "wanted 5")
	if l := open(t, c, func(o *kafka.Options) { o.Partitions = 0 }); l.Partitions() != 4 {
		t.Errorf("%d partitions", l.Partitions())
	}
}

// TestATopicThatALogInUseHasLostIsRefusedAndNotMadeAgain, whichever it is, and whoever opens the log: made again it
// is empty, and whoever reads it waits for ever.
func TestATopicThatALogInUseHasLostIsRefusedAndNotMadeAgain(t *testing.T) {
	for _, lost := range []string{events.TopicSpeculations, events.TopicChanges, events.TopicLandRequests} {
		c := cluster(t)
		l := open(t, c, nil)
		if _, err := l.Append(ctx, events.TopicBuilds, 1, events.Envelope{ID: "1", Source: events.ServiceBuilder, Queue: "q", Term: -1,
			Message: &eventsv1.StepFinished{}}); err != nil {
			t.Fatal(err)
		}
		l.Close()
		client, err := kgo.NewClient(kgo.SeedBrokers(c.ListenAddrs()...))
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		admin := kadm.NewClient(client)
		if _, err := admin.DeleteTopic(ctx, lost); err != nil {
			t.Fatal(err)
		}
		refuses(t, kafka.Options{Brokers: c.ListenAddrs(), Partitions: 4}, "missing", lost, "backup")
		refuses(t, kafka.Options{Brokers: c.ListenAddrs()}, "missing", lost, "backup")
		left, err := admin.ListTopics(ctx)
		if err != nil || left.Has(lost) {
			t.Errorf("%s was made again (%v)", lost, err)
		}
	}
}

// TestATopicThatIsMadeOfTheLogIsAddedToALogInUse: a log of an earlier version lacks it.
func TestATopicThatIsMadeOfTheLogIsAddedToALogInUse(t *testing.T) {
	c := cluster(t)
	l := open(t, c, nil)
	if _, err := l.Append(ctx, events.TopicBuilds, 1, events.Envelope{ID: "1", Source: events.ServiceBuilder, Queue: "q", Term: -1,
		Message: &eventsv1.StepFinished{}}); err != nil {
		t.Fatal(err)
	}
	l.Close()
	client, err := kgo.NewClient(kgo.SeedBrokers(c.ListenAddrs()...))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	for _, topic := range []string{events.TopicOutcomes, events.TopicDeliveries, events.TopicAccess, events.TopicHosts} {
		if _, err := kadm.NewClient(client).DeleteTopic(ctx, topic); err != nil {
			t.Fatal(err)
		}
	}
	if end, err := open(t, c, nil).End(ctx, events.TopicOutcomes, 3); err != nil || end != 0 {
		t.Errorf("the topic ends at %d: %v", end, err)
	}
}

// TestALogWhoseTopicsWereOnlyPartlyMadeIsMadeWhole: whoever made the first ones died, or an operator made one ahead of
// the others and clients write to it already.
func TestALogWhoseTopicsWereOnlyPartlyMadeIsMadeWhole(t *testing.T) {
	for _, there := range [][]string{{events.TopicChanges}, {events.TopicLandRequests}, {events.TopicModels, events.TopicChanges, events.TopicLandRequests}} {
		c, forever := cluster(t), "-1"
		for _, name := range there {
			if err := c.CreateTopic(name, 4, map[string]string{"retention.ms": forever, "retention.bytes": forever}); err != nil {
				t.Fatal(err)
			}
		}
		if slices.Contains(there, events.TopicLandRequests) {
			client, err := kgo.NewClient(kgo.SeedBrokers(c.ListenAddrs()...))
			if err != nil {
				t.Fatal(err)
			}
			defer client.Close()
			if err := client.ProduceSync(ctx, &kgo.Record{Topic: events.TopicLandRequests, Value: []byte(`{"queue":"main"}`)}).FirstErr(); err != nil {
				t.Fatal(err)
			}
		}
		if l := open(t, c, nil); l.Partitions() != 4 || l.ID() == "" {
			t.Errorf("%v: %d partitions, id %q", there, l.Partitions(), l.ID())
		}
	}
}

func TestTopicsThatLoseRecordsAreRefused(t *testing.T) {
	short, compact, forever := "86400000", "compact", "-1"
	for name, config := range map[string]map[string]string{
		"retention.ms":   {"retention.ms": short},
		"cleanup.policy": {"retention.ms": forever, "cleanup.policy": compact},
	} {
		c := cluster(t)
		if err := c.CreateTopic(events.TopicModels, 4, config); err != nil {
			t.Fatal(err)
		}
		refuses(t, kafka.Options{Brokers: c.ListenAddrs(), Partitions: 4}, events.TopicModels, name)
	}
}

func TestAllWhoOpenALogAtOnceAgreeOnItsID(t *testing.T) {
	c := cluster(t)
	ids := make([]string, 5)
	var all sync.WaitGroup
	for i := range ids {
		all.Go(func() { ids[i] = open(t, c, nil).ID() })
	}
	all.Wait()
	for _, id := range ids {
		if id == "" || id != ids[0] {
			t.Fatalf("ids %q", ids)
		}
	}
	if id := open(t, c, nil).ID(); id != ids[0] {
		t.Errorf("later the id is %q, not %q", id, ids[0])
	}
	if id := open(t, cluster(t), nil).ID(); id == ids[0] {
		t.Error("another log has the same id")
	}
}
