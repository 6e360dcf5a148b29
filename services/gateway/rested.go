package gateway

import (
	"sync"
	"sync/atomic"
	"time"
)

// restAbove is the time above which work is followed by a rest.
const restAbove = time.Millisecond

// rested runs functions one after the other under a lock, in the order of the calls of do. If another goroutine waited for the lock during
// a function, rested leaves the lock free afterwards for as long as the function ran.
type rested struct {
	lock   sync.Locker
	free   chan struct{}
	heldUp atomic.Bool
}

func newRested(lock sync.Locker) *rested { return &rested{lock: lock, free: make(chan struct{}, 1)} }

// do calls f in its turn, and returns before the rest. Time spent waiting for the lock does not count as run time.
func (r *rested) do(f func()) {
	r.free <- struct{}{}
	r.lock.Lock()
	began := time.Now()
	defer func() {
		r.lock.Unlock()
		if took := time.Since(began); r.heldUp.Swap(false) && took > restAbove {
			time.AfterFunc(took, func() { <-r.free })
		} else {
			<-r.free
		}
	}()
	f()
}
