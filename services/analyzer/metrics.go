package analyzer

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/metric"

	"landfall.build/platform/telemetry"
)

// metrics are what the analyzer measures.
type metrics struct{ took metric.Float64Histogram }

func newMetrics(m metric.Meter) metrics {
	return metrics{telemetry.Histogram(m, "landfall.analysis.duration", "s", "Time that the analysis of a change, or of a push, takes once it runs.", telemetry.Short)}
}

// analyzed takes an analysis that has run; of one that was cancelled nothing is measured.
func (m metrics) analyzed(ctx context.Context, queue string, began time.Time, err error) {
	outcome := "analyzed"
	switch {
	case ctx.Err() != nil:
		return
	case err != nil:
		outcome = "failed"
	}
	m.took.Record(context.Background(), time.Since(began).Seconds(), metric.WithAttributes(telemetry.Queue.String(queue), telemetry.Outcome.String(outcome)))
}
