// Package snapshottest holds a restored state to the one that its snapshot was taken of, field by field, unexported ones
// included. So a field that is in no message of the snapshot fails a test.
package snapshottest

import (
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
)

// Fields compares states and remembers which fields were set in any of them: a field that never was shows nothing.
type Fields struct {
	t   testing.TB
	set map[string]bool
	// pairs has, for each pointer of the state at hand, the one that stands for it in the restored state.
	pairs map[uintptr]uintptr
}

// New compares nothing yet. Call Done at the end of the test.
func New(t testing.TB) *Fields { return &Fields{t: t, set: map[string]bool{}} }

// Same fails the test if got, a restored state, differs from want. Both are pointers. Fields tagged `snapshot:"-"` are left
// out, and so are those tagged `snapshot:"index"`, which Restore makes again in an order or a numbering of its own. Pointers
// to one object have to be pointers to one object in got; nil and empty slices and maps are the same.
func (f *Fields) Same(want, got any) {
	f.t.Helper()
	if difference := f.Difference(want, got); difference != "" {
		f.t.Fatalf("the restored state differs: %s", difference)
	}
}

// Difference returns where got differs from want, "" if it does not; see Same.
func (f *Fields) Difference(want, got any) string {
	f.pairs = map[uintptr]uintptr{}
	return f.compare(reflect.ValueOf(want), reflect.ValueOf(got), "state")
}

// Difference returns where got differs from want, "" if it does not; see Fields.Same.
func Difference(want, got any) string {
	return (&Fields{set: map[string]bool{}}).Difference(want, got)
}

// ThroughBytes returns a message that was written and read again: what is in no field of it is lost.
func ThroughBytes[M proto.Message](t testing.TB, m M) M {
	t.Helper()
	bytes, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	read := m.ProtoReflect().New().Interface().(M)
	if err := proto.Unmarshal(bytes, read); err != nil {
		t.Fatal(err)
	}
	return read
}

// Done fails the test for every field that was not set in any state: nothing shows that the snapshot holds it. If packages
// are named, only their fields have to be set: states of other packages have tests of their own.
func (f *Fields) Done(packages ...string) {
	f.t.Helper()
	for _, name := range f.Missing(packages...) {
		f.t.Errorf("%s was never set: draw states that have it, or tag it `snapshot:\"-\"` and say where it is made", name)
	}
}

// Missing lists the fields that have not been set so far, of all packages unless some are named.
func (f *Fields) Missing(packages ...string) (names []string) {
	for _, name := range slices.Sorted(maps.Keys(f.set)) {
		of, _, _ := strings.Cut(name, ".")
		if !f.set[name] && (len(packages) == 0 || slices.Contains(packages, of)) {
			names = append(names, name)
		}
	}
	return names
}

func (f *Fields) compare(a, b reflect.Value, at string) string {
	if a.IsValid() != b.IsValid() {
		return fmt.Sprintf("%s is there in one of them alone", at)
	}
	if !a.IsValid() {
		return ""
	}
	if a.Type() != b.Type() {
		return fmt.Sprintf("%s is a %v, was a %v", at, b.Type(), a.Type())
	}
	switch a.Kind() {
	case reflect.Pointer:
		return f.pointers(a, b, at)
	case reflect.Interface:
		return f.compare(a.Elem(), b.Elem(), at)
	case reflect.Struct:
		return f.structs(a, b, at)
	case reflect.Slice, reflect.Array:
		if a.Len() != b.Len() {
			return fmt.Sprintf("%s has %d elements, had %d", at, b.Len(), a.Len())
		}
		for i := range a.Len() {
			if d := f.compare(a.Index(i), b.Index(i), fmt.Sprintf("%s[%d]", at, i)); d != "" {
				return d
			}
		}
		return ""
	case reflect.Map:
		if a.Len() != b.Len() {
			return fmt.Sprintf("%s has %d keys, had %d", at, b.Len(), a.Len())
		}
		for keys := a.MapRange(); keys.Next(); {
			if d := f.compare(keys.Value(), b.MapIndex(keys.Key()), fmt.Sprintf("%s[%v]", at, keys.Key())); d != "" {
				return d
			}
		}
		return ""
	case reflect.Func, reflect.Chan, reflect.UnsafePointer:
		return fmt.Sprintf("%s is a %v: tag it `snapshot:\"-\"`", at, a.Kind())
	case reflect.Float32, reflect.Float64:
		if math.Float64bits(a.Float()) != math.Float64bits(b.Float()) {
			return fmt.Sprintf("%s is %v, was %v", at, b, a)
		}
		return ""
	}
	if !a.Equal(b) {
		return fmt.Sprintf("%s is %v, was %v", at, b, a)
	}
	return ""
}

var message = reflect.TypeFor[proto.Message]()

func (f *Fields) pointers(a, b reflect.Value, at string) string {
	if a.IsNil() || b.IsNil() {
		if a.IsNil() != b.IsNil() {
			return fmt.Sprintf("%s is nil in one of them alone", at)
		}
		return ""
	}
	if a.Type().Implements(message) {
		x, y := reflect.NewAt(a.Type().Elem(), a.UnsafePointer()), reflect.NewAt(b.Type().Elem(), b.UnsafePointer())
		if !proto.Equal(x.Interface().(proto.Message), y.Interface().(proto.Message)) {
			return fmt.Sprintf("%s is %v, was %v", at, y, x)
		}
		return ""
	}
	if paired, seen := f.pairs[a.Pointer()]; seen && a.Type().Elem().Size() > 0 {
		if paired != b.Pointer() {
			return fmt.Sprintf("%s points to an object of its own, and was shared", at)
		}
		return ""
	}
	f.pairs[a.Pointer()] = b.Pointer()
	return f.compare(a.Elem(), b.Elem(), at)
}

func (f *Fields) structs(a, b reflect.Value, at string) string {
	ours := strings.HasPrefix(a.Type().PkgPath(), "landfall.build/")
	for i := range a.NumField() {
		field := a.Type().Field(i)
		if tag := field.Tag.Get("snapshot"); tag == "-" || tag == "index" {
			continue
		}
		if ours {
			name := a.Type().String() + "." + field.Name
			f.set[name] = f.set[name] || !a.Field(i).IsZero()
		}
		if d := f.compare(a.Field(i), b.Field(i), at+"."+field.Name); d != "" {
			return d
		}
	}
	return ""
}
