package builder

import (
	"sync"
	"time"
)

// fitness is whether the workers of a process can run steps. What keeps one of them from it, such as a full disk, keeps the
// others from it too; without a rest they would use up the retries of all steps.
type fitness struct {
	mu sync.Mutex
	// failures is how many attempts in a row failed by the worker's fault; the workers rest longer after each, until a time.
	failures int
	until    time.Time
}

// failed makes all workers rest.
func (f *fitness) failed(now time.Time) {
	const first, longest = 250 * time.Millisecond, 30 * time.Second
	f.mu.Lock()
	defer f.mu.Unlock()
	f.until = now.Add(min(first<<min(f.failures, 10), longest))
	f.failures++
}

// succeeded notes that an attempt did not fail by the worker's fault.
func (f *fitness) succeeded() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.failures = 0
}

// rest returns for how long no worker takes a step from now on.
func (f *fitness) rest(now time.Time) time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	return max(0, f.until.Sub(now))
}
