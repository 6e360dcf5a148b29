package tracer

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"

	"landfall.build/services/tracer/spans"
)

const (
	// maxQueued bounds the spans that wait to be sent. Beyond it traces are lost.
	maxQueued = 50_000
	// maxUpload is how many spans are sent together; a trace is not divided.
	maxUpload = 2_000
	// patience is how long traces are sent again to a collector that is away or refuses, before they are lost.
	patience = time.Minute
	// shutdownPatience is how long close lets the sender send what is left.
	shutdownPatience = 3 * time.Second
	firstPause       = 200 * time.Millisecond
	lastPause        = 10 * time.Second
)

// sender sends traces one after the other. put never waits.
type sender struct {
	client  otlptrace.Client
	version string
	logger  *slog.Logger
	metrics metrics

	mu     sync.Mutex
	queue  []spans.Trace
	queued int
	closed bool
	came   chan struct{}
	// ending is closed when the sender has to end.
	ending chan struct{}
}

func newSender(o Options) *sender {
	return &sender{client: o.Client, version: o.Version, logger: o.Logger, metrics: newMetrics(o.Meter), came: make(chan struct{}, 1), ending: make(chan struct{})}
}

// put takes a trace to be sent.
func (s *sender) put(t spans.Trace) {
	s.mu.Lock()
	full := s.closed || s.queued+len(t.Spans) > maxQueued
	if !full {
		s.queue = append(s.queue, t)
		s.queued += len(t.Spans)
	}
	s.mu.Unlock()
	if full {
		s.lose(1, "too many wait to be sent")
		return
	}
	select {
	case s.came <- struct{}{}:
	default: // run looks at the queue anyway
	}
}

func (s *sender) lose(n int, why string) {
	s.metrics.ended(n, "lost")
	s.logger.Warn("traces are lost", "traces", n, "reason", why)
}

// close makes run send what is left and return.
func (s *sender) close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	close(s.ending)
}

// take returns traces to be sent together.
func (s *sender) take() (some []spans.Trace) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n, size := 0, 0
	for n < len(s.queue) && (n == 0 || size+len(s.queue[n].Spans) <= maxUpload) {
		size += len(s.queue[n].Spans)
		n++
	}
	some, s.queue = s.queue[:n:n], s.queue[n:]
	s.queued -= size
	return some
}

func (s *sender) run() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		<-s.ending
		select {
		case <-ctx.Done():
		case <-time.After(shutdownPatience):
			cancel()
		}
	}()
	defer func() {
		if err := s.client.Stop(ctx); err != nil {
			s.logger.Debug("the connection for traces did not end well", "error", err)
		}
	}()
	for {
		some := s.take()
		if len(some) > 0 {
			s.upload(ctx, some)
			continue
		}
		select {
		case <-s.came:
		case <-s.ending:
			if some := s.take(); len(some) > 0 { // it came meanwhile
				s.upload(ctx, some)
				continue
			}
			return
		}
	}
}

// upload sends traces, and tries again while the collector does not take them.
func (s *sender) upload(ctx context.Context, some []spans.Trace) {
	data := spans.OTLP(s.version, some...).ResourceSpans
	began := time.Now()
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		err := s.client.UploadTraces(ctx, data)
		if err == nil {
			s.metrics.ended(len(some), "sent")
			return
		}
		s.logger.Warn("traces cannot be sent now; the queue goes on without them", "error", err)
		if time.Since(began)+pause > patience || ctx.Err() != nil {
			s.lose(len(some), "the collector did not take them")
			return
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
		}
	}
}
