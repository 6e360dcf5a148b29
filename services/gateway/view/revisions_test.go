package view_test

import (
	"fmt"
	"slices"
	"testing"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/services/gateway/view"
)

// TestTheNewestRevisionsOfAChangeAreKept, through a snapshot too, and with the commits of each.
func TestTheNewestRevisionsOfAChangeAreKept(t *testing.T) {
	q := view.New("main", view.DefaultLimits())
	for n := range uint64(20) {
		a := &eventsv1.Admission{Queue: "main", Change: "c", Revision: n + 1, ReceivedUs: int64(n+1) * 1e6, Mainline: "m",
			LandingCommits: []*eventsv1.LandingCommit{{Base: fmt.Sprint("base ", n+1), Head: "between"}, {Base: "between", Head: fmt.Sprint("head ", n+1)}}}
		if n == 0 {
			put(q, events.TopicChanges, &eventsv1.ChangeAdmitted{Admission: a})
		} else {
			put(q, events.TopicChanges, &eventsv1.ChangeRevised{Admission: a})
		}
		restored, err := view.Restore(q.Snapshot(), main, view.DefaultLimits())
		if err != nil {
			t.Fatal(err)
		}
		for name, q := range map[string]*view.Queue{"folded": q, "restored": restored} {
			list := q.Revisions("c")
			if c, _ := q.Change("c"); !slices.Equal(c.Revisions, list) || len(list) != min(16, int(n)+1) {
				t.Fatalf("%s, after %d: %v", name, n+1, list)
			}
			for i, r := range list {
				number := n + 2 - uint64(len(list)-i)
				if want := (view.Revision{Revision: number, At: r.At, Base: fmt.Sprint("base ", number), Head: fmt.Sprint("head ", number)}); r != want || r.At.Unix() != int64(number) {
					t.Errorf("%s, after %d: %v, want %v", name, n+1, r, want)
				}
			}
		}
	}
	if list := q.Revisions("ghost"); list != nil {
		t.Error(list)
	}
}
