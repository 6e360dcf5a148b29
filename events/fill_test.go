package events_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	eventsv1 "landfall.build/events/v1"
)

const schemaPackage = protoreflect.FullName("landfall.events.v1")

// schemaFiles are the descriptors of schemas/events/v1, by path.
func schemaFiles(t testing.TB) []protoreflect.FileDescriptor {
	t.Helper()
	_ = eventsv1.File_events_v1_log_proto // links all of them in
	files := map[string]protoreflect.FileDescriptor{}
	protoregistry.GlobalFiles.RangeFilesByPackage(schemaPackage, func(f protoreflect.FileDescriptor) bool {
		files[f.Path()] = f
		return true
	})
	if len(files) == 0 {
		t.Fatal("no schema is linked in")
	}
	var sorted []protoreflect.FileDescriptor
	for _, path := range slices.Sorted(maps.Keys(files)) {
		sorted = append(sorted, files[path])
	}
	return sorted
}

// messageTypes are all message types of the schema, in the order of files and declarations.
func messageTypes(t testing.TB) (types []protoreflect.MessageDescriptor) {
	t.Helper()
	var add func(protoreflect.MessageDescriptors)
	add = func(ms protoreflect.MessageDescriptors) {
		for i := range ms.Len() {
			if m := ms.Get(i); !m.IsMapEntry() {
				types = append(types, m)
				add(m.Messages())
			}
		}
	}
	for _, f := range schemaFiles(t) {
		add(f.Messages())
	}
	return types
}

// enumTypes are all enums of the schema.
func enumTypes(t testing.TB) (types []protoreflect.EnumDescriptor) {
	t.Helper()
	add := func(es protoreflect.EnumDescriptors) {
		for i := range es.Len() {
			types = append(types, es.Get(i))
		}
	}
	for _, f := range schemaFiles(t) {
		add(f.Enums())
	}
	for _, m := range messageTypes(t) {
		add(m.Enums())
	}
	return types
}

func newMessage(t testing.TB, d protoreflect.MessageDescriptor) proto.Message {
	t.Helper()
	mt, err := protoregistry.GlobalTypes.FindMessageByName(d.FullName())
	if err != nil {
		t.Fatal(err)
	}
	return mt.New().Interface()
}

// fill sets every field to a value that only its number, name and type decide. Of a oneof it sets the
// last field; a list of messages with a oneof has an element for each of its fields.
func fill(m protoreflect.Message) {
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		fillField(m, fields.Get(i))
	}
}

func fillField(m protoreflect.Message, f protoreflect.FieldDescriptor) {
	switch {
	case f.IsMap():
		entries := m.Mutable(f).Map()
		for i := range 2 {
			entries.Set(scalar(f.MapKey(), i).MapKey(), scalar(f.MapValue(), i))
		}
	case f.IsList() && f.Message() != nil:
		list := m.Mutable(f).List()
		for _, variant := range variants(f.Message()) {
			e := list.NewElement()
			fill(e.Message())
			if variant != nil {
				fillField(e.Message(), variant)
			}
			list.Append(e)
		}
	case f.IsList():
		list := m.Mutable(f).List()
		for i := range 2 {
			list.Append(scalar(f, i))
		}
	case f.Message() != nil:
		fill(m.Mutable(f).Message())
	default:
		m.Set(f, scalar(f, 0))
	}
}

// variants are the fields of the real oneofs of a message, or a single nil.
func variants(d protoreflect.MessageDescriptor) (fields []protoreflect.FieldDescriptor) {
	for i := range d.Oneofs().Len() {
		if o := d.Oneofs().Get(i); !o.IsSynthetic() {
			for j := range o.Fields().Len() {
				fields = append(fields, o.Fields().Get(j))
			}
		}
	}
	if fields == nil {
		return []protoreflect.FieldDescriptor{nil}
	}
	return fields
}

func scalar(f protoreflect.FieldDescriptor, i int) protoreflect.Value {
	n := 1000*int64(f.Number()) + int64(i) + 1
	switch f.Kind() {
	case protoreflect.BoolKind:
		return protoreflect.ValueOfBool(true)
	case protoreflect.StringKind:
		return protoreflect.ValueOfString(fmt.Sprintf("%s-%d", f.Name(), i))
	case protoreflect.BytesKind:
		return protoreflect.ValueOfBytes([]byte{byte(n), 0xff, 0})
	case protoreflect.DoubleKind:
		return protoreflect.ValueOfFloat64(float64(n) + 0.25)
	case protoreflect.FloatKind:
		return protoreflect.ValueOfFloat32(float32(n) + 0.25)
	case protoreflect.EnumKind:
		values := f.Enum().Values()
		return protoreflect.ValueOfEnum(values.Get(values.Len() - 1 - i).Number())
	case protoreflect.Int32Kind, protoreflect.Sint32Kind, protoreflect.Sfixed32Kind:
		return protoreflect.ValueOfInt32(int32(-n))
	case protoreflect.Int64Kind, protoreflect.Sint64Kind, protoreflect.Sfixed64Kind:
		return protoreflect.ValueOfInt64(-n)
	case protoreflect.Uint32Kind, protoreflect.Fixed32Kind:
		return protoreflect.ValueOfUint32(uint32(n))
	case protoreflect.Uint64Kind, protoreflect.Fixed64Kind:
		return protoreflect.ValueOfUint64(uint64(n))
	}
	panic(fmt.Sprintf("field %s of kind %s", f.FullName(), f.Kind()))
}
