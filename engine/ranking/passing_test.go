package ranking

import (
	"testing"

	"google.golang.org/protobuf/proto"

	eventsv1 "landfall.build/events/v1"
)

// TestAChangeBehindAHeldOneAndAnotherGetsAllThatItHasToProve: on a pool it can pass both. Otherwise it would wait as long as the hold
// lasts if the other one fails together with the held one.
func TestAChangeBehindAHeldOneAndAnotherGetsAllThatItHasToProve(t *testing.T) {
	ref := func(id string) *eventsv1.ChangeRef { return &eventsv1.ChangeRef{Change: id, Revision: 1} }
	ahead := func(ids ...string) (list []*eventsv1.Ahead) {
		for _, id := range ids {
			list = append(list, &eventsv1.Ahead{Change: ref(id), Conflicts: true})
		}
		return list
	}
	class := func(members ...uint32) []*eventsv1.Class {
		return []*eventsv1.Class{{Members: members, Targets: []*eventsv1.TargetVersion{{Target: "//t", Part: 1}}}}
	}
	r := New()
	r.Apply(&eventsv1.Profile{StampUs: 1, Delta: &eventsv1.GraphDelta{
		Settings: &eventsv1.QueueSettings{Hash: "s", Threshold: 0.05, BypassThreshold: proto.Float64(0.5), Workers: 8, Best: 64, PoolWorkers: 4},
		Mainline: &eventsv1.Mainline{Head: "m", Analyzed: true},
		Nodes: []*eventsv1.Node{
			{Change: ref("held"), Position: 1, Analyzed: true, Holds: []*eventsv1.Hold{{Name: "manual"}}, Classes: class()},
			{Change: ref("slow"), Position: 2, Analyzed: true, Ahead: ahead("held"), Classes: class(0)},
			{Change: ref("small"), Position: 3, Analyzed: true, Ahead: ahead("held", "slow"), Classes: class(0, 1)},
		},
	}, Predictions: []*eventsv1.Prediction{
		{Change: ref("held"), Success: 0.99, DurationMeanUs: 60e6, DurationStdUs: 1e6},
		{Change: ref("slow"), Success: 0.99, DurationMeanUs: 600e6, DurationStdUs: 1e6},
		{Change: ref("small"), Success: 0.99, DurationMeanUs: 5e6, DurationStdUs: 1e6},
	}})
	paths := 0
	for _, b := range r.Decide().Ranking.Best {
		if b.Change.Change == "small" {
			paths++
		}
	}
	if paths != 4 {
		t.Errorf("%d of its four paths are ranked", paths)
	}
}
