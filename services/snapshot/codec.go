package snapshot

import (
	"encoding/binary"
	"errors"
	"fmt"
	"reflect"
	"unsafe"

	"google.golang.org/protobuf/proto"
)

// ErrCorrupt is returned for bytes that Freeze did not make of a state of these types.
var ErrCorrupt = errors.New("the frozen state is corrupt")

// Freeze gives the bytes of everything that can be reached from the roots, which are pointers. Pointers stay what
// they are: two to one object are two to one object again. The same state gives the same bytes. Fields tagged
// `snapshot:"-"` are left out. It is an error to reach a function, a channel or an interface (but for
// those that a left-out field holds), or one map in two ways; the error names where.
func Freeze(roots ...any) ([]byte, error) {
	f := &freezer{ids: map[object]uint64{}, maps: map[unsafe.Pointer]bool{}, texts: map[string]uint64{}}
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
	// texts are the strings that were written, by content; plain says that they are written as they are all the same.
	texts map[string]uint64
	plain bool
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
	texts  []string
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
