package rows

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"landfall.build/events/seedtest"
)

// fill sets random fields of a message, nested ones too.
func fill(random *rand.Rand, m protoreflect.Message, depth int) {
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		field := fields.Get(i)
		if random.IntN(3) == 0 || field.Kind() == protoreflect.MessageKind && depth == 0 {
			continue
		}
		switch {
		case field.IsMap():
			entries := m.Mutable(field).Map()
			for range random.IntN(4) {
				entries.Set(value(random, field.MapKey()).MapKey(), value(random, field.MapValue()))
			}
		case field.IsList():
			list := m.Mutable(field).List()
			for range random.IntN(4) {
				if field.Kind() == protoreflect.MessageKind {
					fill(random, list.AppendMutable().Message(), depth-1)
				} else {
					list.Append(value(random, field))
				}
			}
		case field.Kind() == protoreflect.MessageKind:
			fill(random, m.Mutable(field).Message(), depth-1)
		default:
			m.Set(field, value(random, field))
		}
	}
}

func value(random *rand.Rand, field protoreflect.FieldDescriptor) protoreflect.Value {
	switch field.Kind() {
	case protoreflect.StringKind:
		runes := make([]rune, random.IntN(8))
		for i := range runes {
			runes[i] = []rune{'a', '"', '\\', '\n', 0, 0x1f, 0x7f, 'é', '中', '\u2028', 0x1F600, '<', 0xfffd}[random.IntN(13)]
		}
		return protoreflect.ValueOfString(string(runes))
	case protoreflect.BytesKind:
		b := make([]byte, random.IntN(9))
		for i := range b {
			b[i] = byte(random.Uint32())
		}
		return protoreflect.ValueOfBytes(b)
	case protoreflect.BoolKind:
		return protoreflect.ValueOfBool(random.IntN(2) == 0)
	case protoreflect.EnumKind:
		return protoreflect.ValueOfEnum(protoreflect.EnumNumber(random.IntN(9)))
	case protoreflect.DoubleKind:
		return protoreflect.ValueOfFloat64([]float64{0.1, -1e300, 5e-324, math.Inf(1), math.Inf(-1), 1234567, 1e21, 0, math.Copysign(0, -1)}[random.IntN(9)])
	case protoreflect.FloatKind:
		return protoreflect.ValueOfFloat32([]float32{0.1, -1e30, float32(math.NaN()), 1234567}[random.IntN(4)])
	case protoreflect.Int32Kind:
		return protoreflect.ValueOfInt32(int32(random.Uint32()))
	case protoreflect.Uint32Kind:
		return protoreflect.ValueOfUint32(random.Uint32() * random.Uint32N(2))
	case protoreflect.Int64Kind, protoreflect.Sint64Kind:
		return protoreflect.ValueOfInt64(int64(random.Uint64() * random.Uint64N(2)))
	case protoreflect.Uint64Kind:
		return protoreflect.ValueOfUint64(random.Uint64())
	}
	panic("the schemas use a kind that this test does not know: " + field.Kind().String())
}

// TestPayloadsAreWhatProtojsonWrites: the dumb twin is protojson itself.
func TestPayloadsAreWhatProtojsonWrites(t *testing.T) {
	random := seedtest.Random(t)
	types := 0
	protoregistry.GlobalTypes.RangeMessages(func(mt protoreflect.MessageType) bool {
		if mt.Descriptor().FullName().Parent() != "landfall.events.v1" {
			return true
		}
		types++
		for range 20 {
			m := mt.New()
			fill(random, m, 3)
			got, err := forms{}.appendJSON(nil, m, maxDepth)
			if err != nil || !json.Valid(got) {
				t.Fatalf("%s: %v: %s", mt.Descriptor().Name(), err, got)
			}
			want, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(m.Interface())
			if err != nil {
				t.Fatal(err)
			}
			if a, b := normal(t, got), normal(t, want); a != b {
				t.Fatalf("%s:\n%s\nprotojson writes\n%s", mt.Descriptor().Name(), a, b)
			}
			back := mt.New().Interface()
			if err := (protojson.UnmarshalOptions{}).Unmarshal(got, back); err != nil || !proto.Equal(back, m.Interface()) {
				t.Fatalf("%s is not read back (%v): %s", mt.Descriptor().Name(), err, got)
			}
		}
		return true
	})
	if types < 30 {
		t.Errorf("only %d types were tried", types)
	}
}

// normal is JSON with its keys in order and without spaces.
func normal(t *testing.T, text []byte) string {
	t.Helper()
	var v any
	if err := json.Unmarshal(text, &v); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	out, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func BenchmarkPayload(b *testing.B) {
	random := rand.New(rand.NewPCG(1, 0))
	var list []protoreflect.Message
	protoregistry.GlobalTypes.RangeMessages(func(mt protoreflect.MessageType) bool {
		if mt.Descriptor().FullName().Parent() == "landfall.events.v1" {
			m := mt.New()
			fill(random, m, 3)
			list = append(list, m)
		}
		return true
	})
	b.Run("ours", func(b *testing.B) {
		var buffer []byte
		known := forms{}
		for i := 0; b.Loop(); i++ {
			buffer, _ = known.appendJSON(buffer[:0], list[i%len(list)], maxDepth)
		}
	})
	b.Run("protojson", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			protojson.MarshalOptions{UseProtoNames: true}.Marshal(list[i%len(list)].Interface())
		}
	})
}
