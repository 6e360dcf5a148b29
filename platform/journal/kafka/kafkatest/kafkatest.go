// Package kafkatest lends tests a Kafka that somebody else started: the same suites that run on brokers of the
// tests' own then run on it. tools/kafka/run starts one.
package kafkatest

import (
	"context"
	"errors"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"landfall.build/events"
)

// Variable is the environment variable that names the brokers, host:port with commas in between.
const Variable = "LANDFALL_TEST_KAFKA"

// Brokers returns the addresses in the Variable, nil if it is not set. Every topic of Landfall is removed from them first,
// so a log on them is a new one; packages that use them are therefore tested one after the other (-p 1).
// Brokers on other machines are refused, as their topics may be somebody's queue.
func Brokers(t testing.TB) []string {
	t.Helper()
	text := os.Getenv(Variable)
	if text == "" {
		return nil
	}
	brokers := ownBrokers(t, Variable, text)
	if err := empty(t.Context(), brokers); err != nil {
		t.Fatalf("the topics of the Kafka at %s (%s) cannot be removed: %v", text, Variable, err)
	}
	return brokers
}

// ownBrokers returns addresses that are this machine's.
func ownBrokers(t testing.TB, variable, text string) []string {
	t.Helper()
	brokers := strings.Split(text, ",")
	for _, b := range brokers {
		host, _, err := net.SplitHostPort(b)
		if err != nil {
			t.Fatalf("%s has %q: %v", variable, b, err)
		}
		if ip := net.ParseIP(host); ip == nil || !ip.IsLoopback() {
			t.Fatalf("%s names %s, but tests remove topics: only addresses such as 127.0.0.1:19092 are taken", variable, b)
		}
	}
	return brokers
}

// empty returns when no broker shows one of Landfall's topics any more.
func empty(ctx context.Context, brokers []string) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	client, err := kgo.NewClient(kgo.SeedBrokers(brokers...), kgo.MetadataMinAge(100*time.Millisecond))
	if err != nil {
		return err
	}
	defer client.Close()
	return emptyBy(ctx, client)
}

func emptyBy(ctx context.Context, client *kgo.Client) error {
	admin := kadm.NewClient(client)
	var names []string
	for _, topic := range events.Topics() {
		names = append(names, topic.Name)
	}
	for {
		there, err := admin.ListTopics(ctx, names...)
		if err != nil {
			return err
		}
		var left []string
		for name, topic := range there {
			if !errors.Is(topic.Err, kerr.UnknownTopicOrPartition) {
				left = append(left, name)
			}
		}
		if len(left) == 0 {
			return nil
		}
		// What each of them says is seen in the next list.
		if _, err := admin.DeleteTopics(ctx, left...); err != nil {
			return err
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
