package github

import (
	"testing"
	"time"

	"landfall.build/events/seedtest"
)

// TestWritesStayWithinGitHubsLimits: at random, in no minute and no hour more is written than GitHub takes, what has ended is refused only
// when a window is full, and whoever comes at the time that was said is not refused again by those that were there.
func TestWritesStayWithinGitHubsLimits(t *testing.T) {
	r := seedtest.Random(t)
	var b budget
	now := time.Unix(1_000_000, 0)
	var written []time.Time
	within := func(long time.Duration) (n int) {
		for _, at := range written {
			if now.Sub(at) < long {
				n++
			}
		}
		return n
	}
	counts := map[weight]int{}
	for range 20_000 {
		now = now.Add(time.Duration(r.IntN(600)) * time.Millisecond)
		w := weight(r.IntN(3))
		until := b.take(w, now)
		minute, hour := within(time.Minute), within(time.Hour)
		if full := minute >= w.share(76) || hour >= w.share(480); full == until.IsZero() {
			t.Fatalf("%d in a minute, %d in an hour, and weight %d is taken at %v", minute, hour, w, until)
		}
		if !until.IsZero() && !until.After(now) {
			t.Fatalf("it is to come at %v, and it is %v", until, now)
		}
		if until.IsZero() {
			written = append(written, now)
			counts[w]++
		}
		if minute > 80 || hour > 500 {
			t.Fatalf("%d in a minute, %d in an hour", minute, hour)
		}
	}
	if counts[final] < counts[beginning] || counts[beginning] < counts[refresh] || counts[refresh] == 0 {
		t.Errorf("by weight it takes %v", counts)
	}
}

// TestRoomIsLeftForWhatEnds: though places are told again and again, what has ended is written at once.
func TestRoomIsLeftForWhatEnds(t *testing.T) {
	var b budget
	now := time.Unix(1_000_000, 0)
	for range 200 {
		b.take(refresh, now)
		b.take(beginning, now)
	}
	for i := range 76 - final.share(76)*3/4 {
		if until := b.take(final, now); !until.IsZero() {
			t.Fatalf("the %d. is to come at %v", i+1, until)
		}
	}
	until := b.take(final, now)
	if !until.Equal(now.Add(time.Minute)) || !b.take(final, until).IsZero() {
		t.Errorf("the next is to come at %v", until)
	}
}
