package gateway

import (
	"sync"
	"sync/atomic"
	"time"
)

// restAbove is the time above which work is followed by a rest.
const restAbove = time.Millisecond

// rested runs functions one after the other under a lock, in the order in which they are asked for. If somebody else waited for the lock
// meanwhile, it then leaves the lock alone for as long as the function ran, so that half of the time is theirs.
type rested struct {
	lock   sync.Locker
	free   chan struct{}
	heldUp atomic.Bool
}

func newRested(lock sync.Locker) *rested { return &rested{lock: lock, free: make(chan struct{}, 1)} }

// do calls f in its turn, and returns before the rest. The time that it waits for the lock is no time for which it rests.
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
