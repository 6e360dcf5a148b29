package recent_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"landfall.build/services/profiler/recent"
	"landfall.build/services/snapshot"
)

// TestWhatWasTouchedLastIsKept: the twin is a list, searched from end to end.
func TestWhatWasTouchedLastIsKept(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	type entry struct {
		key   string
		count int
	}
	forgotten := 0
	for range 50 {
		most := 1 + random.IntN(12)
		keys := recent.New[int](most)
		var list []entry
		for step := range 400 {
			key := fmt.Sprint(random.IntN(20))
			at := slices.IndexFunc(list, func(e entry) bool { return e.key == key })
			if random.IntN(3) == 0 {
				// Looking changes nothing.
				got := keys.Look(key)
				if (got == nil) != (at < 0) || got != nil && *got != list[at].count {
					t.Fatalf("step %d: %v of %s, the list is %v", step, got, key, list)
				}
				continue
			}
			e := entry{key: key}
			if at >= 0 {
				e = list[at]
				list = slices.Delete(list, at, at+1)
			} else if len(list) == most {
				list = slices.Delete(list, 0, 1)
				forgotten++
			}
			e.count++
			list = append(list, e)
			if *keys.Touch(key)++; *keys.Look(key) != e.count {
				t.Fatalf("step %d: %d of %s, want %d", step, *keys.Look(key), key, e.count)
			}
		}
		// A snapshot of it goes on as it does.
		frozen, err := snapshot.Freeze(keys)
		if err != nil {
			t.Fatal(err)
		}
		thawed := recent.New[int](most)
		if err := snapshot.Thaw(frozen, thawed); err != nil {
			t.Fatal(err)
		}
		for range 40 {
			key := fmt.Sprint(random.IntN(20))
			if a, b := *keys.Touch(key), *thawed.Touch(key); a != b {
				t.Fatalf("%d of %s, in a snapshot %d", a, key, b)
			}
		}
	}
	if forgotten == 0 {
		t.Error("nothing was forgotten; the test shows nothing")
	}
}
