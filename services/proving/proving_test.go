package proving

import (
	"flag"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
)

var (
	seed      = flag.Uint64("proving.seed", 1, "first seed of the random schedules")
	schedules = flag.Int("proving.schedules", 10_000, "number of random schedules")
	trace     = flag.Bool("proving.trace", false, "print the log of the first schedule")
)

// TestRandomSchedulesKeepThePromises goes through random histories with the production cores.
func TestRandomSchedulesKeepThePromises(t *testing.T) {
	n := *schedules
	if testing.Short() {
		n = min(n, 1000)
	}
	t.Logf("seed %d, %d schedules", *seed, n)
	if *trace {
		tally, wrong := Run(Options{Seed: *seed, Trace: func(s string) { fmt.Println(s) }})
		t.Logf("%+v %v", tally, wrong)
		if len(wrong) > 0 {
			t.Fail()
		}
		return
	}
	var total Tally
	var mu sync.Mutex
	var next atomic.Uint64
	var failed atomic.Int32
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for {
				i := next.Add(1) - 1
				if i >= uint64(n) || failed.Load() > 5 {
					return
				}
				tally, wrong := Run(Options{Seed: *seed + i})
				mu.Lock()
				total.Add(tally)
				if len(wrong) > 0 {
					failed.Add(1)
					t.Errorf("seed %d: %v\nshrunk: %s", *seed+i, wrong, shrink(*seed+i))
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	t.Logf("%+v", total)
	if n >= 1000 && (total.Bypasses == 0 || total.Refusals == 0 || total.EarlyRejections == 0 || total.Crashes == 0) {
		t.Errorf("the schedules went through too little: %+v", total)
	}
}

// shrink drops the operations that a failure does not need.
func shrink(seed uint64) string {
	without := map[int]bool{}
	for i := range 60 {
		without[i] = true
		if _, wrong := Run(Options{Seed: seed, Without: without}); len(wrong) == 0 {
			delete(without, i)
		}
	}
	_, wrong := Run(Options{Seed: seed, Without: without})
	return fmt.Sprintf("without %v: %v", without, wrong)
}
