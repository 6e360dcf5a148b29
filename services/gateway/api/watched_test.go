package api

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"landfall.build/services/gateway/view"
)

// still is a backend in which nothing happens.
type still struct {
	Backend
	view *view.Queue
}

func (s still) Queues() []string { return []string{"main"} }

func (s still) Changed(string) <-chan struct{} { return nil }

func (s still) Read(_ string, f func(*view.Queue)) bool { f(s.view); return true }

// newStill returns what serves those who watch, and counts how often the part queue is made.
func newStill() (w *watched, made *int) {
	made = new(int)
	return newWatched(&handler{boot: "boot", Options: Options{Backend: still{view: view.New("main", view.Limits{})}, Lists: &Lists{}, Clock: func() time.Time {
		*made++
		return time.Now()
	}}}), made
}

// TestWhoJoinsHasNoPartOfOthersMadeAgain: that kept everybody else waiting, who wanted to watch, for as long as one caller came again and again.
func TestWhoJoinsHasNoPartOfOthersMadeAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, made := newStill()
		queue := partKey{PartQueue, "main", ""}
		w.join([]partKey{queue})
		synctest.Wait()
		before := *made
		for i := range 50 {
			keys := []partKey{queue, {PartChange, "main", fmt.Sprint(i)}}
			w.join(keys)
			if batch, _, _ := w.next(keys[1:], place{}); len(batch) == 0 {
				t.Fatalf("watcher %d has nothing", i)
			}
		}
		if synctest.Wait(); *made != before {
			t.Errorf("the queue was made %d times for 50 who wanted other parts", *made-before)
		}
		w.leave([]partKey{queue})
		for i := range 50 {
			w.leave([]partKey{queue, {PartChange, "main", fmt.Sprint(i)}})
		}
		time.Sleep(time.Hour)
	})
}

// TestWhoComesAndGoesLeavesFewPartsBehind though they are kept up for those who come back.
func TestWhoComesAndGoesLeavesFewPartsBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, _ := newStill()
		stays := []partKey{{PartChange, "main", "1"}, {PartChange, "main", "stays"}}
		w.join(stays)
		for i := range 1000 {
			keys := []partKey{{PartQueue, "main", ""}, {PartChange, "main", fmt.Sprint(i)}}
			w.join(keys)
			w.leave(keys)
		}
		if got := len(w.parts); got > 210 {
			t.Errorf("%d parts are kept up, and two are watched", got)
		}
		if batch, _, _ := w.next(stays, place{}); len(batch) == 0 {
			t.Error("who stays has nothing")
		}
		w.leave(stays)
		time.Sleep(time.Hour)
		if len(w.parts) > 0 {
			t.Errorf("%d parts are left", len(w.parts))
		}
	})
}
