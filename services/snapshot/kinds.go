package snapshot

import (
	"encoding/binary"
	"fmt"
	"math"
	"reflect"
	"sync"
	"time"
	"unsafe"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/runtime/protoimpl"
)

// codec writes and reads values of one type at an address.
type codec struct {
	freeze func(*freezer, unsafe.Pointer) error
	thaw   func(*thawer, unsafe.Pointer) error
}

var (
	messageType = reflect.TypeFor[proto.Message]()
	// generatedType is the type of a field that every generated message has.
	generatedType = reflect.TypeFor[protoimpl.MessageState]()
	timeType      = reflect.TypeFor[time.Time]()
	codecs        sync.Map // reflect.Type → *codec
)

// codecOf gives the codec of a type. It is made once; a type that contains itself, behind a pointer, a slice or a
// map, finds the unfinished one.
func codecOf(t reflect.Type) (*codec, error) {
	if c, ok := codecs.Load(t); ok {
		return c.(*codec), nil
	}
	made := map[reflect.Type]*codec{}
	c, err := makeCodec(t, made)
	if err != nil {
		return nil, err
	}
	for of, m := range made {
		codecs.LoadOrStore(of, m)
	}
	return c, nil
}

func makeCodec(t reflect.Type, made map[reflect.Type]*codec) (*codec, error) {
	if c, ok := codecs.Load(t); ok {
		return c.(*codec), nil
	}
	if c := made[t]; c != nil {
		return c, nil
	}
	c := &codec{}
	made[t] = c
	var err error
	switch {
	case t == timeType:
		timeCodec(c)
	case t.PkgPath() == "sync":
		// A lock is open when a state is frozen, and when it is new.
		c.freeze = func(*freezer, unsafe.Pointer) error { return nil }
		c.thaw = func(*thawer, unsafe.Pointer) error { return nil }
	default:
		err = c.ofKind(t, made)
	}
	return c, err
}

func (c *codec) ofKind(t reflect.Type, made map[reflect.Type]*codec) error {
	switch t.Kind() {
	case reflect.Bool, reflect.Int8, reflect.Uint8:
		plain[uint8](c)
	case reflect.Int16, reflect.Uint16:
		plain[uint16](c)
	case reflect.Int32, reflect.Uint32:
		plain[uint32](c)
	case reflect.Int, reflect.Int64:
		signed(c)
	case reflect.Uint, reflect.Uint64, reflect.Uintptr:
		plain[uint64](c)
	case reflect.Float32:
		plain[uint32](c)
	case reflect.Float64:
		float(c)
	case reflect.String:
		text(c)
	case reflect.Pointer:
		c.freeze = func(f *freezer, p unsafe.Pointer) error { return f.pointer(t, *(*unsafe.Pointer)(p)) }
		c.thaw = func(in *thawer, p unsafe.Pointer) error { return in.pointer(t, p) }
		if isMessage(t) {
			return nil
		}
		_, err := makeCodec(t.Elem(), made)
		return err
	case reflect.Struct:
		return c.ofStruct(t, made)
	case reflect.Array:
		return c.ofArray(t, made)
	case reflect.Slice:
		return c.ofSlice(t, made)
	case reflect.Map:
		return c.ofMap(t, made)
	default:
		return fmt.Errorf("a %s cannot be frozen (%s)", t.Kind(), t)
	}
	return nil
}

// plain is for integers that are written as they are, unsigned, in as few bytes as they take.
func plain[T uint8 | uint16 | uint32 | uint64](c *codec) {
	c.freeze = func(f *freezer, p unsafe.Pointer) error { f.uint(uint64(*(*T)(p))); return nil }
	c.thaw = func(t *thawer, p unsafe.Pointer) error {
		n, err := t.uint()
		*(*T)(p) = T(n)
		return err
	}
}

func signed(c *codec) {
	c.freeze = func(f *freezer, p unsafe.Pointer) error {
		f.out = binary.AppendVarint(f.out, *(*int64)(p))
		return nil
	}
	c.thaw = func(t *thawer, p unsafe.Pointer) error {
		n, size := binary.Varint(t.in)
		if size <= 0 {
			return fmt.Errorf("%w: it ends early", ErrCorrupt)
		}
		t.in = t.in[size:]
		*(*int64)(p) = n
		return nil
	}
}

func float(c *codec) {
	c.freeze = func(f *freezer, p unsafe.Pointer) error {
		f.out = binary.LittleEndian.AppendUint64(f.out, math.Float64bits(*(*float64)(p)))
		return nil
	}
	c.thaw = func(t *thawer, p unsafe.Pointer) error {
		if len(t.in) < 8 {
			return fmt.Errorf("%w: it ends early", ErrCorrupt)
		}
		*(*float64)(p) = math.Float64frombits(binary.LittleEndian.Uint64(t.in))
		t.in = t.in[8:]
		return nil
	}
}

func timeCodec(c *codec) {
	c.freeze = func(f *freezer, p unsafe.Pointer) error {
		b, err := (*time.Time)(p).Round(0).MarshalBinary()
		f.uint(uint64(len(b)))
		f.out = append(f.out, b...)
		return err
	}
	c.thaw = func(t *thawer, p unsafe.Pointer) error {
		b, err := t.bytes()
		if err != nil {
			return err
		}
		return (*time.Time)(p).UnmarshalBinary(b)
	}
}

func (c *codec) ofStruct(t reflect.Type, made map[reflect.Type]*codec) error {
	type field struct {
		offset uintptr
		name   string
		codec  *codec
	}
	var fields []field
	for i := range t.NumField() {
		x := t.Field(i)
		if x.Tag.Get("snapshot") == "-" {
			continue
		}
		of, err := makeCodec(x.Type, made)
		if err != nil {
			return fmt.Errorf("%s.%s: %w", t, x.Name, err)
		}
		fields = append(fields, field{x.Offset, x.Name, of})
	}
	c.freeze = func(f *freezer, p unsafe.Pointer) error {
		for _, x := range fields {
			if err := x.codec.freeze(f, unsafe.Add(p, x.offset)); err != nil {
				return err
			}
		}
		return nil
	}
	c.thaw = func(in *thawer, p unsafe.Pointer) error {
		for _, x := range fields {
			if err := x.codec.thaw(in, unsafe.Add(p, x.offset)); err != nil {
				return err
			}
		}
		return nil
	}
	return nil
}

func (c *codec) ofArray(t reflect.Type, made map[reflect.Type]*codec) error {
	of, err := makeCodec(t.Elem(), made)
	n, size := t.Len(), t.Elem().Size()
	c.freeze = func(f *freezer, p unsafe.Pointer) error {
		for i := range n {
			if err := of.freeze(f, unsafe.Add(p, uintptr(i)*size)); err != nil {
				return err
			}
		}
		return nil
	}
	c.thaw = func(in *thawer, p unsafe.Pointer) error {
		for i := range n {
			if err := of.thaw(in, unsafe.Add(p, uintptr(i)*size)); err != nil {
				return err
			}
		}
		return nil
	}
	return err
}

// ofSlice writes a length and one more than it, so that nil is none.
func (c *codec) ofSlice(t reflect.Type, made map[reflect.Type]*codec) error {
	if t.Elem().Kind() == reflect.Uint8 {
		bytesCodec(c, t)
		return nil
	}
	of, err := makeCodec(t.Elem(), made)
	size := t.Elem().Size()
	c.freeze = func(f *freezer, p unsafe.Pointer) error {
		v := reflect.NewAt(t, p).Elem()
		if v.IsNil() {
			f.uint(0)
			return nil
		}
		n := v.Len()
		f.uint(uint64(n) + 1)
		f.extents.elements(t, v.UnsafePointer(), n)
		for i := range n {
			if err := of.freeze(f, unsafe.Add(v.UnsafePointer(), uintptr(i)*size)); err != nil {
				return err
			}
		}
		return nil
	}
	c.thaw = func(in *thawer, p unsafe.Pointer) error {
		n, err := in.elements(size)
		if err != nil || n < 0 {
			reflect.NewAt(t, p).Elem().SetZero()
			return err
		}
		v := reflect.MakeSlice(t, n, n)
		for i := range n {
			if err := of.thaw(in, unsafe.Add(v.UnsafePointer(), uintptr(i)*size)); err != nil {
				return err
			}
		}
		reflect.NewAt(t, p).Elem().Set(v)
		return nil
	}
	return err
}

func bytesCodec(c *codec, t reflect.Type) {
	c.freeze = func(f *freezer, p unsafe.Pointer) error {
		b := *(*[]byte)(p)
		if b == nil {
			f.uint(0)
			return nil
		}
		f.uint(uint64(len(b)) + 1)
		f.out = append(f.out, b...)
		f.extents.elements(t, unsafe.Pointer(unsafe.SliceData(b)), len(b))
		return nil
	}
	c.thaw = func(in *thawer, p unsafe.Pointer) error {
		n, err := in.elements(1)
		if err != nil || n < 0 {
			*(*[]byte)(p) = nil
			return err
		}
		if n > len(in.in) {
			return fmt.Errorf("%w: it ends early", ErrCorrupt)
		}
		*(*[]byte)(p) = append(make([]byte, 0, n), in.in[:n]...)
		in.in = in.in[n:]
		return nil
	}
}

// elements reads a number of elements of a size; it is -1 for a nil slice or map. Elements without a size take no
// bytes, so that they need no bound.
func (t *thawer) elements(size uintptr) (int, error) {
	n, err := t.uint()
	if err == nil && size > 0 && n > uint64(len(t.in))+1 {
		err = fmt.Errorf("%w: %d elements in %d bytes", ErrCorrupt, n-1, len(t.in))
	}
	return int(n) - 1, err
}
