package runner

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/metric"

	"landfall.build/platform/telemetry"
)

// Metrics are what the runner measures of a service. A nil one measures nothing.
type Metrics struct {
	fold, decide, latency metric.Float64Histogram
}

// NewMetrics returns the instruments of a service.
func NewMetrics(m metric.Meter) *Metrics {
	return &Metrics{
		fold:    telemetry.Histogram(m, "landfall.fold.duration", "s", "Time that a core takes to fold the records of one topic that have come.", telemetry.Short),
		decide:  telemetry.Histogram(m, "landfall.decide.duration", "s", "Time that a core takes to decide once.", telemetry.Short),
		latency: telemetry.Histogram(m, "landfall.decision.latency", "s", "Time from the newest record that a decision rests on to the decision.", telemetry.Short),
	}
}

// begin returns the time, if something is measured.
func (m *Metrics) begin() (now time.Time) {
	if m != nil {
		now = time.Now()
	}
	return now
}

func (m *Metrics) folded(began time.Time) {
	if m != nil {
		m.fold.Record(context.Background(), time.Since(began).Seconds())
	}
}

func (m *Metrics) decided(began time.Time) {
	if m != nil {
		m.decide.Record(context.Background(), time.Since(began).Seconds())
	}
}

// wrote takes the time of the newest record that a decision rests on.
func (m *Metrics) wrote(newest time.Time) {
	if m != nil && !newest.IsZero() {
		m.latency.Record(context.Background(), max(0, time.Since(newest).Seconds()))
	}
}
