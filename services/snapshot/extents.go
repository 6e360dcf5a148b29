package snapshot

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"unsafe"
)

// extents are the places in memory of what was frozen. A pointer into the middle of something that is frozen by
// itself would be thawed as a pointer to a copy.
type extents []extent

type extent struct {
	from, to uintptr
	// shared says that others may lie in it: slices of one array.
	shared bool
	of     reflect.Type
}

func (e *extents) object(kind reflect.Type, at unsafe.Pointer) {
	if size := kind.Elem().Size(); size > 0 {
		*e = append(*e, extent{uintptr(at), uintptr(at) + size, false, kind})
	}
}

func (e *extents) elements(of reflect.Type, at unsafe.Pointer, n int) {
	if size := of.Elem().Size() * uintptr(n); size > 0 {
		*e = append(*e, extent{uintptr(at), uintptr(at) + size, true, of})
	}
}

func (e extents) check() error {
	slices.SortFunc(e, func(a, b extent) int { return cmp.Compare(a.from, b.from) })
	var before extent
	for _, x := range e {
		if x.from < before.to && !(x.shared && before.shared) {
			return fmt.Errorf("a state cannot be frozen in which a %s and a %s are parts of one another", before.of, x.of)
		}
		if x.to > before.to {
			before = x
		}
	}
	return nil
}
