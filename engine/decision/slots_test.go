package decision

import (
	"fmt"
	"testing"

	eventsv1 "landfall.build/events/v1"
)

// player returns a function that plays a priority to a selection, at the next position, and returns what it decides.
func player(s *Selection) func(*eventsv1.Priority) []*eventsv1.DecisionItem {
	position := int64(0)
	return func(p *eventsv1.Priority) []*eventsv1.DecisionItem {
		position++
		if p.Position = position; p.Delta == nil {
			p.Delta = &eventsv1.GraphDelta{}
		}
		s.Apply(p)
		d := s.Decide()
		s.Fold(d)
		return d.GetItems()
	}
}

// TestM26AWorthlessBuildGivesItsSlotToOneThatWaits: the least needed one gives its slot first. While no build waits it goes on,
// and a build that is worth something again keeps its slot.
func TestM26AWorthlessBuildGivesItsSlotToOneThatWaits(t *testing.T) {
	s := New("main", joined)
	play := player(s)
	step := func(p *eventsv1.Priority) (scheduled, aborted []string) {
		for _, i := range play(p) {
			if b := i.GetBuildScheduled(); b != nil {
				scheduled = append(scheduled, b.Change.Change.Change)
			}
			if b := i.GetBuildAborted(); b != nil {
				aborted = append(aborted, b.Build)
			}
		}
		return scheduled, aborted
	}
	nodes, ranked := []*eventsv1.Node{}, []*eventsv1.RankedBuild{}
	for i := range 5 {
		c := &eventsv1.ChangeRef{Change: fmt.Sprint("c", i), Revision: 1}
		nodes = append(nodes, &eventsv1.Node{Change: c, Position: int64(i + 1), Analyzed: true,
			Classes: []*eventsv1.Class{{Targets: []*eventsv1.TargetVersion{{Target: "t", Part: 1}}}}})
		ranked = append(ranked, &eventsv1.RankedBuild{Change: c, Needed: 1, Value: 1})
	}
	if scheduled, _ := step(&eventsv1.Priority{
		Delta: &eventsv1.GraphDelta{Nodes: nodes, Mainline: &eventsv1.Mainline{Head: "m", Analyzed: true},
			Settings: &eventsv1.QueueSettings{Hash: "s", Workers: 3, Steps: &eventsv1.StepPolicy{}}},
		Ranking: &eventsv1.Ranking{Best: ranked[:3]},
	}); len(scheduled) != 3 {
		t.Fatalf("scheduled %v", scheduled)
	}
	build := func(i int) string { return s.runningOf[subject{change: fmt.Sprint("c", i)}][0].id }
	worthless := &eventsv1.Priority{Ranking: &eventsv1.Ranking{}}
	var ids []string
	for i, needed := range []float64{0.01, 0.001, 0.02} {
		ids = append(ids, build(i))
		worthless.Worthless = append(worthless.Worthless, &eventsv1.WorthlessBuild{Build: build(i), Needed: needed})
	}
	if scheduled, aborted := step(worthless); len(scheduled)+len(aborted) > 0 {
		t.Fatalf("nobody waits for a slot, yet %v is scheduled and %v aborted", scheduled, aborted)
	}
	if scheduled, aborted := step(&eventsv1.Priority{Ranking: &eventsv1.Ranking{Best: ranked[3:4]}}); fmt.Sprint(scheduled, aborted) != fmt.Sprint([]string{"c3"}, ids[1:2]) {
		t.Fatalf("for one that waits, %v is scheduled and %v aborted", scheduled, aborted)
	}
	if scheduled, aborted := step(&eventsv1.Priority{Recovered: ids[:1], Ranking: &eventsv1.Ranking{Best: ranked[3:5]}}); fmt.Sprint(scheduled, aborted) != fmt.Sprint([]string{"c4"}, ids[2:]) {
		t.Fatalf("for another one, %v is scheduled and %v aborted", scheduled, aborted)
	}
	if scheduled, aborted := step(&eventsv1.Priority{Ranking: &eventsv1.Ranking{Best: append(ranked[3:5:5], ranked[1])}}); len(scheduled)+len(aborted) > 0 {
		t.Fatalf("nothing is worthless, yet %v is scheduled and %v aborted", scheduled, aborted)
	}
}
