package snapshot

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"reflect"
	"sync"
	"time"
	"unsafe"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/runtime/protoimpl"
)

// ErrCorrupt is returned for bytes that Freeze did not make of a state of these types.
var ErrCorrupt = errors.New("the frozen state is corrupt")

// Freeze gives the bytes of everything that can be reached from the roots, which are pointers. Pointers stay what
// they are: two to one object are two to one object again. The same state gives the same bytes. Fields tagged
// `snapshot:"-"` are left out. It is an error to reach a function, a channel or an interface (but for
// those that a left-out field holds), or one map in two ways; the error names where.
func Freeze(roots ...any) ([]byte, error) {
	f := &freezer{ids: map[object]uint64{}, maps: map[unsafe.Pointer]bool{}}
	for _, root := range roots {
		v := reflect.ValueOf(root)
		if v.Kind() != reflect.Pointer || v.IsNil() {
			return nil, fmt.Errorf("freeze %T: a root is a pointer to a state", root)
		}
		if err := f.pointer(v.Type(), v.UnsafePointer()); err != nil {
			return nil, err
		}
	}
	for len(f.waiting) > 0 {
		next := f.waiting[0]
		f.waiting = f.waiting[1:]
		if err := f.body(next); err != nil {
			return nil, err
		}
	}
	if err := f.extents.check(); err != nil {
		return nil, err
	}
	return f.out, nil
}

// Thaw fills states that are as new from what Freeze gave of states of the same types, in the same order. What a new
// state already points to is filled too, instead of being made: its fields that are left out stay as they are.
func Thaw(data []byte, roots ...any) (err error) {
	t := &thawer{in: data, filled: map[unsafe.Pointer]bool{}}
	defer func() {
		// Lengths are checked, but what a digest has vouched for is not checked for sense: a map with a key that
		// cannot be one, say.
		if r := recover(); r != nil {
			err = fmt.Errorf("%w: %v", ErrCorrupt, r)
		}
	}()
	for _, root := range roots {
		v := reflect.ValueOf(root)
		if v.Kind() != reflect.Pointer || v.IsNil() {
			return fmt.Errorf("thaw %T: a root is a pointer to a state", root)
		}
		p := v.UnsafePointer()
		if err := t.pointer(v.Type(), unsafe.Pointer(&p)); err != nil {
			return err
		}
	}
	for len(t.waiting) > 0 {
		next := t.waiting[0]
		t.waiting = t.waiting[1:]
		if err := t.body(next); err != nil {
			return err
		}
	}
	if len(t.in) > 0 {
		return fmt.Errorf("%w: %d bytes are left over", ErrCorrupt, len(t.in))
	}
	return nil
}

// object is what a pointer points to. One address may be of a struct and of its first field.
type object struct {
	kind reflect.Type // of the pointer
	at   unsafe.Pointer
}

type freezer struct {
	out []byte
	ids map[object]uint64
	// waiting are objects whose body is still to be written: breadth first, so that a list as long as the
	// memory takes no deep stack.
	waiting []object
	extents extents
	maps    map[unsafe.Pointer]bool
}

func (f *freezer) uint(n uint64) { f.out = binary.AppendUvarint(f.out, n) }

func (f *freezer) pointer(kind reflect.Type, at unsafe.Pointer) error {
	if at == nil {
		f.uint(0)
		return nil
	}
	o := object{kind, at}
	id, known := f.ids[o]
	if !known {
		id = uint64(len(f.ids)) + 1
		f.ids[o] = id
		f.waiting = append(f.waiting, o)
	}
	f.uint(id)
	return nil
}

func (f *freezer) body(o object) error {
	if isMessage(o.kind) {
		m := reflect.NewAt(o.kind.Elem(), o.at).Interface().(proto.Message)
		b, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
		if err != nil {
			return fmt.Errorf("freeze a %s: %w", m.ProtoReflect().Descriptor().FullName(), err)
		}
		f.uint(uint64(len(b)))
		f.out = append(f.out, b...)
		return nil
	}
	c, err := codecOf(o.kind.Elem())
	if err != nil {
		return err
	}
	f.extents.object(o.kind, o.at)
	return c.freeze(f, o.at)
}

type thawer struct {
	in []byte
	// known are the objects, by id less one.
	known   []object
	waiting []object
	// filled are the objects that were there already.
	filled map[unsafe.Pointer]bool
}

func (t *thawer) uint() (uint64, error) {
	n, size := binary.Uvarint(t.in)
	if size <= 0 {
		return 0, fmt.Errorf("%w: it ends early", ErrCorrupt)
	}
	t.in = t.in[size:]
	return n, nil
}

// length reads how many elements follow, each of at least one byte.
func (t *thawer) length() (int, error) {
	n, err := t.uint()
	if err == nil && n > uint64(len(t.in)) {
		err = fmt.Errorf("%w: %d elements in %d bytes", ErrCorrupt, n, len(t.in))
	}
	return int(n), err
}

func (t *thawer) bytes() ([]byte, error) {
	n, err := t.length()
	if err != nil {
		return nil, err
	}
	b := t.in[:n]
	t.in = t.in[n:]
	return b, nil
}

func (t *thawer) pointer(kind reflect.Type, into unsafe.Pointer) error {
	id, err := t.uint()
	switch {
	case err != nil:
		return err
	case id == 0:
		*(*unsafe.Pointer)(into) = nil
		return nil
	case id <= uint64(len(t.known)):
		o := t.known[id-1]
		if o.kind != kind {
			return fmt.Errorf("%w: a %s where a %s is wanted", ErrCorrupt, o.kind, kind)
		}
		*(*unsafe.Pointer)(into) = o.at
		return nil
	case id != uint64(len(t.known))+1:
		return fmt.Errorf("%w: object %d comes before %d", ErrCorrupt, id, len(t.known)+1)
	}
	at := *(*unsafe.Pointer)(into)
	if at == nil || t.filled[at] {
		at = reflect.New(kind.Elem()).UnsafePointer()
	} else {
		t.filled[at] = true
	}
	o := object{kind, at}
	t.known, t.waiting = append(t.known, o), append(t.waiting, o)
	*(*unsafe.Pointer)(into) = at
	return nil
}

func (t *thawer) body(o object) error {
	if isMessage(o.kind) {
		b, err := t.bytes()
		if err != nil {
			return err
		}
		return proto.Unmarshal(b, reflect.NewAt(o.kind.Elem(), o.at).Interface().(proto.Message))
	}
	c, err := codecOf(o.kind.Elem())
	if err != nil {
		return err
	}
	return c.thaw(t, o.at)
}

// isMessage says that pointers of a type are generated messages. A state that embeds one has its methods too, and is
// more than it.
func isMessage(t reflect.Type) bool {
	if t.Elem().Kind() != reflect.Struct || !t.Implements(messageType) {
		return false
	}
	for i := range t.Elem().NumField() {
		if t.Elem().Field(i).Type == generatedType {
			return true
		}
	}
	return false
}

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

func text(c *codec) {
	c.freeze = func(f *freezer, p unsafe.Pointer) error {
		s := *(*string)(p)
		f.uint(uint64(len(s)))
		f.out = append(f.out, s...)
		return nil
	}
	c.thaw = func(t *thawer, p unsafe.Pointer) error {
		b, err := t.bytes()
		*(*string)(p) = string(b)
		return err
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
