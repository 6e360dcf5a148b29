package replay

import (
	"encoding/hex"
	"fmt"
	"slices"
	"sort"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// Field is one place in which two messages of a type differ. A side that lacks it is "".
type Field struct {
	Path     string `json:"path"`
	Written  string `json:"written,omitempty"`
	Computed string `json:"computed,omitempty"`
}

// maxFields bounds the differences between two messages that are listed, maxShown the text of each.
const (
	maxFields = 1000
	maxShown  = 400
)

// Fields lists where two messages of one type differ, in the order of their fields, at most 1,000. Elements of a
// list are compared in pairs once what is equal at its beginning and end is left out. It is empty for messages that
// differ in what has no field: unknown ones, or the sign of a zero.
func Fields(written, computed proto.Message) []Field {
	var c comparison
	c.messages("", written.ProtoReflect(), computed.ProtoReflect())
	return c.found
}

type comparison struct{ found []Field }

func (c *comparison) add(path, written, computed string) {
	if len(c.found) < maxFields {
		c.found = append(c.found, Field{path, written, computed})
	}
}

func (c *comparison) messages(path string, a, b protoreflect.Message) {
	fields := a.Descriptor().Fields()
	for i := range fields.Len() {
		f := fields.Get(i)
		at := string(f.Name())
		if path != "" {
			at = path + "." + at
		}
		switch {
		case f.IsList():
			c.lists(at, f, a.Get(f).List(), b.Get(f).List())
		case f.IsMap():
			c.maps(at, f, a.Get(f).Map(), b.Get(f).Map())
		case !a.Has(f) && !b.Has(f):
		case !f.HasPresence() || a.Has(f) && b.Has(f):
			c.values(at, f, a.Get(f), b.Get(f))
		case a.Has(f):
			c.add(at, shown(f, a.Get(f)), "")
		default:
			c.add(at, "", shown(f, b.Get(f)))
		}
	}
}

func (c *comparison) values(path string, f protoreflect.FieldDescriptor, a, b protoreflect.Value) {
	switch {
	case f.Message() != nil && !f.IsMap():
		c.messages(path, a.Message(), b.Message())
	case !a.Equal(b):
		c.add(path, shown(f, a), shown(f, b))
	}
}

func (c *comparison) lists(path string, f protoreflect.FieldDescriptor, a, b protoreflect.List) {
	start, n, m := 0, a.Len(), b.Len()
	for start < min(n, m) && a.Get(start).Equal(b.Get(start)) {
		start++
	}
	for n > start && m > start && a.Get(n-1).Equal(b.Get(m-1)) {
		n, m = n-1, m-1
	}
	for i := start; i < max(n, m); i++ {
		switch {
		case i >= m:
			c.add(path+place(f, i, a), shown(f, a.Get(i)), "")
		case i >= n:
			c.add(path+place(f, i, b), "", shown(f, b.Get(i)))
		default:
			c.values(path+place(f, i, a), f, a.Get(i), b.Get(i))
		}
	}
}

func (c *comparison) maps(path string, f protoreflect.FieldDescriptor, a, b protoreflect.Map) {
	var keys []protoreflect.MapKey
	for _, m := range []protoreflect.Map{a, b} {
		for k := range m.Range {
			keys = append(keys, k)
		}
	}
	sort.Slice(keys, func(i, j int) bool { return keys[i].String() < keys[j].String() })
	keys = slices.CompactFunc(keys, func(x, y protoreflect.MapKey) bool { return x.String() == y.String() })
	for _, k := range keys {
		at := fmt.Sprintf("%s[%q]", path, k.String())
		switch {
		case !b.Has(k):
			c.add(at, shown(f.MapValue(), a.Get(k)), "")
		case !a.Has(k):
			c.add(at, "", shown(f.MapValue(), b.Get(k)))
		default:
			c.values(at, f.MapValue(), a.Get(k), b.Get(k))
		}
	}
}

// place is an element's index, with what it is about if it says so.
func place(f protoreflect.FieldDescriptor, i int, l protoreflect.List) string {
	at := fmt.Sprint(i)
	if f.Message() != nil {
		if about := subject(l.Get(i).Message()); about != "" {
			at += " " + about
		}
	}
	return "[" + at + "]"
}

// subject is what a message is about: the change, target or build that it names itself by.
func subject(m protoreflect.Message) string {
	fields := m.Descriptor().Fields()
	for _, name := range []protoreflect.Name{"change", "target", "build"} {
		f := fields.ByName(name)
		switch {
		case f == nil || f.IsList() || !m.Has(f):
		case f.Kind() == protoreflect.StringKind:
			return m.Get(f).String()
		case f.Message() != nil:
			return subject(m.Get(f).Message())
		}
	}
	return ""
}

// shown is a value for people, on one line.
func shown(f protoreflect.FieldDescriptor, v protoreflect.Value) string {
	text := ""
	switch f.Kind() {
	case protoreflect.MessageKind, protoreflect.GroupKind:
		body, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(v.Message().Interface())
		if err != nil {
			return err.Error()
		}
		text = string(body)
	case protoreflect.EnumKind:
		if value := f.Enum().Values().ByNumber(v.Enum()); value != nil {
			return string(value.Name())
		}
		return fmt.Sprint(v.Enum())
	case protoreflect.BytesKind:
		text = hex.EncodeToString(v.Bytes())
	case protoreflect.StringKind:
		text = fmt.Sprintf("%q", v.String())
	default:
		return fmt.Sprint(v.Interface())
	}
	return clip(text, maxShown)
}

// clip shortens a text and says so.
func clip(text string, most int) string {
	if len(text) <= most {
		return text
	}
	cut := most
	for cut > 0 && text[cut]&0xC0 == 0x80 {
		cut--
	}
	return fmt.Sprintf("%s… (%d bytes)", text[:cut], len(text))
}
