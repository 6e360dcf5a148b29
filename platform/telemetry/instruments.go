package telemetry

import (
	"context"
	"fmt"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"
)

// Key is the name of an attribute.
type Key = attribute.Key

// Attributes that several services use.
const (
	Queue     = attribute.Key("landfall.queue")
	Outcome   = attribute.Key("landfall.outcome")
	Topic     = attribute.Key("messaging.destination.name")
	Partition = attribute.Key("messaging.destination.partition.id")
)

// Bounds of histograms, in seconds: of what a computer does by itself, and of what people wait for.
var (
	Short = []float64{.00001, .0001, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30}
	Long  = []float64{1, 5, 15, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 14400, 28800, 86400}
)

// Observe reports a value.
type Observe func(value float64, attributes ...attribute.KeyValue)

// orNothing returns a meter that measures nothing in place of none.
func orNothing(m metric.Meter) metric.Meter {
	if m == nil {
		return noop.Meter{}
	}
	return m
}

func must(err error) {
	if err != nil {
		panic(fmt.Sprintf("an instrument or an id that is made wrongly: %v", err))
	}
}

func callback(collect func(Observe)) metric.Float64Callback {
	return func(_ context.Context, o metric.Float64Observer) error {
		collect(func(value float64, attributes ...attribute.KeyValue) {
			o.Observe(value, metric.WithAttributes(attributes...))
		})
		return nil
	}
}

// Gauge is what goes up and down; collect is called when it is read, by any goroutine.
func Gauge(m metric.Meter, name, unit, help string, collect func(Observe)) {
	_, err := orNothing(m).Float64ObservableGauge(name, metric.WithUnit(unit), metric.WithDescription(help), metric.WithFloat64Callback(callback(collect)))
	must(err)
}

// Total is what only goes up, and is counted elsewhere; collect is called when it is read, by any goroutine.
func Total(m metric.Meter, name, unit, help string, collect func(Observe)) {
	_, err := orNothing(m).Float64ObservableCounter(name, metric.WithUnit(unit), metric.WithDescription(help), metric.WithFloat64Callback(callback(collect)))
	must(err)
}

// Counter is what only goes up.
func Counter(m metric.Meter, name, unit, help string) metric.Float64Counter {
	c, err := orNothing(m).Float64Counter(name, metric.WithUnit(unit), metric.WithDescription(help))
	must(err)
	return c
}

// Histogram is a distribution.
func Histogram(m metric.Meter, name, unit, help string, bounds []float64) metric.Float64Histogram {
	h, err := orNothing(m).Float64Histogram(name, metric.WithUnit(unit), metric.WithDescription(help), metric.WithExplicitBucketBoundaries(bounds...))
	must(err)
	return h
}
