package snapshot

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"unsafe"
)

// entry is one of a map, with its key and the bytes by which it is sorted, or its key's object.
type entry struct {
	key   reflect.Value
	place string
	at    object
	id    uint64
	value reflect.Value
}

// ofMap writes entries in the order of their keys' bytes. Where keys are pointers they come in the order in which
// their objects were met, which is the state's own unless only this map leads to them.
func (c *codec) ofMap(t reflect.Type, made map[reflect.Type]*codec) error {
	if t.Key().Kind() != reflect.Pointer && holdsPointer(t.Key()) {
		return fmt.Errorf("a map cannot be frozen whose keys hold pointers (%s)", t)
	}
	keys, err := makeCodec(t.Key(), made)
	if err != nil {
		return err
	}
	values, err := makeCodec(t.Elem(), made)
	if err != nil {
		return err
	}
	c.freeze = func(f *freezer, p unsafe.Pointer) error {
		m := reflect.NewAt(t, p).Elem()
		if m.IsNil() {
			f.uint(0)
			return nil
		}
		if f.maps[m.UnsafePointer()] {
			return fmt.Errorf("a state cannot be frozen that reaches one %s in two ways: they would be thawed as two", t)
		}
		f.maps[m.UnsafePointer()] = true
		f.uint(uint64(m.Len()) + 1)
		entries, err := f.entries(m, keys)
		if err != nil {
			return err
		}
		for _, e := range entries {
			if e.at.kind != nil {
				if err := f.pointer(e.at.kind, e.at.at); err != nil {
					return err
				}
			}
			if e.at.kind == nil {
				if err := keys.freeze(f, e.key.UnsafePointer()); err != nil {
					return err
				}
			}
			if err := values.freeze(f, e.value.UnsafePointer()); err != nil {
				return err
			}
		}
		return nil
	}
	c.thaw = func(in *thawer, p unsafe.Pointer) error { return in.mapping(t, keys, values, p) }
	return nil
}

// entries lists a map's in the order in which they are written.
func (f *freezer) entries(m reflect.Value, keys *codec) ([]entry, error) {
	t := m.Type()
	entries := make([]entry, 0, m.Len())
	out, scratch := f.out, []byte{}
	defer func() { f.out, f.plain = out, false }()
	f.plain = true // the order must not hang on what was written before
	for it := m.MapRange(); it.Next(); {
		key := reflect.New(t.Key())
		key.Elem().SetIterKey(it)
		e := entry{key: key, value: reflect.New(t.Elem())}
		e.value.Elem().SetIterValue(it)
		if t.Key().Kind() == reflect.Pointer {
			e.at = object{t.Key(), key.Elem().UnsafePointer()}
			if e.id = f.ids[e.at]; e.id == 0 {
				e.id = ^uint64(0)
			}
		} else {
			f.out = scratch[:0]
			if err := keys.freeze(f, key.UnsafePointer()); err != nil {
				return nil, err
			}
			scratch = f.out
			e.place = string(f.out)
		}
		entries = append(entries, e)
	}
	slices.SortFunc(entries, func(a, b entry) int {
		return cmp.Or(cmp.Compare(a.id, b.id), strings.Compare(a.place, b.place))
	})
	return entries, nil
}

func (t *thawer) mapping(of reflect.Type, keys, values *codec, into unsafe.Pointer) error {
	n, err := t.elements(1)
	if err != nil || n < 0 {
		reflect.NewAt(of, into).Elem().SetZero()
		return err
	}
	m := reflect.MakeMapWithSize(of, n)
	for range n {
		key, value := reflect.New(of.Key()), reflect.New(of.Elem())
		if err := keys.thaw(t, key.UnsafePointer()); err != nil {
			return err
		}
		if err := values.thaw(t, value.UnsafePointer()); err != nil {
			return err
		}
		m.SetMapIndex(key.Elem(), value.Elem())
	}
	reflect.NewAt(of, into).Elem().Set(m)
	return nil
}

// holdsPointer says that a key of this type is not known by its bytes alone.
func holdsPointer(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Pointer:
		return true
	case reflect.Array:
		return holdsPointer(t.Elem())
	case reflect.Struct:
		for i := range t.NumField() {
			if holdsPointer(t.Field(i).Type) {
				return true
			}
		}
	}
	return false
}
