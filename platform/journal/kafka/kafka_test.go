package kafka_test

import (
	"context"
	"log/slog"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"

	"landfall.build/platform/journal/journaltest"
	"landfall.build/platform/journal/kafka"
	"landfall.build/platform/journal/kafka/kafkatest"
)

// cluster returns a broker of the test's own.
func cluster(t testing.TB, opts ...kfake.Opt) *kfake.Cluster {
	t.Helper()
	c, err := kfake.NewCluster(append([]kfake.Opt{kfake.NumBrokers(1)}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

func open(t testing.TB, c *kfake.Cluster, change func(*kafka.Options)) *kafka.Log {
	t.Helper()
	o := kafka.Options{Log: quiet(), Partitions: 4, Replication: 1}
	if c != nil {
		o.Brokers = c.ListenAddrs()
	}
	if change != nil {
		change(&o)
	}
	l, err := kafka.Open(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	return l
}

// TestKafkaIsAJournal runs on a real Kafka where one is named.
func TestKafkaIsAJournal(t *testing.T) {
	if brokers := kafkatest.Brokers(t); brokers != nil {
		journaltest.Run(t, open(t, nil, func(o *kafka.Options) { o.Brokers = brokers }))
		return
	}
	journaltest.Run(t, open(t, cluster(t), nil))
}

func TestKafkaOfThreeBrokersIsAJournal(t *testing.T) {
	journaltest.Run(t, open(t, cluster(t, kfake.NumBrokers(3)), nil))
}
