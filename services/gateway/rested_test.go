package gateway

import (
	"testing"
	"testing/synctest"
	"time"
)

// place is a lock for a test whose clock stands still while somebody waits for a mutex.
type place chan struct{}

func (p place) Lock()   { p <- struct{}{} }
func (p place) Unlock() { <-p }

// TestReadersLeaveHalfOfTheTimeToTheLog: whoever reads a long queue again and again kept it from being folded.
func TestReadersLeaveHalfOfTheTimeToTheLog(t *testing.T) {
	const takes = 50 * time.Millisecond
	for _, c := range []struct {
		heldUp bool
		want   time.Duration
	}{{false, 9 * takes}, {true, 18 * takes}} {
		synctest.Test(t, func(t *testing.T) {
			r, start, order := newRested(make(place, 1)), time.Now(), make(chan time.Duration, 10)
			for range 10 {
				go r.do(func() {
					order <- time.Since(start)
					time.Sleep(takes)
					r.heldUp.Store(c.heldUp)
				})
			}
			var last time.Duration
			for range 10 {
				last = <-order
			}
			if last != c.want {
				t.Errorf("held up %v: the last of ten began after %v, want %v", c.heldUp, last, c.want)
			}
			time.Sleep(2 * takes)
		})
	}
}

// TestAReaderRestsOnlyForAsLongAsItKeptOthersWaiting: one that waited itself, while the log was folded, rested as long again.
func TestAReaderRestsOnlyForAsLongAsItKeptOthersWaiting(t *testing.T) {
	const takes = 50 * time.Millisecond
	synctest.Test(t, func(t *testing.T) {
		lock := make(place, 1)
		r, start, order := newRested(lock), time.Now(), make(chan time.Duration, 2)
		lock.Lock()
		for range 2 {
			go r.do(func() {
				order <- time.Since(start)
				time.Sleep(takes)
				r.heldUp.Store(true)
			})
		}
		time.Sleep(time.Hour)
		lock.Unlock()
		<-order
		if last := <-order; last != time.Hour+2*takes {
			t.Errorf("the second one began after %v, want %v", last, time.Hour+2*takes)
		}
		time.Sleep(2 * takes)
	})
}
