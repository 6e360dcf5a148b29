package proof

import (
	"flag"
	"fmt"
	"os"
	"runtime/debug"
	"strings"
	"testing"
	"time"
)

var (
	seed      = flag.Uint64("proof.seed", 1, "first seed of the random schedules")
	schedules = flag.Int("proof.schedules", 0, "number of random schedules (default 3,000; 10,000 with LANDFALL_TEST_SLOW)")
	trace     = flag.Bool("proof.trace", false, "print the log of the first schedule, and no other")
	without   = flag.String("proof.without", "", "operations and troubles that the schedules go without, separated by commas")
)

// maxFailures ends a test that fails all over.
const maxFailures = 5

// firstSchedules are enough to go through every trouble.
const firstSchedules = 1000

// scheduled is how many schedules are to run.
func scheduled() int {
	switch {
	case *schedules > 0:
		return *schedules
	case os.Getenv("LANDFALL_TEST_SLOW") != "":
		return 10_000
	}
	return 3_000
}

// TestRandomSchedulesKeepThePromises goes through random histories with the production cores. make test leaves all but the
// first to make long-test.
func TestRandomSchedulesKeepThePromises(t *testing.T) {
	n := scheduled()
	if testing.Short() {
		n = min(n, firstSchedules)
	}
	left := map[string]bool{}
	if *without != "" {
		for _, name := range strings.Split(*without, ",") {
			left[name] = true
		}
	}
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
	first := min(n, firstSchedules)
	for _, part := range []struct {
		name string
		seed uint64
		n    int
	}{{"first", *seed, first}, {"others", *seed + uint64(first), n - first}} {
		if part.n == 0 {
			continue
		}
		t.Run(part.name, func(t *testing.T) {
			t.Logf("seed %d, %d schedules", part.seed, part.n)
			total, failures := Campaign{Options: Options{Seed: part.seed, Without: left}, Schedules: part.n, MaxFailures: maxFailures}.Run(t.Context())
			for _, f := range failures {
				t.Error(f.Shrink(time.Now().Add(5 * time.Second)).Report())
			}
			t.Logf("%v", total)
			if missing := total.Missing(); part.n >= firstSchedules && len(left) == 0 && len(missing) > 0 {
				t.Errorf("the schedules went through too little: there were no %v", missing)
			}
		})
	}
}
