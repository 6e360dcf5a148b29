package speculation

import (
	"fmt"
	"runtime"
	"testing"

	"landfall.build/engine/targets"
)

// TestAConflictKeepsFewOfTheTargetsInWhichTwoMeet: there is one of each two changes of a hub, and each may affect 200,000 targets.
func TestAConflictKeepsFewOfTheTargetsInWhichTwoMeet(t *testing.T) {
	const pairs = 20
	touched := make([]string, 100_000)
	for i := range touched {
		touched[i] = fmt.Sprintf("//t%06d", i)
	}
	a, b := &analysis{footprint: targets.Footprint{Touched: touched}}, &analysis{footprint: targets.Footprint{Touched: touched}}
	allocated := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before, kept := allocated(), make([]*relation, pairs)
	for i := range kept {
		kept[i] = relate(a, b, nil)
	}
	if each := int64(allocated()-before) / pairs; each > 4096 {
		t.Errorf("a conflict keeps %d bytes", each)
	}
	if n := len(kept[0].shared); n != 8 {
		t.Errorf("a conflict names %d targets", n)
	}
}
