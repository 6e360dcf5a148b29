package builder

import (
	"sync"

	"landfall.build/services/builder/work"
)

// floor is what the followers have folded and the workers look at. Its lock is held for moments only.
type floor struct {
	mu     sync.Mutex
	queues map[string]*work.Queue
	// names are the queues in the order in which they were first seen.
	names []string
	// builds is, by partition, the offset up to which landfall.builds is folded.
	builds map[int32]int64
	// live are the partitions that have been read up to where the log ended at the start.
	live map[int32]bool
	// changed is closed, and replaced, whenever something above has changed.
	changed chan struct{}
}

func newFloor() *floor {
	return &floor{queues: map[string]*work.Queue{}, builds: map[int32]int64{}, live: map[int32]bool{}, changed: make(chan struct{})}
}

// queue is a queue's state, made if there is none. The lock must be held.
func (f *floor) queue(name string) *work.Queue {
	q := f.queues[name]
	if q == nil {
		q = work.New()
		f.queues[name] = q
		f.names = append(f.names, name)
	}
	return q
}

// look runs a function under the lock and returns the channel that is closed at the next change.
func (f *floor) look(at func()) <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	at()
	return f.changed
}

// change runs a function under the lock and wakes all who wait for a change.
func (f *floor) change(what func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	what()
	f.wakeLocked()
}

func (f *floor) wakeLocked() {
	close(f.changed)
	f.changed = make(chan struct{})
}
