package ranking

import (
	"fmt"
	"slices"
	"testing"

	"landfall.build/engine/graph"
	"landfall.build/events/seedtest"
	eventsv1 "landfall.build/events/v1"
)

// TestAnEditMakesTheRankingThatIs of any other one, and a small change a small edit.
func TestAnEditMakesTheRankingThatIs(t *testing.T) {
	r := seedtest.Random(t)
	edits := 0
	for range 3000 {
		old := &eventsv1.Ranking{Exact: true}
		for i := range r.IntN(30) {
			old.Best = append(old.Best, &eventsv1.RankedBuild{Change: &eventsv1.ChangeRef{Change: fmt.Sprint("c", i/2), Revision: 1}, Value: float64(i % 2)})
		}
		now := &eventsv1.Ranking{Exact: r.IntN(8) > 0, Best: slices.Clone(old.Best)}
		touched := r.IntN(5)
		for range touched {
			switch n := len(now.Best); {
			case n > 0 && r.IntN(2) == 0:
				i := r.IntN(n)
				b := now.Best[i]
				now.Best = slices.Delete(now.Best, i, i+1)
				if r.IntN(2) == 0 { // it moves
					now.Best = slices.Insert(now.Best, r.IntN(n), &eventsv1.RankedBuild{Change: b.Change, Value: b.Value})
				}
			default:
				now.Best = slices.Insert(now.Best, r.IntN(n+1), &eventsv1.RankedBuild{Change: &eventsv1.ChangeRef{Change: "new", Revision: 1}})
			}
		}
		e := editOf(old, now)
		if e == nil {
			if len(now.Best) > 2*touched {
				t.Fatalf("no edit for %d of %d builds", touched, len(now.Best))
			}
			continue
		}
		edits++
		inserted := 0
		for _, s := range e.Splices {
			inserted += len(s.Inserted)
		}
		if inserted > touched {
			t.Fatalf("%d builds are inserted where %d were touched: %v", inserted, touched, e)
		}
		got, err := graph.EditedRanking(old, &eventsv1.Priority{Edit: e})
		if err != nil || !sameRanking(got, now) {
			t.Fatalf("got %v (%v), want %v by %v", got, err, now, e)
		}
	}
	if edits < 1000 {
		t.Errorf("only %d edits", edits)
	}
}

// TestAnEditThatDoesNotFitLeavesTheRanking as it was.
func TestAnEditThatDoesNotFitLeavesTheRanking(t *testing.T) {
	old := &eventsv1.Ranking{Best: []*eventsv1.RankedBuild{{Value: 1}}}
	for _, splices := range [][]*eventsv1.RankingSplice{{{At: 1, Removed: 1}}, {{At: 2}}, {{At: 0, Removed: 1}, {At: 0}}, {{Removed: 1 << 31}}} {
		got, err := graph.EditedRanking(old, &eventsv1.Priority{Edit: &eventsv1.RankingEdit{Splices: splices}})
		if err == nil || got != old {
			t.Errorf("%v: %v, %v", splices, got, err)
		}
	}
}
