package proof

import (
	"flag"
	"fmt"
	"runtime/debug"
	"strings"
	"testing"
	"time"
)

var (
	seed      = flag.Uint64("proof.seed", 1, "first seed of the random schedules")
	schedules = flag.Int("proof.schedules", 10_000, "number of random schedules")
	trace     = flag.Bool("proof.trace", false, "print the log of the first schedule, and no other")
	without   = flag.String("proof.without", "", "operations and troubles that the schedules go without, separated by commas")
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
	total, failures := Campaign{Options: Options{Seed: *seed, Without: left}, Schedules: n, MaxFailures: maxFailures}.Run(t.Context())
	for _, f := range failures {
		t.Error(f.Shrink(time.Now().Add(5 * time.Second)).Report())
	}
	t.Logf("%v", total)
	if missing := total.Missing(); n >= 1000 && len(left) == 0 && len(missing) > 0 {
		t.Errorf("the schedules went through too little: there were no %v", missing)
	}
}
