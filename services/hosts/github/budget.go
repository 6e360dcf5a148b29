package github

import (
	"sync"
	"time"
)

// weight says how much something to be written matters: what is lighter leaves room for what is heavier.
type weight int

// Weights.
const (
	// refresh says no more than where a change is now in the queue.
	refresh weight = iota
	// beginning is the first status of a commit.
	beginning
	// final is what has ended, and what somebody is told.
	final
)

// windows are GitHub's limits of content that is written, 80 a minute and 500 an hour, less what may be under way when one ends.
var windows = []struct {
	long time.Duration
	most int
}{{time.Minute, 76}, {time.Hour, 480}}

// share returns how much of a window a weight may use.
func (w weight) share(most int) int {
	switch w {
	case refresh:
		return most / 2
	case beginning:
		return most * 3 / 4
	}
	return most
}

// budget holds when something was written, in the last hour.
type budget struct {
	mu     sync.Mutex
	writes []time.Time
}

// take notes that something is written now and returns the zero time; or it returns when it may be.
func (b *budget) take(w weight, now time.Time) (until time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, window := range windows {
		from := 0
		for from < len(b.writes) && now.Sub(b.writes[from]) >= window.long {
			from++
		}
		if window.long == time.Hour {
			b.writes, from = b.writes[from:], 0
		}
		in := b.writes[from:]
		// Once so many have left the window, there is room for one more.
		if over := len(in) - w.share(window.most); over >= 0 {
			if at := in[over].Add(window.long); at.After(until) {
				until = at
			}
		}
	}
	if until.IsZero() {
		b.writes = append(b.writes, now)
	}
	return until
}
