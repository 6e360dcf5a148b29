package view

import (
	"testing"

	"landfall.build/events/seedtest"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/services/gateway/state/statetest"
)

// addsNothingTwin is addsNothing that goes through all changes which have left the queue.
func (q *Queue) addsNothingTwin(f *eventsv1.ChangeLanded) bool {
	for i := len(q.finished) - 1; i >= 0 && f.Tree != ""; i-- {
		if c := q.stillFinished(q.finished[i]); c != nil && c.end.landed != nil && last(c.end.landed.Commits) == f.Base {
			return c.end.landed.Tree == f.Tree
		}
	}
	return false
}

// TestWhichLandingsAddNothingIsWhatASearchOfAllFinds, for each change that is kept, and whatever was forgotten or came back since.
func TestWhichLandingsAddNothingIsWhatASearchOfAllFinds(t *testing.T) {
	random := seedtest.Random(t)
	story, q := statetest.New(random, 8), New("main", Limits{Finished: 40, Builds: 20, Attempts: 30, TailBytes: 200})
	nothing, something := 0, 0
	for range 5000 {
		for _, e := range story.Next() {
			if f, is := e.Message.(*eventsv1.ChangeLanded); is {
				f.Tree = []string{"", "tree", "other"}[random.IntN(3)]
			}
			q.Fold(e)
		}
		for _, c := range q.changes {
			if f := c.end.landed; f != nil {
				want := q.addsNothingTwin(f)
				if got := q.addsNothing(c, f); got != want {
					t.Fatalf("that %s adds nothing is %v, not %v", c.admission.Change, got, want)
				}
				if want {
					nothing++
				} else {
					something++
				}
			}
		}
	}
	if nothing == 0 || something == 0 {
		t.Errorf("%d landings add nothing, %d something", nothing, something)
	}
}
