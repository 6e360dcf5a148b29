package events_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
)

const baselineFile = "testdata/descriptor.binpb"

// TestNothingThatLogsHoldChangesItsMeaning compares the schema with the one that was frozen. Additions
// pass and are frozen by -update; anything else needs a new type.
func TestNothingThatLogsHoldChangesItsMeaning(t *testing.T) {
	now := &descriptorpb.FileDescriptorSet{}
	for _, f := range schemaFiles(t) {
		now.File = append(now.File, protodesc.ToFileDescriptorProto(f))
	}
	if !*renew {
		content, err := os.ReadFile(baselineFile)
		if err != nil {
			t.Fatal(err)
		}
		before := &descriptorpb.FileDescriptorSet{}
		if err := proto.Unmarshal(content, before); err != nil {
			t.Fatal(err)
		}
		for _, broken := range breaking(describe(before), describe(now)) {
			t.Error(broken)
		}
	}
	if t.Failed() || !*update && !*renew {
		return
	}
	content, err := proto.MarshalOptions{Deterministic: true}.Marshal(now)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(baselineFile, content, 0o644); err != nil {
		t.Fatal(err)
	}
}

// describe gives what may not change of a schema: one line for each message, field, enum and enum
// value, under a name that identifies it in the log (fields and values by number).
func describe(set *descriptorpb.FileDescriptorSet) map[string]string {
	lines := map[string]string{}
	var message func(scope string, m *descriptorpb.DescriptorProto)
	enum := func(scope string, e *descriptorpb.EnumDescriptorProto) {
		name := scope + "." + e.GetName()
		lines["enum "+name] = "an enum"
		for _, v := range e.Value {
			lines[fmt.Sprintf("enum %s value %d", name, v.GetNumber())] = v.GetName()
		}
	}
	message = func(scope string, m *descriptorpb.DescriptorProto) {
		name := scope + "." + m.GetName()
		lines["message "+name] = fmt.Sprintf("a message, map entry %v", m.GetOptions().GetMapEntry())
		for _, f := range m.Field {
			oneof := "none"
			if f.OneofIndex != nil {
				oneof = m.OneofDecl[f.GetOneofIndex()].GetName()
			}
			lines[fmt.Sprintf("message %s field %d", name, f.GetNumber())] = strings.Join([]string{
				f.GetName(), f.GetLabel().String(), f.GetType().String(), f.GetTypeName(), "json " + f.GetJsonName(), "oneof " + oneof}, ", ")
		}
		for _, n := range m.NestedType {
			message(name, n)
		}
		for _, e := range m.EnumType {
			enum(name, e)
		}
	}
	for _, f := range set.File {
		for _, m := range f.MessageType {
			message(f.GetPackage(), m)
		}
		for _, e := range f.EnumType {
			enum(f.GetPackage(), e)
		}
	}
	return lines
}

// breaking lists what was and is no longer, or is otherwise.
func breaking(before, now map[string]string) (broken []string) {
	for what, was := range before {
		if is, ok := now[what]; !ok {
			broken = append(broken, fmt.Sprintf("%s (%s) was removed; logs hold it", what, was))
		} else if is != was {
			broken = append(broken, fmt.Sprintf("%s was %q and is %q; make a new field or type instead", what, was, is))
		}
	}
	return broken
}

// The check itself is checked: each edit of the schema either breaks or does not.
func TestTheBaselineTellsBreakingChanges(t *testing.T) {
	field := func(set *descriptorpb.FileDescriptorSet) *descriptorpb.FieldDescriptorProto {
		return set.File[0].MessageType[0].Field[0]
	}
	for name, c := range map[string]struct {
		edit   func(set *descriptorpb.FileDescriptorSet)
		breaks bool
	}{
		"nothing":         {func(*descriptorpb.FileDescriptorSet) {}, false},
		"a renamed field": {func(s *descriptorpb.FileDescriptorSet) { field(s).Name = proto.String("other") }, true},
		"another number":  {func(s *descriptorpb.FileDescriptorSet) { field(s).Number = proto.Int32(99) }, true},
		"another type": {func(s *descriptorpb.FileDescriptorSet) {
			field(s).Type = descriptorpb.FieldDescriptorProto_TYPE_BYTES.Enum()
		}, true},
		"another label": {func(s *descriptorpb.FileDescriptorSet) {
			if f := field(s); f.GetLabel() == descriptorpb.FieldDescriptorProto_LABEL_REPEATED {
				f.Label = descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL.Enum()
			} else {
				f.Label = descriptorpb.FieldDescriptorProto_LABEL_REPEATED.Enum()
			}
		}, true},
		"a removed field":   {func(s *descriptorpb.FileDescriptorSet) { m := s.File[0].MessageType[0]; m.Field = m.Field[1:] }, true},
		"a removed message": {func(s *descriptorpb.FileDescriptorSet) { s.File[0].MessageType = s.File[0].MessageType[1:] }, true},
		"a renumbered enum": {func(s *descriptorpb.FileDescriptorSet) { s.File[0].EnumType[0].Value[1].Number = proto.Int32(77) }, true},
		"a removed value":   {func(s *descriptorpb.FileDescriptorSet) { e := s.File[0].EnumType[0]; e.Value = e.Value[:1] }, true},
		"a new field": {func(s *descriptorpb.FileDescriptorSet) {
			m := s.File[0].MessageType[0]
			m.Field = append(m.Field, &descriptorpb.FieldDescriptorProto{Name: proto.String("new"), Number: proto.Int32(500)})
		}, false},
		"a new value": {func(s *descriptorpb.FileDescriptorSet) {
			e := s.File[0].EnumType[0]
			e.Value = append(e.Value, &descriptorpb.EnumValueDescriptorProto{Name: proto.String("NEW"), Number: proto.Int32(500)})
		}, false},
	} {
		whole := &descriptorpb.FileDescriptorSet{}
		for _, f := range schemaFiles(t) {
			if f.Messages().Len() > 0 && f.Enums().Len() > 0 {
				whole.File = append(whole.File, protodesc.ToFileDescriptorProto(f))
			}
		}
		edited := proto.CloneOf(whole)
		c.edit(edited)
		if got := breaking(describe(whole), describe(edited)); (len(got) > 0) != c.breaks {
			t.Errorf("%s: breaks is %v: %v", name, len(got) > 0, got)
		}
	}
}

func TestEveryEnumStartsUnspecified(t *testing.T) {
	enums := enumTypes(t)
	if len(enums) == 0 {
		t.Fatal("no enums")
	}
	for _, e := range enums {
		zero := e.Values().ByNumber(0)
		prefix := constantPrefix(e.Name())
		if zero == nil || string(zero.Name()) != prefix+"UNSPECIFIED" {
			t.Errorf("value 0 of %s is not %sUNSPECIFIED", e.Name(), prefix)
		}
		for i := range e.Values().Len() {
			if v := e.Values().Get(i); !strings.HasPrefix(string(v.Name()), prefix) {
				t.Errorf("%s of %s does not begin with %s", v.Name(), e.Name(), prefix)
			}
		}
	}
}

// constantPrefix turns StepOutcome into STEP_OUTCOME_.
func constantPrefix(name protoreflect.Name) string {
	var b strings.Builder
	for i, r := range string(name) {
		if i > 0 && r >= 'A' && r <= 'Z' {
			b.WriteByte('_')
		}
		b.WriteRune(r)
	}
	return strings.ToUpper(b.String()) + "_"
}
