package proving

import (
	"flag"
	"fmt"
	"maps"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

var (
	seed      = flag.Uint64("proving.seed", 1, "first seed of the random schedules")
	schedules = flag.Int("proving.schedules", 10_000, "number of random schedules")
	trace     = flag.Bool("proving.trace", false, "print the log of the first schedule, and no other")
	without   = flag.String("proving.without", "", "operations and troubles that the schedules go without, separated by commas")
)

// maxFailures ends a test that fails all over.
const maxFailures = 5

// TestRandomSchedulesKeepThePromises goes through random histories with the production cores.
func TestRandomSchedulesKeepThePromises(t *testing.T) {
	n := *schedules
	if testing.Short() {
		n = min(n, 1000)
	}
	left := map[string]bool{}
	if *without != "" {
		for _, name := range strings.Split(*without, ",") {
			left[name] = true
		}
	}
	t.Logf("seed %d, %d schedules", *seed, n)
	if *trace {
		tally, wrong := Run(Options{Seed: *seed, Without: left, Trace: func(s string) { fmt.Println(s) }})
		t.Logf("%v", tally)
		if len(wrong) > 0 {
			t.Errorf("seed %d: %v", *seed, wrong)
		}
		return
	}
	// A schedule is gone as a whole: there is little worth collecting while it runs.
	defer debug.SetGCPercent(debug.SetGCPercent(800))
	var total Tally
	var mu sync.Mutex
	var next, failed atomic.Uint64
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for i := next.Add(1) - 1; i < uint64(n) && failed.Load() < maxFailures; i = next.Add(1) - 1 {
				o := Options{Seed: *seed + i, Without: left}
				tally, wrong := Run(o)
				mu.Lock()
				total.Add(tally)
				mu.Unlock()
				if len(wrong) > 0 {
					failed.Add(1)
					t.Error(report(o, wrong))
				}
			}
		})
	}
	wg.Wait()
	t.Logf("%v", total)
	if missing := total.Missing(); n >= 1000 && len(left) == 0 && len(missing) > 0 {
		t.Errorf("the schedules went through too little: there were no %v", missing)
	}
}

// report says how to see the failure again, with as little else as can be found in a few seconds.
func report(o Options, wrong []string) string {
	o, wrong = shrink(o, wrong, time.Now().Add(5*time.Second))
	line := fmt.Sprintf("go test ./proving -run RandomSchedules -proving.trace -proving.seed=%d", o.Seed)
	if len(o.Without) > 0 {
		line += fmt.Sprintf(" -proving.without=%q", strings.Join(slices.Sorted(maps.Keys(o.Without)), ","))
	}
	return fmt.Sprintf("seed %d: %s\nto see it again: %s", o.Seed, strings.Join(wrong, "; "), line)
}

// shrink leaves out what a failure does not need, until a moment. A schedule that does not come to rest is
// given less time for it meanwhile.
func shrink(full Options, wrong []string, until time.Time) (Options, []string) {
	o := full
	o.Ticks, o.Without = 4000, map[string]bool{}
	maps.Copy(o.Without, full.Without)
	for _, name := range append(slices.Clone(troubles), Names(o)...) {
		if o.Without[name] {
			continue
		}
		o.Without[name] = true
		if _, still := Run(o); len(still) == 0 {
			delete(o.Without, name)
		}
		if time.Now().After(until) {
			break
		}
	}
	o.Ticks = 0
	if _, still := Run(o); len(still) > 0 {
		return o, still
	}
	return full, wrong
}
