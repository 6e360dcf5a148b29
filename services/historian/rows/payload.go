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

// maxDepth bounds how deep messages may nest; those of the schemas nest six deep.
const maxDepth = 32

var errTooDeep = errors.New("its messages are nested too deep")

// appendJSON appends a message as JSON in the form of protojson with the names of the schemas: 64-bit integers and
// bytes are texts, enums their names, what is not set is left out. It is for events, which hold none of the
// well-known types; those it leaves to protojson. Ingestion spends most of its own time here, which is why it is
// not protojson: that takes two to four times as long.
func appendJSON(b []byte, m protoreflect.Message, depth int) ([]byte, error) {
	if depth == 0 {
		return b, errTooDeep
	}
	if m.Descriptor().ParentFile().Package() == "google.protobuf" {
		text, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(m.Interface())
		return append(b, text...), err
	}
	b = append(b, '{')
	fields := m.Descriptor().Fields()
	first := true
	for i := range fields.Len() {
		field := fields.Get(i)
		if !m.Has(field) {
			continue
		}
		if !first {
			b = append(b, ',')
		}
		first = false
		b = append(b, '"')
		b = append(b, field.Name()...)
		b = append(b, '"', ':')
		var err error
		if b, err = appendField(b, field, m.Get(field), depth-1); err != nil {
			return b, err
		}
	}
	return append(b, '}'), nil
}

func appendField(b []byte, field protoreflect.FieldDescriptor, value protoreflect.Value, depth int) (_ []byte, err error) {
	switch {
	case field.IsMap():
		b = append(b, '{')
		first := true
		value.Map().Range(func(key protoreflect.MapKey, v protoreflect.Value) bool {
			if !first {
				b = append(b, ',')
			}
			first = false
			b = appendText(b, key.String())
			b = append(b, ':')
			b, err = appendValue(b, field.MapValue(), v, depth)
			return err == nil
		})
		return append(b, '}'), err
	case field.IsList():
		list := value.List()
		b = append(b, '[')
		for i := range list.Len() {
			if i > 0 {
				b = append(b, ',')
			}
			if b, err = appendValue(b, field, list.Get(i), depth); err != nil {
				return b, err
			}
		}
		return append(b, ']'), nil
	}
	return appendValue(b, field, value, depth)
}

func appendValue(b []byte, field protoreflect.FieldDescriptor, value protoreflect.Value, depth int) ([]byte, error) {
	switch field.Kind() {
	case protoreflect.MessageKind, protoreflect.GroupKind:
		return appendJSON(b, value.Message(), depth)
	case protoreflect.StringKind:
		return appendText(b, value.String()), nil
	case protoreflect.BytesKind:
		b = append(b, '"')
		b = base64.StdEncoding.AppendEncode(b, value.Bytes())
		return append(b, '"'), nil
	case protoreflect.BoolKind:
		return strconv.AppendBool(b, value.Bool()), nil
	case protoreflect.EnumKind:
		if known := field.Enum().Values().ByNumber(value.Enum()); known != nil {
			b = append(b, '"')
			b = append(b, known.Name()...)
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
