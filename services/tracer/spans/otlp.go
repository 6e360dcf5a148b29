package spans

import (
	"encoding/hex"
	"encoding/json"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	resourcepb "go.opentelemetry.io/proto/otlp/resource/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/encoding/protojson"
)

// scope names who makes the spans.
const scope = "landfall.build/services/tracer"

// OTLP returns traces as OpenTelemetry's protocol has them. Each service is a resource: service.name is landfall-SERVICE.
func OTLP(version string, traces ...Trace) *tracepb.TracesData {
	data := &tracepb.TracesData{}
	of := map[string]*tracepb.ScopeSpans{}
	for _, t := range traces {
		for _, s := range t.Spans {
			list := of[s.Service]
			if list == nil {
				list = &tracepb.ScopeSpans{Scope: &commonpb.InstrumentationScope{Name: scope, Version: version}}
				of[s.Service] = list
				data.ResourceSpans = append(data.ResourceSpans, &tracepb.ResourceSpans{
					Resource: &resourcepb.Resource{Attributes: attributes([]attribute.KeyValue{
						attribute.String("service.name", "landfall-"+s.Service), attribute.String("service.namespace", "landfall"), attribute.String("service.version", version),
					})},
					ScopeSpans: []*tracepb.ScopeSpans{list},
				})
			}
			list.Spans = append(list.Spans, span(t.TraceID, s))
		}
	}
	return data
}

func span(id trace.TraceID, s Span) *tracepb.Span {
	out := &tracepb.Span{
		TraceId: id[:], SpanId: s.ID[:], Name: s.Name, Kind: tracepb.Span_SpanKind(s.Kind), // the same numbers
		StartTimeUnixNano: nanos(s.Start), EndTimeUnixNano: nanos(s.End), Attributes: attributes(s.Attributes), Status: &tracepb.Status{Message: s.Message},
	}
	if s.Parent.IsValid() {
		out.ParentSpanId = s.Parent[:]
	}
	if s.Status() == codes.Error {
		out.Status.Code = tracepb.Status_STATUS_CODE_ERROR
	} else {
		out.Status.Message = "" // it belongs to errors
	}
	for _, e := range s.Events {
		out.Events = append(out.Events, &tracepb.Span_Event{Name: e.Name, TimeUnixNano: nanos(e.Time), Attributes: attributes([]attribute.KeyValue{text("landfall.why", e.Text)})})
	}
	for _, l := range s.Links {
		linked, of := l.Span.TraceID(), l.Span.SpanID()
		out.Links = append(out.Links, &tracepb.Span_Link{TraceId: linked[:], SpanId: of[:], Attributes: attributes([]attribute.KeyValue{text("vcs.change.id", l.Change)})})
	}
	return out
}

func nanos(t time.Time) uint64 { return uint64(max(0, t.UnixNano())) }

// attributes leaves out what is empty.
func attributes(list []attribute.KeyValue) (out []*commonpb.KeyValue) {
	for _, a := range list {
		v := &commonpb.AnyValue{}
		switch a.Value.Type() {
		case attribute.BOOL:
			v.Value = &commonpb.AnyValue_BoolValue{BoolValue: a.Value.AsBool()}
		case attribute.INT64:
			v.Value = &commonpb.AnyValue_IntValue{IntValue: a.Value.AsInt64()}
		case attribute.FLOAT64:
			v.Value = &commonpb.AnyValue_DoubleValue{DoubleValue: a.Value.AsFloat64()}
		case attribute.STRINGSLICE:
			all := &commonpb.ArrayValue{}
			for _, s := range a.Value.AsStringSlice() {
				all.Values = append(all.Values, &commonpb.AnyValue{Value: &commonpb.AnyValue_StringValue{StringValue: s}})
			}
			if len(all.Values) == 0 {
				continue
			}
			v.Value = &commonpb.AnyValue_ArrayValue{ArrayValue: all}
		default:
			if a.Value.AsString() == "" {
				continue
			}
			v.Value = &commonpb.AnyValue_StringValue{StringValue: a.Value.AsString()}
		}
		out = append(out, &commonpb.KeyValue{Key: string(a.Key), Value: v})
	}
	return out
}

// idFields are the fields that OTLP's JSON has in hexadecimal digits, and Protobuf's in base64.
var idFields = map[string]bool{"traceId": true, "spanId": true, "parentSpanId": true}

// JSON returns traces in OTLP's JSON, which is Protobuf's but for the ids and the enums.
func JSON(data *tracepb.TracesData) ([]byte, error) {
	body, err := protojson.MarshalOptions{UseEnumNumbers: true}.Marshal(data)
	if err != nil {
		return nil, err
	}
	var tree any
	if err := json.Unmarshal(body, &tree); err != nil {
		return nil, err
	}
	var walk func(node any) error
	walk = func(node any) error {
		switch n := node.(type) {
		case []any:
			for _, child := range n {
				if err := walk(child); err != nil {
					return err
				}
			}
		case map[string]any:
			for key, child := range n {
				if id, is := child.(string); is && idFields[key] {
					var raw []byte
					if err := json.Unmarshal([]byte(`"`+id+`"`), &raw); err != nil {
						return err
					}
					n[key] = hex.EncodeToString(raw)
				} else if err := walk(child); err != nil {
					return err
				}
			}
		}
		return nil
	}
	if err := walk(tree); err != nil {
		return nil, err
	}
	return json.MarshalIndent(tree, "", "  ")
}
