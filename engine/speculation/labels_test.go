package speculation

import (
	"fmt"
	"testing"

	"landfall.build/events/seedtest"
)

// A push may be analysed after what came onto the mainline next: what it holds counts from its own move on.
func TestWhatLandedCountsFromItsMoveOnInWhateverOrderItIsTold(t *testing.T) {
	r := seedtest.Random(t)
	for range 2000 {
		var l sums
		var told []uint64
		for range 1 + r.IntN(12) {
			at := uint64(1 + r.IntN(20))
			told = append(told, at)
			l.add(at, sum{at, 1})
			for sequence := range uint64(22) {
				var want sum
				for _, x := range told {
					if x <= sequence {
						want = want.plus(sum{x, 1})
					}
				}
				if got := l.asOf(sequence); got != want {
					t.Fatalf("after %v: as of %d %v, want %v", told, sequence, got, want)
				}
			}
		}
	}
}

func TestWhatLandedLongAgoIsASum(t *testing.T) {
	var l sums
	for i := range uint64(10 * keptMoves) {
		l.add(i+1, sum{1, 0})
	}
	if len(l.at) > keptMoves+1 {
		t.Errorf("%d moves are kept", len(l.at))
	}
	if got := l.asOf(10 * keptMoves); got != (sum{10 * keptMoves, 0}) {
		t.Errorf("all of it is %v", got)
	}
	if got := l.asOf(9*keptMoves + 1); got != (sum{9*keptMoves + 1, 0}) {
		t.Errorf("the oldest kept is %v", got)
	}
}

// TestAHeadThatComesBackIsNotForgottenForItsFirstTime: somebody took the mainline back to it, and it is the head again.
func TestAHeadThatComesBackIsNotForgottenForItsFirstTime(t *testing.T) {
	l := newLanded()
	l.move("back", 1)
	for i := range uint64(keptMoves - 1) {
		l.move(fmt.Sprint("m", i), 2+i)
	}
	l.move("back", keptMoves+1)
	if at, known := l.sequences["back"]; !known || at != keptMoves+1 {
		t.Errorf("the head is known as move %d (%v), and it is move %d", at, known, keptMoves+1)
	}
	for i := range uint64(2 * keptMoves) {
		l.move(fmt.Sprint("n", i), keptMoves+2+i)
	}
	if _, known := l.sequences["back"]; known || len(l.sequences) != keptMoves {
		t.Errorf("%d heads are known, want %d", len(l.sequences), keptMoves)
	}
}
