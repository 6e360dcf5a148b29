package decision

import (
	"strings"
	"testing"

	eventsv1 "landfall.build/events/v1"
)

// The builder retries by the policy that came with the schedule. Were a build kept when the policy changes,
// it could be over for the builder and open for everybody else, and hold its slot for ever.
func TestABuildIsReplacedWhenTheRetryPolicyChanges(t *testing.T) {
	s := New("main", func(parts ...string) string { return strings.Join(parts, "/") })
	settings := func(retries uint32) *eventsv1.QueueSettings {
		return &eventsv1.QueueSettings{Hash: "s", Workers: 1, Steps: &eventsv1.StepPolicy{FailedRetries: retries}}
	}
	c := &eventsv1.ChangeRef{Change: "c", Revision: 1}
	node := &eventsv1.Node{Change: c, Position: 1, Analyzed: true, Classes: []*eventsv1.Class{{Targets: []*eventsv1.TargetVersion{{Target: "t", Part: 1}}}}}
	ranking := &eventsv1.Ranking{Best: []*eventsv1.RankedBuild{{Change: c, Needed: 1, Value: 1}}}
	step := func(position int64, d *eventsv1.GraphDelta) *eventsv1.Decision {
		s.Apply(&eventsv1.Priority{Position: position, Delta: d, Ranking: ranking})
		decision := s.Decide()
		s.Fold(decision)
		return decision
	}
	first := step(1, &eventsv1.GraphDelta{Settings: settings(0), Mainline: &eventsv1.Mainline{Head: "m", Analyzed: true}, Nodes: []*eventsv1.Node{node}})
	if n := len(first.GetItems()); n != 1 || first.Items[0].GetBuildScheduled() == nil {
		t.Fatalf("the first decision is %v", first)
	}
	if d := step(2, &eventsv1.GraphDelta{Settings: settings(0)}); d != nil {
		t.Fatalf("the same policy again: %v", d)
	}
	d := step(3, &eventsv1.GraphDelta{Settings: settings(1)})
	if len(d.GetItems()) != 2 {
		t.Fatalf("with another policy: %v", d)
	}
	scheduled, aborted := d.Items[0].GetBuildScheduled(), d.Items[1].GetBuildAborted()
	if scheduled.GetSteps().GetFailedRetries() != 1 || aborted.GetBuild() != first.Items[0].GetBuildScheduled().Build || aborted.GetSupersededBy() != scheduled.GetBuild() {
		t.Fatalf("with another policy: %v", d)
	}
}
