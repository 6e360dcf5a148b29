package kafka_test

import (
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"

	"landfall.build/events"
	"landfall.build/services/journal/kafka"
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
