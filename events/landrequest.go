package events

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	eventsv1 "landfall.build/events/v1"
)

// contentStructured is the type of an event whose attributes are in the value.
const contentStructured = "application/cloudevents+json"

// DecodeLandRequest reads a client's land request. The content type tells Protobuf, a structured CloudEvent, or, by default, JSON
// of the same shape. Fields that this version does not know are ignored. A queue that is not in the value is taken from the
// key. The envelope has the attributes of the headers, or of the structured event; it has no term and no parts.
func DecodeLandRequest(key, value []byte, headers []Header) (Envelope, error) {
	attributes := slices.DeleteFunc(slices.Clone(headers), func(h Header) bool { return h.Key == headerTerm || h.Key == headerPart })
	e, _, _ := DecodeHeaders(key, attributes)
	if len(value) > MaxRequestBytes {
		return e, fmt.Errorf("%w: a land request of %d bytes; at most %d are taken", ErrUndecodable, len(value), MaxRequestBytes)
	}
	content := ""
	for _, h := range headers {
		if strings.EqualFold(h.Key, HeaderContentType) {
			content = mediaType(string(h.Value))
		}
	}
	var err error
	if content == contentStructured {
		if content, value, attributes, err = openStructured(value); err != nil {
			return e, fmt.Errorf("%w: structured event: %v", ErrUndecodable, err)
		}
		around := e.Trace
		if e, _, _ = DecodeHeaders(key, attributes); e.Trace == "" {
			e.Trace = around
		}
	}
	m, err := decodeRequest(content, value)
	if err != nil {
		return e, fmt.Errorf("%w: land request: %v", ErrUndecodable, err)
	}
	if m.Queue == "" {
		m.Queue = e.Queue
	}
	e.Queue, e.Message = m.Queue, m
	return e, nil
}

func mediaType(header string) string {
	name, _, _ := strings.Cut(strings.ToLower(header), ";")
	return strings.TrimSpace(name)
}

func decodeRequest(content string, value []byte) (*eventsv1.LandRequest, error) {
	if len(value) >= 5 && value[0] == 0 {
		// Neither JSON nor a field of Protobuf begins with a zero.
		return nil, fmt.Errorf("it begins with the framing of Confluent's schema registry (schema %d); publish without the registry's serializer: "+
			"JSON, or Protobuf with the header %s: %s", binary.BigEndian.Uint32(value[1:5]), HeaderContentType, contentProtobuf)
	}
	m := &eventsv1.LandRequest{}
	switch content {
	case contentProtobuf, "application/x-protobuf":
		return m, proto.Unmarshal(value, m)
	case contentJSON, "":
		err := protojson.UnmarshalOptions{DiscardUnknown: true}.Unmarshal(value, m)
		if err != nil && isProtobuf(value) {
			err = fmt.Errorf("it is Protobuf without its header; publish it with %s: %s", HeaderContentType, contentProtobuf)
		}
		return m, err
	default:
		return nil, fmt.Errorf("content-type %q is none of %s, %s, %s", content, contentJSON, contentProtobuf, contentStructured)
	}
}

// isProtobuf reports whether a value reads as a land request in Protobuf that names something.
func isProtobuf(value []byte) bool {
	m := &eventsv1.LandRequest{}
	return proto.Unmarshal(value, m) == nil && (len(m.Entries) > 0 || m.Queue != "" || m.Change != "")
}

// openStructured returns the data of a structured CloudEvent, and its attributes as headers.
func openStructured(value []byte) (content string, data []byte, attributes []Header, err error) {
	if !utf8.Valid(value) {
		return "", nil, nil, fmt.Errorf("it is not UTF-8")
	}
	fields := map[string]json.RawMessage{}
	if err := json.Unmarshal(value, &fields); err != nil {
		return "", nil, nil, err
	}
	text := func(name string) (v string) {
		if raw, has := fields[name]; has && err == nil {
			if e := json.Unmarshal(raw, &v); e != nil {
				err = fmt.Errorf("the attribute %s is no text", name)
			}
		}
		return v
	}
	if version := text("specversion"); err == nil && version != "1.0" {
		err = fmt.Errorf("its specversion is %q; 1.0 is read", version)
	}
	for _, name := range []string{"id", "type", "source", "subject", "time", headerTrace} {
		key := name
		if name != headerTrace {
			key = "ce_" + name
		}
		if v := text(name); v != "" {
			attributes = append(attributes, Header{key, []byte(v)})
		}
	}
	content, data = mediaType(text("datacontenttype")), fields["data"]
	if encoded, has := fields["data_base64"]; has && err == nil {
		if err = json.Unmarshal(encoded, &data); err != nil {
			err = fmt.Errorf("data_base64: %w", err)
		}
	}
	if err == nil && len(bytes.TrimSpace(data)) == 0 {
		err = fmt.Errorf("it has no data; the land request belongs there")
	}
	return content, data, attributes, err
}

// NamesOf returns the request id and the change that a land request in JSON names, even if the request cannot be decoded. What
// it does not name is "".
func NamesOf(value []byte) (request, change string) {
	fields := map[string]json.RawMessage{}
	text := func(names ...string) (v string) {
		for _, name := range names {
			if json.Unmarshal(fields[name], &v) == nil && v != "" {
				return v
			}
		}
		return ""
	}
	if json.Unmarshal(value, &fields) != nil {
		return "", ""
	}
	if data, has := fields["data"]; has {
		if inner := map[string]json.RawMessage{}; json.Unmarshal(data, &inner) == nil {
			fields = inner
		}
	}
	return text("request_id", "requestId"), text("change")
}
