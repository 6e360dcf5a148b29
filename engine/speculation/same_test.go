package speculation

import (
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	eventsv1 "landfall.build/events/v1"
)

// fill sets every field of a message, and of those in it.
func fill(m protoreflect.Message) {
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		f := fields.Get(i)
		switch {
		case f.IsList():
			list := m.Mutable(f).List()
			if f.Message() != nil {
				fill(list.AppendMutable().Message())
			} else {
				list.Append(scalar(f, 1))
			}
		case f.Message() != nil:
			fill(m.Mutable(f).Message())
		default:
			m.Set(f, scalar(f, 1))
		}
	}
}

func scalar(f protoreflect.FieldDescriptor, n int) protoreflect.Value {
	switch f.Kind() {
	case protoreflect.BoolKind:
		return protoreflect.ValueOfBool(n == 1)
	case protoreflect.EnumKind:
		return protoreflect.ValueOfEnum(protoreflect.EnumNumber(n))
	case protoreflect.StringKind:
		return protoreflect.ValueOfString(string(rune('a' + n)))
	case protoreflect.BytesKind:
		return protoreflect.ValueOfBytes([]byte{byte(n)})
	case protoreflect.DoubleKind:
		return protoreflect.ValueOfFloat64(float64(n))
	case protoreflect.Uint32Kind:
		return protoreflect.ValueOfUint32(uint32(n))
	case protoreflect.Uint64Kind:
		return protoreflect.ValueOfUint64(uint64(n))
	case protoreflect.Int64Kind, protoreflect.Sint64Kind:
		return protoreflect.ValueOfInt64(int64(n))
	}
	panic("a kind that nodes did not have: " + f.Kind().String())
}

// eachChange calls f after each single change that a filled message can have; it is undone afterwards.
func eachChange(m protoreflect.Message, path string, f func(what string)) {
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		d := fields.Get(i)
		at := path + "." + string(d.Name())
		old := m.Get(d)
		switch {
		case d.IsList() && d.Message() != nil:
			eachChange(old.List().Get(0).Message(), at, f)
			added := old.List().AppendMutable()
			fill(added.Message())
			f(at + " with another element")
			old.List().Truncate(1)
		case d.IsList():
			element := old.List().Get(0)
			old.List().Set(0, scalar(d, 2))
			f(at)
			old.List().Set(0, element)
		case d.Message() != nil:
			eachChange(old.Message(), at, f)
			m.Clear(d)
			f("without " + at)
			m.Set(d, old)
		default:
			m.Set(d, scalar(d, 2))
			f(at)
			m.Set(d, old)
		}
	}
}

// A field that is added to a node, or to what is in it, has to be compared too.
func TestNodesAreTheSameOnlyIfEveryFieldIs(t *testing.T) {
	a := &eventsv1.Node{}
	fill(a.ProtoReflect())
	b := proto.CloneOf(a)
	if !sameNode(a, b) {
		t.Fatal("a node differs from its copy")
	}
	changes := 0
	eachChange(b.ProtoReflect(), "node", func(what string) {
		changes++
		if proto.Equal(a, b) {
			t.Fatalf("the test changes nothing: %s", what)
		}
		if sameNode(a, b) {
			t.Errorf("a change is overlooked: %s", what)
		}
	})
	if changes < 50 {
		t.Errorf("only %d changes were tried", changes)
	}
	if !sameNode(nil, nil) || sameNode(a, nil) || sameNode(nil, b) {
		t.Error("no node is the same as no node, and as nothing else")
	}
}
