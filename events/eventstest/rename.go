// Package eventstest helps tests that say what events do not depend on.
package eventstest

import (
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// Renamed is a copy of a message in which every text that is a key of names is what it stands for.
func Renamed[M proto.Message](m M, names map[string]string) M {
	out := proto.CloneOf(m)
	rename(out.ProtoReflect(), names)
	return out
}

func rename(m protoreflect.Message, names map[string]string) {
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case f.IsMap():
			panic("no event has a map") // and one that gets one has its keys to be renamed, too
		case f.IsList():
			for i := range v.List().Len() {
				if now, is := renamed(f, v.List().Get(i), names); is {
					v.List().Set(i, now)
				}
			}
		default:
			if now, is := renamed(f, v, names); is {
				m.Set(f, now)
			}
		}
		return true
	})
}

// renamed renames what is in a message, and says whether a text is another one.
func renamed(f protoreflect.FieldDescriptor, v protoreflect.Value, names map[string]string) (now protoreflect.Value, is bool) {
	switch f.Kind() {
	case protoreflect.MessageKind:
		rename(v.Message(), names)
	case protoreflect.StringKind:
		if name, known := names[v.String()]; known {
			return protoreflect.ValueOfString(name), true
		}
	}
	return v, false
}
