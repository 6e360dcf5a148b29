package builder

import (
	"sync"
	"time"
)

// fitness is that of all workers of a process. What keeps one of them from running steps, a full disk say, keeps the others
// too, and they would use up the retries of every step there is.
type fitness struct {
	mu sync.Mutex
	// failures in a row that were no step's own; the workers rest longer after each.
	failures int
	until    time.Time
}

// failed makes all workers rest.
func (h *fitness) failed(now time.Time) {
	const first, longest = 250 * time.Millisecond, 30 * time.Second
	h.mu.Lock()
	defer h.mu.Unlock()
	h.until = now.Add(min(first<<min(h.failures, 10), longest))
	h.failures++
}

// well notes that a worker could do its part.
func (h *fitness) well() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.failures = 0
}

// rest returns for how long no worker takes a step.
func (h *fitness) rest(now time.Time) time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	return max(0, h.until.Sub(now))
}
