package broker_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/journal/journaltest"
	"landfall.build/platform/journal/kafka"
	"landfall.build/tools/embedded/broker"
)

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

func start(t testing.TB, o broker.Options) *broker.Broker {
	t.Helper()
	o.Log = quiet()
	b, err := broker.Start(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	return b
}

func open(t testing.TB, b *broker.Broker) *kafka.Log {
	t.Helper()
	l, err := kafka.Open(context.Background(), kafka.Options{Brokers: []string{b.Addr()}, Client: b.Client, ClientID: "test", Log: quiet(), Partitions: 4})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	return l
}

func step(id string, output int) events.Envelope {
	return events.Envelope{ID: id, Source: events.ServiceBuilder, Instance: "b1", Queue: "main", Term: -1,
		Message: &eventsv1.StepFinished{Target: "//a", OutputTail: make([]byte, output)}}
}

func TestTheLogOnTheEmbeddedBrokerIsAJournal(t *testing.T) {
	journaltest.Run(t, open(t, start(t, broker.Options{Dir: t.TempDir()})))
}

func TestALogIsTheSameAfterARestart(t *testing.T) {
	dir := t.TempDir()
	ctx := context.Background()
	first := start(t, broker.Options{Dir: dir})
	l := open(t, first)
	for i := range 20 {
		if _, err := l.Append(ctx, events.TopicBuilds, 3, step(fmt.Sprint(i), i*100_000)); err != nil {
			t.Fatal(err)
		}
	}
	id := l.ID()
	end, err := l.End(ctx, events.TopicBuilds, 3)
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	first.Close()

	second := start(t, broker.Options{Dir: dir, Sync: true})
	if second.Addr() != first.Addr() {
		t.Errorf("the address was %s and is %s", first.Addr(), second.Addr())
	}
	l = open(t, second)
	if l.ID() != id {
		t.Errorf("the log's id was %s and is %s", id, l.ID())
	}
	if got, err := l.End(ctx, events.TopicBuilds, 3); err != nil || got != end {
		t.Errorf("the end was %d and is %d, %v", end, got, err)
	}
	c, err := l.Follow(ctx, events.TopicBuilds, 3, 0)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 20 {
		if e, err := c.Next(ctx); err != nil || e.ID != fmt.Sprint(i) {
			t.Fatalf("record %d: %s, %v", i, e.ID, err)
		}
	}
}

func TestADirectoryInUseIsRefusedByName(t *testing.T) {
	dir := t.TempDir()
	start(t, broker.Options{Dir: dir})
	_, err := broker.Start(context.Background(), broker.Options{Dir: dir, Log: quiet()})
	if !errors.Is(err, broker.ErrDirInUse) || !strings.Contains(err.Error(), fmt.Sprintf("(pid %d)", os.Getpid())) {
		t.Errorf("got %v", err)
	}
}

func TestADirectoryThatIsNotOurFormatIsRefused(t *testing.T) {
	for name, make := range map[string]func(dir string) error{
		"newer":   func(dir string) error { return os.WriteFile(filepath.Join(dir, "format"), []byte("2\n"), 0o644) },
		"garbled": func(dir string) error { return os.WriteFile(filepath.Join(dir, "format"), []byte("?"), 0o644) },
		"foreign": func(dir string) error { return os.Mkdir(filepath.Join(dir, "log"), 0o755) },
	} {
		dir := t.TempDir()
		if err := make(dir); err != nil {
			t.Fatal(err)
		}
		_, err := broker.Start(context.Background(), broker.Options{Dir: dir, Log: quiet()})
		if err == nil || !strings.Contains(err.Error(), dir) {
			t.Errorf("%s: got %v", name, err)
		}
		// A refusal leaves the directory free for whom it belongs to.
		if _, err := broker.Start(context.Background(), broker.Options{Dir: dir, Log: quiet()}); errors.Is(err, broker.ErrDirInUse) {
			t.Errorf("%s: still locked", name)
		}
	}
}

func TestAnAddressThatClientsCannotReachIsRefused(t *testing.T) {
	for _, address := range []string{"0.0.0.0:0", ":0", "[::]:0", "nonsense"} {
		if _, err := broker.Start(context.Background(), broker.Options{Dir: t.TempDir(), Listen: address, Log: quiet()}); err == nil {
			t.Errorf("%q was taken", address)
		}
	}
}
