package client

import (
	"fmt"
	"testing"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/services/gateway/api/apitest"
)

// TestExplainSaysWhichStepsComeBeforeTheFirstThatWaits, and with --full why.
func TestExplainSaysWhichStepsComeBeforeTheFirstThatWaits(t *testing.T) {
	t.Chdir(t.TempDir())
	f := serve(t)
	f.Fold("main", events.TopicChanges, &eventsv1.MainlineMoved{To: apitest.Commit("main"), Initial: true})
	f.Profile("main", &eventsv1.Profile{Delta: &eventsv1.GraphDelta{
		Settings: &eventsv1.QueueSettings{Pool: "default", PoolWorkers: 4}, Mainline: &eventsv1.Mainline{Head: apitest.Commit("main"), Analyzed: true}}})
	var many []string
	for i := range 14 {
		many = append(many, fmt.Sprintf("//area%d:test", i))
	}
	changes := []string{"large", "small"}
	targets := map[string][]string{"large": many, "small": {"//b"}}
	for _, change := range changes {
		f.run("land", change)
		f.Schedule("main", change+"-0123456789abcdef", change, nil, targets[change]...)
	}
	value := func(change string, value float64) {
		f.Fold("main", events.TopicDecisions, &eventsv1.Decision{StampUs: apitest.Start.UnixMicro(), Items: []*eventsv1.DecisionItem{{Item: &eventsv1.DecisionItem_BuildRevalued{
			BuildRevalued: &eventsv1.BuildRevalued{Build: change + "-0123456789abcdef", Value: value}}}}})
	}
	value("large", 0.9)
	value("small", 0.9)
	f.show("explain", "small")
	for _, change := range changes {
		f.Prepare("main", change+"-0123456789abcdef", change, targets[change]...)
	}
	f.show("explain", "small")
	f.show("explain", "large")
	f.show("explain", "large", "--full")
	f.run("priority", "large", "--front")
	f.show("explain", "small")
	f.show("explain", "small", "--json")
	t.Chdir(origin)
	f.compare("waiting.txt")
}
