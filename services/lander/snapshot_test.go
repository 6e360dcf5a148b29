package lander

import (
	"testing"

	"google.golang.org/protobuf/proto"

	"landfall.build/engine/snapshottest"
	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
)

// TestASnapshotHoldsTheWholeCore has a record for everything that the lander keeps.
func TestASnapshotHoldsTheWholeCore(t *testing.T) {
	d := newHarness(t)
	ref := func(change string) *eventsv1.ChangeRef { return &eventsv1.ChangeRef{Change: change, Revision: 1} }
	admit := func(change string) {
		d.record(events.TopicChanges, events.ServiceGateway, &eventsv1.ChangeAdmitted{Admission: &eventsv1.Admission{
			Queue: "main", Change: change, Revision: 1, LandingCommits: []*eventsv1.LandingCommit{{Head: change}}}})
	}
	for _, change := range []string{"b", "c", "l"} {
		admit(change)
	}
	d.decide()
	d.record(events.TopicDecisions, events.ServiceSelector, &eventsv1.Decision{
		StampUs: 8, Positions: &eventsv1.Positions{Changes: 3, Builds: 2}, Steps: &eventsv1.StepPolicy{FailedRetries: 1},
		Items: []*eventsv1.DecisionItem{
			{Item: &eventsv1.DecisionItem_RejectDecided{RejectDecided: &eventsv1.RejectDecided{Change: ref("b"), Decision: "d2"}}},
			{Item: &eventsv1.DecisionItem_EjectDecided{EjectDecided: &eventsv1.EjectDecided{Change: ref("c"), Decision: "d3"}}},
		},
	})
	d.record(events.TopicBuilds, events.ServiceBuilder, &eventsv1.StepFinished{Target: "//a", Hash: "h", Attempt: 1, Outcome: eventsv1.StepOutcome_STEP_OUTCOME_FAILED})
	d.record(events.TopicBuilds, events.ServiceBuilder, &eventsv1.BuildPrepared{Build: "x", Change: ref("c"), Outcome: eventsv1.PreparationOutcome_PREPARATION_OUTCOME_INFRASTRUCTURE})
	lander := func(m proto.Message) { d.record(events.TopicChanges, events.ServiceLander, m) }
	lander(&eventsv1.Refused{Change: ref("b"), Decision: "d1", Disproved: true})
	lander(&eventsv1.LandIntended{Change: ref("c"), Decision: "d0", Base: "m0", Commits: []string{"t0"}})
	lander(&eventsv1.LandVoid{Change: ref("c"), Decision: "d0", Commit: "t0", Refused: true, Reason: "a hook"})
	lander(&eventsv1.LandIntended{Change: ref("l"), Decision: "d4", Base: "m0", Commits: []string{"t1"}, Tree: "tree"})
	lander(&eventsv1.ChangeLanded{Change: ref("l"), Decision: "d4", Base: "m0", Commits: []string{"t1"}, Tree: "tree"})
	lander(&eventsv1.LandIntended{Change: ref("c"), Decision: "d5", Base: "t1", Commits: []string{"t2"}})
	lander(&eventsv1.LandVoid{Change: ref("c"), Decision: "d5", Commit: "t2", Refused: true, Concern: eventsv1.RefusalConcern_REFUSAL_CONCERN_QUEUE, Reason: "a hook", StampUs: 7})
	lander(&eventsv1.LandingsPaused{Message: "a hook", SinceUs: 7, StampUs: 8})
	lander(&eventsv1.MainlineMoved{From: "t1", To: "m2", Forced: true, Dropped: []*eventsv1.ChangeRef{ref("l")}})
	lander(&eventsv1.TargetQuarantined{Target: "//q*", UntilUs: 9})
	d.record(events.TopicBuilds, events.ServiceBuilder, &eventsv1.StepFinished{Target: "//f", Hash: "h", Attempt: 1, Outcome: eventsv1.StepOutcome_STEP_OUTCOME_FAILED, StartedUs: 1, FinishedUs: 2})
	d.record(events.TopicBuilds, events.ServiceBuilder, &eventsv1.StepFinished{Target: "//f", Hash: "h", Attempt: 2, Outcome: eventsv1.StepOutcome_STEP_OUTCOME_PASSED, FinishedUs: 3, Build: "b"})
	lander(&eventsv1.MainlineUnreachable{Trouble: eventsv1.MainlineTrouble_MAINLINE_TROUBLE_UNREADABLE})
	state, err := proto.Marshal(d.core.Snapshot())
	if err != nil {
		t.Fatal(err)
	}
	restored, err := restore([]string{"main"}, nil, state)
	if err != nil {
		t.Fatal(err)
	}
	fields := snapshottest.New(t)
	fields.Same(d.core, restored)
	fields.Done("lander")
}
