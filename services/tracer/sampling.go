package tracer

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"strconv"

	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"landfall.build/services/tracer/spans"
)

// Wanted reports whether the environment, by OpenTelemetry's variables, names where traces are sent.
func Wanted() bool {
	return os.Getenv("OTEL_TRACES_EXPORTER") != "none" && cmp.Or(os.Getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"), os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT")) != ""
}

// Sampler returns what decides which changes have their traces sent, by OTEL_TRACES_SAMPLER and OTEL_TRACES_SAMPLER_ARG. It depends on
// the id of the trace and the upstream's flag alone, so every instance decides the same. By default all are sent but those whose upstream
// has not sampled its own.
func Sampler() (func(spans.Head) bool, error) {
	name := cmp.Or(os.Getenv("OTEL_TRACES_SAMPLER"), "parentbased_always_on")
	share := 1.0
	if text := os.Getenv("OTEL_TRACES_SAMPLER_ARG"); text != "" {
		var err error
		if share, err = strconv.ParseFloat(text, 64); err != nil || !(share >= 0 && share <= 1) {
			return nil, fmt.Errorf("OTEL_TRACES_SAMPLER_ARG is %q; it is a share from 0 to 1", text)
		}
	}
	sampler := map[string]sdk.Sampler{
		"always_on": sdk.AlwaysSample(), "always_off": sdk.NeverSample(), "traceidratio": sdk.TraceIDRatioBased(share),
		"parentbased_always_on": sdk.ParentBased(sdk.AlwaysSample()), "parentbased_always_off": sdk.ParentBased(sdk.NeverSample()),
		"parentbased_traceidratio": sdk.ParentBased(sdk.TraceIDRatioBased(share)),
	}[name]
	if sampler == nil {
		return nil, fmt.Errorf("OTEL_TRACES_SAMPLER is %q; it is one of always_on, always_off, traceidratio, or one of these behind parentbased_", name)
	}
	return func(h spans.Head) bool {
		p := sdk.SamplingParameters{ParentContext: context.Background(), TraceID: h.TraceID}
		if h.Parent.IsValid() {
			p.ParentContext = trace.ContextWithRemoteSpanContext(p.ParentContext, h.Parent)
		}
		return sampler.ShouldSample(p).Decision == sdk.RecordAndSample
	}, nil
}
