package builder

import (
	"sync"

	"landfall.build/engine/steps"
)

// shared is what the followers have folded and the workers read. mu is held for moments only.
type shared struct {
	mu     sync.Mutex
	queues map[string]*steps.Queue
	// names holds the queues in the order in which they were first seen.
	names []string
	// builds has, by partition, the offset up to which landfall.builds is folded.
	builds map[int32]int64
	// live holds the partitions that have been read up to where the log ended at the start.
	live map[int32]bool
	// changed is closed, and replaced, whenever something above has changed.
	changed chan struct{}
}

func newShared() *shared {
	return &shared{queues: map[string]*steps.Queue{}, builds: map[int32]int64{}, live: map[int32]bool{}, changed: make(chan struct{})}
}

// queue returns a queue's state, and makes it if there is none. mu must be held.
func (s *shared) queue(name string) *steps.Queue {
	q := s.queues[name]
	if q == nil {
		q = steps.New()
		s.queues[name] = q
		s.names = append(s.names, name)
	}
	return q
}

// read runs a function under the lock, and returns the channel that is closed at the next change.
func (s *shared) read(f func()) <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
	return s.changed
}

// update runs a function under the lock, and wakes all who wait for a change.
func (s *shared) update(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
	s.notifyLocked()
}

func (s *shared) notifyLocked() {
	close(s.changed)
	s.changed = make(chan struct{})
}
