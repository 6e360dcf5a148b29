package events

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
)

// Header names: CloudEvents attributes in Kafka's binary mode. ce_term and ce_part are extensions of
// ours: the term that the record was written under, and its place among the parts of a large record.
const (
	headerSpecVersion = "ce_specversion"
	headerID          = "ce_id"
	HeaderType        = "ce_type"
	headerSource      = "ce_source"
	headerTime        = "ce_time"
	headerSubject     = "ce_subject"
	headerTerm        = "ce_term"
	headerPart        = "ce_part"
	HeaderContentType = "content-type"
	headerTrace       = "traceparent"
	// extensionTrace is the CloudEvents extension of that name, by which a publisher may say the same.
	extensionTrace = "ce_traceparent"
	// HeaderPublisher and HeaderSignature are the CloudEvents extensions publisher and signature of a land request that its publisher
	// has signed.
	HeaderPublisher = "ce_publisher"
	HeaderSignature = "ce_signature"

	contentProtobuf = "application/protobuf"
	contentJSON     = "application/json"
	typePrefix      = "landfall.events.v1."
)

// MaxRecordBytes is the most that one Kafka record's value holds; what is larger is split into parts.
const MaxRecordBytes = 512 << 10

// MaxModelBytes bounds a model in the log, with its card: seldom more than 300 KiB. A larger one is used by nobody.
const MaxModelBytes = 8 << 20

// MaxRequestBytes bounds a land request.
const MaxRequestBytes = 256 << 10

var (
	// ErrUndecodable marks a record that no reader can make sense of; it belongs to the dead letters.
	ErrUndecodable = errors.New("undecodable record")
	// ErrUnknownType marks a well-formed record of a type that this version does not know. Readers
	// step over it: additive changes must not stop an older reader.
	ErrUnknownType = errors.New("unknown event type")
)

// Header is one Kafka header.
type Header struct {
	Key   string
	Value []byte
}

// Envelope is one event with everything about it that is not the fact itself.
type Envelope struct {
	// ID is derived (see DeriveID), so that a repeated write is recognised.
	ID string
	// Source is the service that wrote it, e.g. "selector".
	Source string
	// Instance tells apart the processes of a service; for people only.
	Instance string
	// Queue is the record's key.
	Queue string
	// Subject is the change that it is about, if it is about one.
	Subject string
	// Time is the writer's clock; nothing is decided by it.
	Time time.Time
	// Term is the offset of the claim that it was written under, -1 where the service needs none.
	Term int64
	// Part and Parts are 0 unless the record is one of several (1-based).
	Part, Parts int
	Trace       string
	Message     proto.Message
	// JSON has an outcome written as JSON; no other message has that form.
	JSON bool
}

// DeriveID makes an id from the log's own id and what identifies the event, so that the same event
// written twice has one id, and a topic made anew repeats none.
func DeriveID(logID string, parts ...string) string {
	h := sha256.New()
	writeField(h, logID)
	for _, p := range parts {
		writeField(h, p)
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// ShortID returns the first twelve characters of the id of a commit, a build or a version, which is how people are shown it.
func ShortID(id string) string { return id[:min(len(id), 12)] }

func writeField(h interface{ Write([]byte) (int, error) }, s string) {
	var n [8]byte
	binary.LittleEndian.PutUint64(n[:], uint64(len(s)))
	h.Write(n[:])
	h.Write([]byte(s))
}

// TypeOf is the event type of a message, as in ce_type.
func TypeOf(m proto.Message) string {
	return string(m.ProtoReflect().Descriptor().FullName())
}

// Encode gives the Kafka records of an event: one, or several parts of at most MaxRecordBytes.
func Encode(e Envelope) (values [][]byte, headers [][]Header, err error) {
	// Deterministic for readers that compare a rewritten log with the old one on one machine; ids
	// and hashes are never taken from these bytes.
	value, typeName, content, err := encodeMessage(e)
	if err != nil {
		return nil, nil, fmt.Errorf("encode %s: %w", TypeOf(e.Message), err)
	}
	parts := (len(value) + MaxRecordBytes - 1) / MaxRecordBytes
	if parts < 1 {
		parts = 1
	}
	for i := range parts {
		h := []Header{
			{headerSpecVersion, []byte("1.0")},
			{headerID, []byte(e.ID)},
			{HeaderType, []byte(typeName)},
			{headerSource, []byte("/landfall/" + e.Source + "/" + e.Instance)},
			{headerTime, []byte(e.Time.UTC().Format(time.RFC3339Nano))},
			{HeaderContentType, []byte(content)},
		}
		if e.Subject != "" {
			h = append(h, Header{headerSubject, []byte(e.Subject)})
		}
		if e.Term >= 0 {
			h = append(h, Header{headerTerm, strconv.AppendInt(nil, e.Term, 10)})
		}
		if parts > 1 {
			h = append(h, Header{headerPart, fmt.Appendf(nil, "%d/%d", i+1, parts)})
		}
		if e.Trace != "" {
			h = append(h, Header{headerTrace, []byte(e.Trace)})
		}
		values = append(values, value[i*MaxRecordBytes:min(len(value), (i+1)*MaxRecordBytes)])
		headers = append(headers, h)
	}
	return values, headers, nil
}

// marshal writes a message. Text from outside – a path, what git says – promises no UTF-8, and Protobuf insists on it: rather
// than be written by nobody for ever, such a message is written with what is none replaced. Names by which something is
// decided are checked where they come in.
func marshal(m proto.Message) ([]byte, error) {
	deterministic := proto.MarshalOptions{Deterministic: true}
	value, err := deterministic.Marshal(m)
	if err == nil {
		return value, nil
	}
	m = proto.Clone(m)
	makeText(m.ProtoReflect())
	return deterministic.Marshal(m)
}

// makeText makes UTF-8 of all text in a message.
func makeText(m protoreflect.Message) {
	text := func(v protoreflect.Value) protoreflect.Value {
		return protoreflect.ValueOfString(strings.ToValidUTF8(v.String(), "�"))
	}
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		isText, isMessage := f.Kind() == protoreflect.StringKind, f.Message() != nil
		switch {
		case f.IsMap():
			values, isText, isMessage := v.Map(), f.MapValue().Kind() == protoreflect.StringKind, f.MapValue().Message() != nil
			values.Range(func(k protoreflect.MapKey, of protoreflect.Value) bool {
				if isMessage {
					makeText(of.Message())
				} else if isText {
					of = text(of)
				}
				if name, is := k.Interface().(string); is && !utf8.ValidString(name) {
					values.Clear(k)
					k = text(k.Value()).MapKey()
				}
				values.Set(k, of)
				return true
			})
		case f.IsList():
			for i, list := 0, v.List(); i < list.Len(); i++ {
				if isMessage {
					makeText(list.Get(i).Message())
				} else if isText {
					list.Set(i, text(list.Get(i)))
				}
			}
		case isMessage:
			makeText(v.Message())
		case isText:
			m.Set(f, text(v))
		}
		return true
	})
}

// DecodeHeaders reads everything but the message. A part's message is decoded once all are there.
func DecodeHeaders(key []byte, headers []Header) (e Envelope, typeName string, err error) {
	// Whatever a foreign writer put there, it becomes text that Protobuf and terminals can carry.
	e = Envelope{Queue: strings.ToValidUTF8(string(key), "�"), Term: -1}
	for _, h := range headers {
		v := strings.ToValidUTF8(string(h.Value), "�")
		switch h.Key {
		case headerID:
			e.ID = v
		case HeaderType:
			typeName = v
		case headerSource:
			e.Source, e.Instance, _ = strings.Cut(strings.TrimPrefix(v, "/landfall/"), "/")
		case headerSubject:
			e.Subject = v
		case headerTrace:
			e.Trace = v
		case extensionTrace:
			if e.Trace == "" {
				e.Trace = v
			}
		case headerTime:
			if t, terr := time.Parse(time.RFC3339Nano, v); terr == nil {
				e.Time = t
			}
		case headerTerm:
			if e.Term, err = strconv.ParseInt(v, 10, 64); err != nil || e.Term < 0 {
				return e, typeName, fmt.Errorf("%w: header %s is %q, not an offset", ErrUndecodable, headerTerm, v)
			}
		case headerPart:
			if n, serr := fmt.Sscanf(v, "%d/%d", &e.Part, &e.Parts); serr != nil || n != 2 || e.Part < 1 || e.Part > e.Parts || e.Parts > 4096 {
				return e, typeName, fmt.Errorf("%w: header %s is %q, not part/parts", ErrUndecodable, headerPart, v)
			}
		}
	}
	if typeName == "" {
		return e, "", fmt.Errorf("%w: no header %s", ErrUndecodable, HeaderType)
	}
	return e, typeName, nil
}

// DecodeMessage reads the value of an event type: Protobuf, of an outcome perhaps JSON.
func DecodeMessage(typeName string, value []byte) (proto.Message, error) {
	if strings.HasPrefix(typeName, OutcomeTypePrefix) {
		return decodeOutcome(value)
	}
	if !strings.HasPrefix(typeName, typePrefix) {
		return nil, fmt.Errorf("%w: %q", ErrUnknownType, typeName)
	}
	t, err := protoregistry.GlobalTypes.FindMessageByName(protoreflect.FullName(typeName))
	if err != nil {
		return nil, fmt.Errorf("%w: %q", ErrUnknownType, typeName)
	}
	m := t.New().Interface()
	if err := proto.Unmarshal(value, m); err != nil {
		return nil, fmt.Errorf("%w: %s: %v", ErrUndecodable, typeName, err)
	}
	return m, nil
}
