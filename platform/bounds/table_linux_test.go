package bounds

import (
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

func FuzzProcessNamesDoNotMisleadTheTable(f *testing.F) {
	f.Add("sh")
	f.Add("0) S 1 1 1 (")
	f.Add(") Z 1 1 1")
	f.Fuzz(func(t *testing.T, name string) {
		got, ok := parseStat(5, []byte("5 ("+name+") S 41 42 43 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 9 0 100 4096 3 18446744073709551615"))
		if strings.ContainsRune(name, ')') && !ok {
			t.Fatalf("%q hides its process", name)
		}
		if want := (Process{PID: 5, Parent: 41, Session: 43, Threads: 9, Resident: 3 * int64(os.Getpagesize())}); !ok || got != want {
			t.Fatalf("got %+v, %v", got, ok)
		}
		_, _ = parseStat(5, []byte(name))
	})
}

func TestDescendantsEqualThoseWhoseAncestorsReachTheRoot(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	for range 500 {
		count := 1 + random.IntN(20)
		parents := map[int]int{}
		var table []Process
		for pid := 1; pid <= count; pid++ {
			// Any parent at all: a table that was read while it changed can
			// have holes and even circles.
			parents[pid] = random.IntN(count + 2)
			table = append(table, Process{PID: pid, Parent: parents[pid]})
		}
		root := 1 + random.IntN(count)
		var want []int
		for pid := 1; pid <= count; pid++ {
			ancestor := pid
			for range count {
				ancestor = parents[ancestor]
				if ancestor == root && pid != root {
					want = append(want, pid)
					break
				}
			}
		}
		var got []int
		for _, p := range Below(root, table) {
			got = append(got, p.PID)
		}
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Fatalf("below %d of %v: got %v, want %v", root, table, got, want)
		}
	}
}
