package historian

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"landfall.build/platform/telemetry"
)

// metrics are what the historian measures.
type metrics struct {
	written metric.Float64Counter
	took    metric.Float64Histogram
}

func newMetrics(m metric.Meter, h *Historian) metrics {
	telemetry.Gauge(m, "landfall.historian.failing", "", "Partitions of topics that cannot be written now, and 1 more while ClickHouse cannot be opened; the log says why.",
		func(observe telemetry.Observe) { observe(float64(h.failures.count())) })
	return metrics{
		written: telemetry.Counter(m, "landfall.historian.written", "{record}", "Records written to ClickHouse, those that were written again after a failure too."),
		took:    telemetry.Histogram(m, "db.client.operation.duration", "s", "Time that ClickHouse takes to store a batch.", telemetry.Short),
	}
}

// stored takes a batch that was sent to ClickHouse.
func (m metrics) stored(records int, began time.Time, err error) {
	attributes := []attribute.KeyValue{attribute.String("db.system.name", "clickhouse"), attribute.String("db.operation.name", "INSERT")}
	if err != nil {
		attributes = append(attributes, attribute.String("error.type", "_OTHER"))
	} else {
		m.written.Add(context.Background(), float64(records))
	}
	m.took.Record(context.Background(), time.Since(began).Seconds(), metric.WithAttributes(attributes...))
}
