package tracer

import (
	"context"

	"go.opentelemetry.io/otel/metric"

	"landfall.build/platform/telemetry"
)

// metrics are what the tracer measures.
type metrics struct{ traces metric.Float64Counter }

func newMetrics(m metric.Meter) metrics {
	return metrics{traces: telemetry.Counter(m, "landfall.tracer.traces", "{trace}", "Traces of changes, by what became of them: sent or lost.")}
}

// ended counts traces that were sent or lost.
func (m metrics) ended(n int, outcome string) {
	m.traces.Add(context.Background(), float64(n), metric.WithAttributes(telemetry.Outcome.String(outcome)))
}
