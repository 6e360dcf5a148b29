package tracer

import (
	"strings"
	"testing"

	"go.opentelemetry.io/otel/trace"

	"landfall.build/platform/telemetry"
	"landfall.build/services/tracer/spans"
)

func TestWhichChangesAreSentIsDecidedByOpenTelemetrysVariables(t *testing.T) {
	sampledAbove := telemetry.SpanContext("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
	unsampledAbove := telemetry.SpanContext("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00")
	for _, c := range []struct {
		sampler, share                    string
		own, sampledAbove, unsampledAbove float64
	}{
		{"", "", 1, 1, 0},
		{"always_on", "", 1, 1, 1},
		{"always_off", "", 0, 0, 0},
		{"parentbased_always_off", "", 0, 1, 0},
		{"parentbased_traceidratio", "0.25", .25, 1, 0},
		{"traceidratio", "0.25", .25, .25, .25},
	} {
		t.Setenv("OTEL_TRACES_SAMPLER", c.sampler)
		t.Setenv("OTEL_TRACES_SAMPLER_ARG", c.share)
		sampled, err := Sampler()
		if err != nil {
			t.Fatal(err)
		}
		again, err := Sampler()
		if err != nil {
			t.Fatal(err)
		}
		const changes = 4000
		for _, of := range []struct {
			parent trace.SpanContext
			want   float64
		}{{trace.SpanContext{}, c.own}, {sampledAbove, c.sampledAbove}, {unsampledAbove, c.unsampledAbove}} {
			n := 0
			for i := range uint64(changes) {
				h := spans.Head{TraceID: telemetry.OwnTrace("log", "q", "c", i).TraceID(), Parent: of.parent}
				if sampled(h) {
					n++
				}
				if sampled(h) != again(h) {
					t.Fatalf("%+v: two instances do not agree on %v", c, h)
				}
			}
			if share := float64(n) / changes; share < of.want-.05 || share > of.want+.05 {
				t.Errorf("%+v: %g of the changes below %v are sent, want %g", c, share, of.parent.TraceFlags(), of.want)
			}
		}
	}
}

func TestASamplerThatIsNoneIsNamed(t *testing.T) {
	for _, c := range [][3]string{{"sometimes", "", "OTEL_TRACES_SAMPLER is"}, {"traceidratio", "2", "OTEL_TRACES_SAMPLER_ARG"}, {"traceidratio", "half", "OTEL_TRACES_SAMPLER_ARG"}, {"traceidratio", "NaN", "OTEL_TRACES_SAMPLER_ARG"}} {
		t.Setenv("OTEL_TRACES_SAMPLER", c[0])
		t.Setenv("OTEL_TRACES_SAMPLER_ARG", c[1])
		if _, err := Sampler(); err == nil || !strings.Contains(err.Error(), c[2]) {
			t.Errorf("%v: %v", c, err)
		}
	}
}

func TestTracesAreSentWhereTheEnvironmentNamesAnEndpoint(t *testing.T) {
	for _, c := range []struct {
		all, traces, exporter string
		want                  bool
	}{{"", "", "", false}, {"http://a", "", "", true}, {"", "http://a", "", true}, {"http://a", "", "none", false}, {"http://a", "", "otlp", true}} {
		t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", c.all)
		t.Setenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", c.traces)
		t.Setenv("OTEL_TRACES_EXPORTER", c.exporter)
		if Wanted() != c.want {
			t.Errorf("%+v", c)
		}
	}
}
