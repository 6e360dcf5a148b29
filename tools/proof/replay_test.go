package proof

import (
	"fmt"
	"sync"
	"testing"

	"landfall.build/tools/replay/recompute"
)

// verifiedOf says which part of the schedules is held against the cores again: running them a second time takes a
// third of what the schedule took.
const verifiedOf = 20

// TestEveryRecordOfTheSchedulesIsWhatTheCoresSay runs the cores again over the logs of random schedules. It goes
// without the two troubles that write what one version of the code does not say: several versions, and records that
// are made large by padding.
func TestEveryRecordOfTheSchedulesIsWhatTheCoresSay(t *testing.T) {
	n := max(1, scheduled()/verifiedOf)
	t.Logf("seed %d, %d schedules", *seed, n)
	var mu sync.Mutex
	var compared, silent, stale int64
	wrong := 0
	done := func(s *schedule) {
		r, err := recompute.Verify(t.Context(), recompute.Options{Log: s.m.log, AllVersions: true, Workers: 1})
		if err == nil {
			err = r.Err()
		}
		mu.Lock()
		defer mu.Unlock()
		if err != nil {
			if wrong++; wrong <= maxFailures {
				t.Error(fmt.Errorf("seed %d: %w", s.o.Seed, err))
			}
			return
		}
		compared += r.Compared()
		for _, x := range r.Services {
			silent, stale = silent+x.Silent, stale+x.NotCounted
		}
	}
	Campaign{Options: Options{Seed: *seed, Without: map[string]bool{"versions": true, "large records": true}, Done: done}, Schedules: n}.Run(t.Context())
	t.Logf("%d records compared, %d silences, %d records of stale instances; %d schedules are wrong", compared, silent, stale, wrong)
	if wrong == 0 && (compared < int64(n) || n >= 100 && (silent == 0 || stale == 0)) {
		t.Error("too little was compared")
	}
}
