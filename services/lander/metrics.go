package lander

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel/metric"

	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/telemetry"
)

// Metrics are what a process's landers measure. A nil one measures nothing.
type Metrics struct {
	refusals metric.Float64Counter
	pushes   metric.Float64Histogram

	mu       sync.Mutex
	troubles map[string]eventsv1.MainlineTrouble
	paused   map[string]bool
}

// NewMetrics returns the instruments of a process.
func NewMetrics(m metric.Meter) *Metrics {
	t := &Metrics{
		refusals: telemetry.Counter(m, "landfall.push.refusals", "{push}", "Pushes to the mainline that the remote refused, by what its words concern: the change (a hook), or the queue (no right to push, a protected branch)."),
		pushes:   telemetry.Histogram(m, "landfall.push.duration", "s", "Time that a push to the mainline takes.", telemetry.Short),
		troubles: map[string]eventsv1.MainlineTrouble{},
		paused:   map[string]bool{},
	}
	telemetry.Gauge(m, "landfall.mainline.unreachable", "", "1 while the lander cannot read the mainline, push to it, or make commits for it, from its first failed attempt on; absent while it can.",
		func(observe telemetry.Observe) {
			t.mu.Lock()
			defer t.mu.Unlock()
			for queue, trouble := range t.troubles {
				kind := strings.ToLower(strings.TrimPrefix(trouble.String(), "MAINLINE_TROUBLE_"))
				observe(1, telemetry.Queue.String(queue), troubleKey.String(kind))
			}
		})
	telemetry.Gauge(m, "landfall.landings.paused", "", "1 while landings are paused because the remote refuses every push; absent otherwise.",
		func(observe telemetry.Observe) {
			t.mu.Lock()
			defer t.mu.Unlock()
			for queue := range t.paused {
				observe(1, telemetry.Queue.String(queue))
			}
		})
	return t
}

// troubleKey is what is wrong with a mainline, concernKey what a refused push concerns.
const (
	troubleKey = telemetry.Key("landfall.mainline.trouble")
	concernKey = telemetry.Key("landfall.refusal.concern")
)

// countRefusal counts a push that the remote refused.
func (t *Metrics) countRefusal(queue string, concern eventsv1.RefusalConcern) {
	if t != nil {
		of := strings.ToLower(strings.TrimPrefix(concern.String(), "REFUSAL_CONCERN_"))
		t.refusals.Add(context.Background(), 1, metric.WithAttributes(telemetry.Queue.String(queue), concernKey.String(of)))
	}
}

// setPaused notes whether the remote refuses every push of a queue.
func (t *Metrics) setPaused(queue string, paused bool) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if paused {
		t.paused[queue] = true
	} else {
		delete(t.paused, queue)
	}
}

// pushed records how long a push took.
func (t *Metrics) pushed(queue string, began time.Time, err error) {
	if t == nil {
		return
	}
	outcome := "pushed"
	switch {
	case errors.Is(err, context.Canceled):
		return
	case err != nil:
		outcome = "failed"
	}
	t.pushes.Record(context.Background(), time.Since(began).Seconds(), metric.WithAttributes(telemetry.Queue.String(queue), telemetry.Outcome.String(outcome)))
}

// setTrouble notes what is wrong with the mainline of a queue, unspecified for nothing.
func (t *Metrics) setTrouble(queue string, kind eventsv1.MainlineTrouble) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if kind == eventsv1.MainlineTrouble_MAINLINE_TROUBLE_UNSPECIFIED {
		delete(t.troubles, queue)
		return
	}
	t.troubles[queue] = kind
}
