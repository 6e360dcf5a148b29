package decision

import (
	"strings"
	"testing"

	eventsv1 "landfall.build/events/v1"
)

// TestM26NothingStartsWhileMoreRunThanThereAreSlots: where the budget was lowered, worthless builds give way until
// there is room.
func TestM26NothingStartsWhileMoreRunThanThereAreSlots(t *testing.T) {
	s := New("main", func(parts ...string) string { return strings.Join(parts, "/") })
	d := &eventsv1.GraphDelta{Settings: &eventsv1.QueueSettings{Hash: "s", Workers: 4, AbortThreshold: 0.1, Steps: &eventsv1.StepPolicy{}}, Mainline: &eventsv1.Mainline{Head: "m", Analyzed: true}}
	ranking := &eventsv1.Ranking{Exact: true}
	for i, id := range []string{"a", "b", "c", "d", "e"} {
		n := &eventsv1.Node{Change: &eventsv1.ChangeRef{Change: id, Revision: 1}, Position: int64(i + 1), Analyzed: true,
			Classes: []*eventsv1.Class{{Targets: []*eventsv1.TargetVersion{{Target: "t" + id, Part: 1}}}}}
		d.Nodes = append(d.Nodes, n)
		ranking.Best = append(ranking.Best, &eventsv1.RankedBuild{Change: n.Change, Needed: 1, Value: 1})
	}
	s.Apply(&eventsv1.Priority{Position: 1, Delta: d, Ranking: ranking})
	first := s.Decide() // four of five start
	s.Fold(first)
	var worthless []*eventsv1.WorthlessBuild
	for _, i := range first.Items {
		worthless = append(worthless, &eventsv1.WorthlessBuild{Build: i.GetBuildScheduled().Build, Needed: 0.01})
	}
	two := &eventsv1.QueueSettings{Hash: "s2", Workers: 2, AbortThreshold: 0.1, Steps: &eventsv1.StepPolicy{}}
	s.Apply(&eventsv1.Priority{Position: 2, Delta: &eventsv1.GraphDelta{Settings: two}, Ranking: &eventsv1.Ranking{Exact: true, Best: ranking.Best[4:]}, Worthless: worthless})
	started, aborted := 0, 0
	for _, i := range s.Decide().GetItems() {
		if i.GetBuildScheduled() != nil {
			started++
		}
		if i.GetBuildAborted() != nil {
			aborted++
		}
	}
	if running := 4 - aborted + started; started > 0 && running > 2 {
		t.Errorf("%d run after %d started and %d were aborted; there are 2 slots", running, started, aborted)
	}
}
