package telemetry

import (
	"context"
	"fmt"
	"log/slog"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"landfall.build/events"
)

// traceparent is the name of the header that W3C Trace Context gives the place in a trace.
const traceparent = "traceparent"

// SpanContext returns the span that a traceparent names. It is not valid if the text is no traceparent.
func SpanContext(text string) trace.SpanContext {
	return trace.SpanContextFromContext(propagation.TraceContext{}.Extract(context.Background(), propagation.MapCarrier{traceparent: text}))
}

// Traceparent returns the traceparent that names a span, "" if the span is not valid.
func Traceparent(span trace.SpanContext) string {
	carrier := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(trace.ContextWithSpanContext(context.Background(), span), carrier)
	return carrier[traceparent]
}

// ChangeSpan returns the id of the root span of a change's revision. It is derived, so that everybody who reads the log finds the same.
func ChangeSpan(logID, queue, change string, revision uint64) trace.SpanID {
	id, err := trace.SpanIDFromHex(events.DeriveID(logID, "change span", queue, change, fmt.Sprint(revision))[:16])
	must(err)
	return id
}

// OwnTrace returns the root span of a revision whose request came without a trace, in a trace whose id is derived.
func OwnTrace(logID, queue, change string, revision uint64) trace.SpanContext {
	id, err := trace.TraceIDFromHex(events.DeriveID(logID, "trace", queue, change, fmt.Sprint(revision)))
	must(err)
	return trace.NewSpanContext(trace.SpanContextConfig{TraceID: id, SpanID: ChangeSpan(logID, queue, change, revision), TraceFlags: trace.FlagsSampled})
}

// TraceID is the id of the trace of a traceparent as an attribute, nothing if there is none.
func TraceID(traceparent string) slog.Attr {
	if span := SpanContext(traceparent); span.IsValid() {
		return slog.String("trace_id", span.TraceID().String())
	}
	return slog.Attr{}
}
