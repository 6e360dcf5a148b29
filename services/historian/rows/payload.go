package rows

import (
	"encoding/base64"
	"errors"
	"math"
	"strconv"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// maxDepth bounds the nesting of messages; those of the schemas nest six deep.
const maxDepth = 32

var errTooDeep = errors.New("its messages are nested too deep")

// form is how the messages of one type are written; it is computed once.
type form struct {
	wellKnown bool
	fields    []fieldForm
}

type fieldForm struct {
	field protoreflect.FieldDescriptor
	// key is the text before the value.
	key string
	// plain is set for a field that is present exactly if its value is not zero.
	plain, list, entries bool
	valueForm            // of the value, or of each one in it
}

type valueForm struct {
	kind protoreflect.Kind
	// names are those of an enum's values.
	names map[protoreflect.EnumNumber]protoreflect.Name
}

// forms holds the forms of the types so far, by name.
type forms map[protoreflect.FullName]*form

func (known forms) of(d protoreflect.MessageDescriptor) *form {
	f := known[d.FullName()]
	if f != nil {
		return f
	}
	f = &form{wellKnown: d.ParentFile().Package() == "google.protobuf"}
	for i := range d.Fields().Len() {
		field := d.Fields().Get(i)
		of := fieldForm{field: field, key: `"` + string(field.Name()) + `":`, list: field.IsList(), entries: field.IsMap()}
		of.plain = !of.list && !of.entries && !field.HasPresence()
		if of.entries {
			field = field.MapValue()
		}
		of.kind = field.Kind()
		if of.kind == protoreflect.EnumKind {
			of.names = map[protoreflect.EnumNumber]protoreflect.Name{}
			for j := range field.Enum().Values().Len() {
				value := field.Enum().Values().Get(j)
				of.names[value.Number()] = value.Name()
			}
		}
		f.fields = append(f.fields, of)
	}
	known[d.FullName()] = f
	return f
}

// appendJSON appends a message as JSON, as protojson does with the field names of the schemas: 64-bit integers and bytes are strings,
// enums are names, unset fields are left out. Well-known types, which events do not use, are left to protojson. Ingestion spends most
// of its own time here, and protojson takes three times as long.
func (known forms) appendJSON(b []byte, m protoreflect.Message, depth int) ([]byte, error) {
	if depth == 0 {
		return b, errTooDeep
	}
	form := known.of(m.Descriptor())
	if form.wellKnown {
		text, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(m.Interface())
		return append(b, text...), err
	}
	b = append(b, '{')
	first := true
	for i := range form.fields {
		f := &form.fields[i]
		if !f.plain && !m.Has(f.field) {
			continue
		}
		value := m.Get(f.field)
		if f.plain && isZero(f.kind, value) {
			continue
		}
		if !first {
			b = append(b, ',')
		}
		first = false
		b = append(b, f.key...)
		var err error
		if b, err = f.append(b, value, known, depth-1); err != nil {
			return b, err
		}
	}
	return append(b, '}'), nil
}

func isZero(kind protoreflect.Kind, v protoreflect.Value) bool {
	switch kind {
	case protoreflect.StringKind:
		return v.String() == ""
	case protoreflect.BytesKind:
		return len(v.Bytes()) == 0
	case protoreflect.BoolKind:
		return !v.Bool()
	case protoreflect.EnumKind:
		return v.Enum() == 0
	case protoreflect.FloatKind, protoreflect.DoubleKind:
		return math.Float64bits(v.Float()) == 0 // -0 is set
	case protoreflect.Int32Kind, protoreflect.Sint32Kind, protoreflect.Sfixed32Kind, protoreflect.Int64Kind, protoreflect.Sint64Kind, protoreflect.Sfixed64Kind:
		return v.Int() == 0
	default: // the unsigned kinds
		return v.Uint() == 0
	}
}

func (f *fieldForm) append(b []byte, value protoreflect.Value, known forms, depth int) (_ []byte, err error) {
	switch {
	case f.entries:
		b = append(b, '{')
		first := true
		value.Map().Range(func(key protoreflect.MapKey, v protoreflect.Value) bool {
			if !first {
				b = append(b, ',')
			}
			first = false
			b = appendText(b, key.String())
			b = append(b, ':')
			b, err = f.appendValue(b, v, known, depth)
			return err == nil
		})
		return append(b, '}'), err
	case f.list:
		list := value.List()
		b = append(b, '[')
		for i := range list.Len() {
			if i > 0 {
				b = append(b, ',')
			}
			if b, err = f.appendValue(b, list.Get(i), known, depth); err != nil {
				return b, err
			}
		}
		return append(b, ']'), nil
	}
	return f.appendValue(b, value, known, depth)
}

func (f *valueForm) appendValue(b []byte, value protoreflect.Value, known forms, depth int) ([]byte, error) {
	switch f.kind {
	case protoreflect.MessageKind, protoreflect.GroupKind:
		return known.appendJSON(b, value.Message(), depth)
	case protoreflect.StringKind:
		return appendText(b, value.String()), nil
	case protoreflect.BytesKind:
		b = append(b, '"')
		b = base64.StdEncoding.AppendEncode(b, value.Bytes())
		return append(b, '"'), nil
	case protoreflect.BoolKind:
		return strconv.AppendBool(b, value.Bool()), nil
	case protoreflect.EnumKind:
		if name, known := f.names[value.Enum()]; known {
			b = append(b, '"')
			b = append(b, name...)
			return append(b, '"'), nil
		}
		return strconv.AppendInt(b, int64(value.Enum()), 10), nil
	case protoreflect.FloatKind:
		return appendFloat(b, value.Float(), 32), nil
	case protoreflect.DoubleKind:
		return appendFloat(b, value.Float(), 64), nil
	case protoreflect.Int32Kind, protoreflect.Sint32Kind, protoreflect.Sfixed32Kind:
		return strconv.AppendInt(b, value.Int(), 10), nil
	case protoreflect.Uint32Kind, protoreflect.Fixed32Kind:
		return strconv.AppendUint(b, value.Uint(), 10), nil
	case protoreflect.Int64Kind, protoreflect.Sint64Kind, protoreflect.Sfixed64Kind:
		b = append(b, '"')
		b = strconv.AppendInt(b, value.Int(), 10)
		return append(b, '"'), nil
	default: // the unsigned 64-bit kinds
		b = append(b, '"')
		b = strconv.AppendUint(b, value.Uint(), 10)
		return append(b, '"'), nil
	}
}

func appendFloat(b []byte, f float64, bits int) []byte {
	switch {
	case math.IsNaN(f):
		return append(b, `"NaN"`...)
	case math.IsInf(f, 1):
		return append(b, `"Infinity"`...)
	case math.IsInf(f, -1):
		return append(b, `"-Infinity"`...)
	}
	return strconv.AppendFloat(b, f, 'g', -1, bits)
}

const hexDigits = "0123456789abcdef"

// appendText appends a JSON string. Bytes that are no UTF-8 become the replacement character.
func appendText(b []byte, s string) []byte {
	b = append(b, '"')
	from := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= ' ' && c != '"' && c != '\\' && c < utf8.RuneSelf {
			i++
			continue
		}
		size := 1
		if c >= utf8.RuneSelf {
			var r rune
			if r, size = utf8.DecodeRuneInString(s[i:]); r != utf8.RuneError || size > 1 {
				i += size
				continue
			}
		}
		b = append(b, s[from:i]...)
		switch {
		case c == '"' || c == '\\':
			b = append(b, '\\', c)
		case c == '\n':
			b = append(b, '\\', 'n')
		case c == '\t':
			b = append(b, '\\', 't')
		case c < ' ':
			b = append(b, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		default:
			b = append(b, "\ufffd"...)
		}
		i += size
		from = i
	}
	b = append(b, s[from:]...)
	return append(b, '"')
}
