package view_test

import (
	"testing"

	"landfall.build/engine/explanation"
	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/services/gateway/api/apitest"
	"landfall.build/services/gateway/view"
)

// TestTheProofOfAGreenPathHasPassed: a build of the same path on an earlier mainline may have failed.
func TestTheProofOfAGreenPathHasPassed(t *testing.T) {
	s := newTranscript(t)
	s.Fold(main, events.TopicChanges, &eventsv1.MainlineMoved{To: apitest.Commit("main"), Initial: true})
	s.Graph(main, &eventsv1.GraphDelta{Settings: &eventsv1.QueueSettings{Repository: "repo", Branch: "main", Strategy: "squash", Workers: 2}, Mainline: &eventsv1.Mainline{Head: apitest.Commit("main"), Analyzed: true}})
	s.land("a")
	s.Graph(main, &eventsv1.GraphDelta{Nodes: []*eventsv1.Node{node("a", 1)}})
	build := func(id string, outcome eventsv1.StepOutcome) {
		s.Schedule(main, id, "a", nil, "//a")
		s.Prepare(main, id, "a", "//a")
		s.Finish(main, id, "//a", 1, outcome, "", "")
	}
	proofs := func(state eventsv1.OutcomeState) (list []explanation.Proof) {
		n := outcome(node("a", 1), state, "//a")
		n.Classes[0].Targets[0].Part = 1
		s.Graph(main, &eventsv1.GraphDelta{Nodes: []*eventsv1.Node{n}})
		entries := s.Folded(main)
		s.Read(main, func(q *view.Queue) {
			for _, p := range inFull(q, "a", entries).Verdict.Paths {
				list = append(list, p.Proof...)
			}
		})
		return list
	}
	build("before", eventsv1.StepOutcome_STEP_OUTCOME_FAILED)
	if got := proofs(eventsv1.OutcomeState_OUTCOME_STATE_RED); len(got) != 1 || got[0].Build != "before" {
		t.Errorf("of the red path: %v", got)
	}
	build("after", eventsv1.StepOutcome_STEP_OUTCOME_PASSED)
	if got := proofs(eventsv1.OutcomeState_OUTCOME_STATE_GREEN); len(got) != 1 || got[0].Build != "after" {
		t.Errorf("of the green path: %v", got)
	}
}
