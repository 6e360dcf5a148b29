package kafka_test

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/journal/kafka"
)

// TestABrokerThatGoesAwayIsSaidOnceAndNotWithEachTry: each client tries many times a second.
func TestABrokerThatGoesAwayIsSaidOnceAndNotWithEachTry(t *testing.T) {
	c, err := kfake.NewCluster(kfake.NumBrokers(1))
	if err != nil {
		t.Fatal(err)
	}
	var said lines
	l := open(t, c, func(o *kafka.Options) {
		o.Log, o.DeliveryTimeout = slog.New(slog.NewTextHandler(&said, &slog.HandlerOptions{Level: slog.LevelWarn})), 2*time.Second
	})
	if _, err := l.Follow(ctx, events.TopicChanges, 0, 0); err != nil {
		t.Fatal(err)
	}
	c.Close()
	for range 2 {
		if _, err := l.Append(ctx, events.TopicBuilds, 0, events.Envelope{ID: "1", Source: events.ServiceBuilder, Queue: "q", Term: -1,
			Message: &eventsv1.StepFinished{}}); err == nil {
			t.Fatal("a broker that is gone has acknowledged")
		}
	}
	text := said.String()
	if n := strings.Count(text, "unable to open connection"); n != 1 {
		t.Errorf("%d lines:\n%s", n, text)
	}
}

// lines is a buffer that several goroutines write to.
type lines struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}
