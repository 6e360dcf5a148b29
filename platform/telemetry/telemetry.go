// Package telemetry measures a process with OpenTelemetry, and serves what was measured and whether the process can work.
//
// Every service has a meter of its own, which is an argument, as its logger is; the instruments of a service are in its metrics.go.
// Metrics are shown in Prometheus's text format, and pushed by OTLP if OTEL_EXPORTER_OTLP_ENDPOINT is set. Without either nothing
// is measured. docs/guides/metrics.md has each metric.
package telemetry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	exporter "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"
	sdk "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
)

// Options of the telemetry of a process.
type Options struct {
	// Instance is the process's name among those of its services.
	Instance, Version string
	Logger            *slog.Logger
	// Push sends metrics by OTLP to where OpenTelemetry's environment variables say.
	Push bool
}

// PushWanted reports whether the environment names an endpoint for metrics.
func PushWanted() bool {
	return os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT") != "" || os.Getenv("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT") != ""
}

// maxSeries bounds the series of one instrument; what is beyond them is counted in one, which has otel_metric_overflow.
const maxSeries = 2000

// Telemetry measures a process. A nil one measures nothing.
type Telemetry struct {
	options  Options
	registry *prometheus.Registry

	mu        sync.Mutex
	providers map[string]*sdk.MeterProvider
}

// New returns the telemetry of a process.
func New(o Options) *Telemetry {
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { o.Logger.Warn("metrics", "event", "metrics.failed", "error", err) }))
	return &Telemetry{options: o, registry: prometheus.NewRegistry(), providers: map[string]*sdk.MeterProvider{}}
}

// Meter returns the meter of a service, which is a resource of its own: service.name is landfall-SERVICE.
func (t *Telemetry) Meter(service string) metric.Meter {
	if t == nil {
		return noop.Meter{}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	p := t.providers[service]
	if p == nil {
		var err error
		if p, err = t.provider(service); err != nil {
			t.options.Logger.Error("a service is not measured", "event", "metrics.failed", "service", service, "error", err)
			return noop.Meter{}
		}
		t.providers[service] = p
	}
	return p.Meter("landfall.build/services/" + service)
}

// nameKey is the attribute of a resource that is a label of every series.
const nameKey = attribute.Key("service.name")

func (t *Telemetry) provider(service string) (*sdk.MeterProvider, error) {
	resource := resource.NewSchemaless(
		nameKey.String("landfall-"+service), attribute.String("service.namespace", "landfall"),
		attribute.String("service.instance.id", t.options.Instance), attribute.String("service.version", t.options.Version),
	)
	pull, err := exporter.New(exporter.WithRegisterer(t.registry), exporter.WithoutScopeInfo(),
		exporter.WithResourceAsConstantLabels(func(kv attribute.KeyValue) bool { return kv.Key == nameKey }))
	if err != nil {
		return nil, fmt.Errorf("metrics for Prometheus: %w", err)
	}
	options := []sdk.Option{sdk.WithResource(resource), sdk.WithReader(pull), sdk.WithCardinalityLimit(maxSeries)}
	if t.options.Push {
		push, err := otlpmetrichttp.New(context.Background())
		if err != nil {
			return nil, fmt.Errorf("metrics by OTLP: %w", err)
		}
		options = append(options, sdk.WithReader(sdk.NewPeriodicReader(push)))
	}
	return sdk.NewMeterProvider(options...), nil
}

// Write writes all metrics in Prometheus's text format.
func (t *Telemetry) Write(w io.Writer) error {
	families, err := t.registry.Gather()
	if err != nil && len(families) == 0 {
		return err
	}
	encoder := expfmt.NewEncoder(w, expfmt.NewFormat(expfmt.TypeTextPlain))
	for _, f := range families {
		if err := encoder.Encode(f); err != nil {
			return err
		}
	}
	return nil
}

// Shutdown pushes what is left, and ends the measuring.
func (t *Telemetry) Shutdown(ctx context.Context) error {
	if t == nil {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	var errs []error
	for _, p := range t.providers {
		errs = append(errs, p.Shutdown(ctx))
	}
	return errors.Join(errs...)
}
