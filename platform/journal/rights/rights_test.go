package rights_test

import (
	"crypto/rand"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"landfall.build/events"
	"landfall.build/platform/journal/kafka"
	"landfall.build/platform/journal/kafka/kafkatest"
	"landfall.build/platform/journal/rights"
)

func TestTheGuideHasTheTable(t *testing.T) {
	guide, err := os.ReadFile("../../../docs/guides/kafka.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(guide), rights.Markdown()) {
		t.Errorf("docs/guides/kafka.md has another table than:\n%s", rights.Markdown())
	}
}

// cluster returns a broker that asks for accounts and goes by ACLs, with those of the table, and a client's options for an account.
func cluster(t *testing.T) (addresses []string, as func(account string) []kgo.Opt) {
	t.Helper()
	k := kafkatest.NewSecured(t)
	admin := kadm.NewClient(k.AsAdmin())
	for _, account := range rights.Accounts() {
		k.SetPassword("landfall-"+account, rand.Text())
		for _, r := range rights.Of(account) {
			if _, err := admin.CreateACLs(t.Context(), r.ACL("User:landfall-"+account)); err != nil {
				t.Fatal(err)
			}
		}
	}
	return k.Brokers, func(account string) []kgo.Opt { return k.As("landfall-" + account) }
}

func open(t *testing.T, addresses []string, client []kgo.Opt, partitions int32) (*kafka.Log, error) {
	t.Helper()
	return kafka.Open(t.Context(), kafka.Options{
		Brokers: addresses, Log: slog.New(slog.DiscardHandler), Partitions: partitions, Replication: 1, Wait: 20 * time.Second, DeliveryTimeout: 2 * time.Second,
		Client: func() []kgo.Opt { return client },
	})
}

// TestEachAccountMayDoWhatTheTableSaysAndNothingElse opens the log under each account, and reads and writes every topic.
func TestEachAccountMayDoWhatTheTableSaysAndNothingElse(t *testing.T) {
	addresses, as := cluster(t)
	// Those that may not make the topics wait for the gateway.
	waits := make(chan error)
	go func() {
		l, err := open(t, addresses, as(events.ServiceProfiler), 1)
		if err == nil {
			l.Close()
		}
		waits <- err
	}()
	time.Sleep(500 * time.Millisecond)
	gateway, err := open(t, addresses, as(events.ServiceGateway), 1)
	if err != nil {
		t.Fatal(err)
	}
	gateway.Close()
	if err := <-waits; err != nil {
		t.Errorf("the profiler that began before the gateway: %v", err)
	}
	// First whoever may write all, so that there is something to read.
	for _, account := range append([]string{rights.Up}, rights.Accounts()...) {
		if account != rights.Clients {
			l, err := open(t, addresses, as(account), 1)
			if err != nil {
				t.Errorf("%s: %v", account, err)
				continue
			}
			l.Close()
		}
		client, err := kgo.NewClient(append(as(account), kgo.SeedBrokers(addresses...), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.DisableIdempotentWrite())...)
		if err != nil {
			t.Fatal(err)
		}
		for _, topic := range events.Topics() {
			err := client.ProduceSync(t.Context(), &kgo.Record{Topic: topic.Name, Value: []byte("x")}).FirstErr()
			if writes := rights.Writes(account, topic); (err == nil) != writes {
				t.Errorf("%s writes %s: %v, want %v", account, topic.Name, err, writes)
			}
		}
		client.Close()
		for _, topic := range events.Topics() {
			err := read(t, append(as(account), kgo.SeedBrokers(addresses...)), topic.Name)
			if reads := rights.Reads(account, topic); (err == nil) != reads {
				t.Errorf("%s reads %s: %v, want %v", account, topic.Name, err, reads)
			}
		}
	}
}

// read returns nil once a fetch of a topic is answered.
func read(t *testing.T, options []kgo.Opt, topic string) error {
	client, err := kgo.NewClient(append(options, kgo.ConsumeTopics(topic), kgo.FetchMaxWait(100*time.Millisecond))...)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	admin := kadm.NewClient(client)
	ends, err := admin.ListEndOffsets(t.Context(), topic)
	if err == nil {
		err = ends.Error()
	}
	if err != nil {
		return err
	}
	end, _ := ends.Lookup(topic, 0)
	if end.Offset == 0 {
		return fmt.Errorf("nobody wrote %s yet", topic)
	}
	fetches := client.PollFetches(t.Context())
	return fetches.Err()
}

func TestEveryServiceOfTheTableOfTopicsHasAnAccount(t *testing.T) {
	for _, topic := range events.Topics() {
		for _, name := range append(slices.Clone(topic.Readers), topic.Writers...) {
			if !slices.Contains(rights.Accounts(), name) {
				t.Errorf("%s of %s has no account", name, topic.Name)
			}
		}
	}
}
