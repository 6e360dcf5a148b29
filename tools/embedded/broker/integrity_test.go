package broker_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/journal/kafka"
	"landfall.build/tools/embedded/broker"
)

// TestALogThatHasLostRecordsIsNotOpened, nor touched: what is finished would be pending again. What was only being
// written when the process died is cut off.
func TestALogThatHasLostRecordsIsNotOpened(t *testing.T) {
	dir, quiet := t.TempDir(), slog.New(slog.DiscardHandler)
	open := func() error {
		b, err := broker.Start(t.Context(), broker.Options{Dir: dir, Log: quiet})
		if err == nil {
			b.Close()
		}
		return err
	}
	b, err := broker.Start(t.Context(), broker.Options{Dir: dir, Log: quiet})
	if err != nil {
		t.Fatal(err)
	}
	log, err := kafka.Open(t.Context(), kafka.Options{Brokers: []string{b.Addr()}, Client: b.Client, Log: quiet, Partitions: 1})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 50 {
		if _, err := log.Append(t.Context(), events.TopicChanges, 0, events.Envelope{ID: fmt.Sprint("id", i), Source: events.ServiceGateway, Queue: "q", Term: -1,
			Message: &eventsv1.ChangeCancelled{Change: fmt.Sprint("c", i), Revision: 1}}); err != nil {
			t.Fatal(err)
		}
	}
	log.Close()
	b.Close()
	segments, err := filepath.Glob(filepath.Join(dir, "log", "partitions", events.TopicChanges+"-0", "*.dat"))
	if err != nil || len(segments) != 1 {
		t.Fatalf("%v, %v", segments, err)
	}
	whole, err := os.ReadFile(segments[0])
	if err != nil {
		t.Fatal(err)
	}
	put := func(raw []byte) {
		if err := os.WriteFile(segments[0], raw, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	flipped := slices.Clone(whole)
	flipped[len(flipped)/2] ^= 1
	for name, raw := range map[string][]byte{
		"a byte in the middle": flipped, "cut off": whole[:len(whole)-3], "half of it": whole[:len(whole)/2], "nothing left": nil,
	} {
		put(raw)
		if err := open(); !errors.Is(err, broker.ErrDamaged) {
			t.Errorf("%s: %v", name, err)
		}
		if left, _ := os.ReadFile(segments[0]); !bytes.Equal(left, raw) {
			t.Errorf("%s: %d bytes are left of %d", name, len(left), len(raw))
		}
	}
	put(append(slices.Clone(whole), whole[:40]...))
	if err := open(); err != nil {
		t.Errorf("with a record that was being written: %v", err)
	}
	if left, _ := os.ReadFile(segments[0]); !bytes.Equal(left, whole) {
		t.Errorf("%d bytes are left of %d", len(left), len(whole))
	}
}

// TestAPartitionThatIsGoneIsMissed, and so is the list of topics: taken for empty, either would be read as if nothing
// had ever been in it. A topic that a client deleted is not missed here.
func TestAPartitionThatIsGoneIsMissed(t *testing.T) {
	dir, quiet := t.TempDir(), slog.New(slog.DiscardHandler)
	start := func() (*broker.Broker, error) {
		return broker.Start(t.Context(), broker.Options{Dir: dir, Log: quiet})
	}
	b, err := start()
	if err != nil {
		t.Fatal(err)
	}
	log, err := kafka.Open(t.Context(), kafka.Options{Brokers: []string{b.Addr()}, Client: b.Client, Log: quiet, Partitions: 2})
	if err != nil {
		t.Fatal(err)
	}
	log.Close()
	b.Close()
	for _, gone := range []string{"partitions/" + events.TopicSpeculations + "-1", "partitions/" + events.TopicChanges + "-0", "topics.json"} {
		from, to := filepath.Join(dir, "log", gone), filepath.Join(dir, "kept")
		if err := os.Rename(from, to); err != nil {
			t.Fatal(err)
		}
		b, err := start()
		if err == nil {
			b.Close()
		}
		if !errors.Is(err, broker.ErrDamaged) || !strings.Contains(err.Error(), filepath.Base(gone)) {
			t.Fatalf("without %s: %v", gone, err)
		}
		if _, err := os.Stat(from); err == nil {
			t.Errorf("%s was made again", gone)
		}
		if err := os.Rename(to, from); err != nil {
			t.Fatal(err)
		}
	}
	if b, err = start(); err != nil {
		t.Fatal(err)
	}
	client, err := kgo.NewClient(append(b.Client(), kgo.SeedBrokers(b.Addr()))...)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if _, err := kadm.NewClient(client).DeleteTopic(t.Context(), events.TopicModels); err != nil {
		t.Fatal(err)
	}
	b.Close()
	if b, err = start(); err != nil {
		t.Fatal(err)
	}
	b.Close()
}
