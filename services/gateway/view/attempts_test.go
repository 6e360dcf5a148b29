package view_test

import (
	"slices"
	"testing"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/services/gateway/api/apitest"
	"landfall.build/services/gateway/view"
)

// TestOfALandedChangeWhatProvedItIsShownFirst: a build on top of another change failed. That run is marked with the other change, and so is
// one that was another change's.
func TestOfALandedChangeWhatProvedItIsShownFirst(t *testing.T) {
	q := view.New(main, view.DefaultLimits())
	for _, id := range []string{"k", "c", "d"} {
		put(q, events.TopicChanges, &eventsv1.ChangeAdmitted{Admission: admissionOf(id)})
	}
	run := func(build, change, hash string, outcome eventsv1.StepOutcome, assumed ...string) {
		d := scheduled(build, change)
		for _, k := range assumed {
			s := d.Items[0].GetBuildScheduled()
			s.Assumed = append(s.Assumed, &eventsv1.AssumedChange{Change: refOf(k)})
		}
		put(q, events.TopicDecisions, d)
		put(q, events.TopicBuilds, &eventsv1.BuildPrepared{Build: build, Change: refOf(change), Outcome: eventsv1.PreparationOutcome_PREPARATION_OUTCOME_PREPARED,
			Versions: []*eventsv1.TargetVersion{{Target: "//t", Hash: hash}, {Target: "//u", Hash: "shared"}}})
		put(q, events.TopicBuilds, &eventsv1.StepFinished{Target: "//t", Hash: hash, Attempt: 1, Build: build, Outcome: outcome})
	}
	run("b1", "c", "on k", stepFailed, "k")
	run("b2", "c", "alone", stepPassed)
	put(q, events.TopicBuilds, &eventsv1.StepFinished{Target: "//u", Hash: "shared", Attempt: 1, Build: "b2", Outcome: stepFailed})
	run("b3", "d", "of d", stepPassed)
	put(q, events.TopicBuilds, &eventsv1.StepFinished{Target: "//u", Hash: "shared", Attempt: 2, Build: "b3", Outcome: stepPassed})
	expect := func(want ...view.Attempt) {
		t.Helper()
		got, _ := q.Attempts("c", 0)
		same := func(a, b view.Attempt) bool {
			return a.Target == b.Target && a.Hash == b.Hash && a.Number == b.Number && slices.Equal(a.With, b.With)
		}
		if !slices.EqualFunc(got, want, same) {
			t.Errorf("the runs are %+v, want %+v", got, want)
		}
	}
	proof := []*eventsv1.Proof{
		{Version: &eventsv1.TargetVersion{Target: "//t", Hash: "alone"}, Build: "b2", Attempt: 1}, {Version: &eventsv1.TargetVersion{Target: "//u", Hash: "shared"}, Build: "b3", Attempt: 2}}
	commits := []string{apitest.Commit("t")}
	put(q, events.TopicChanges, &eventsv1.LandIntended{Change: refOf("c"), Base: apitest.Commit("main"), Commits: commits, Proof: proof})
	put(q, events.TopicChanges, &eventsv1.ChangeLanded{Change: refOf("c"), Base: apitest.Commit("main"), Commits: commits, Proof: proof})
	expect(view.Attempt{Target: "//t", Hash: "alone", Number: 1}, view.Attempt{Target: "//u", Hash: "shared", Number: 2},
		view.Attempt{Target: "//t", Hash: "on k", Number: 1, With: []string{"k"}}, view.Attempt{Target: "//u", Hash: "shared", Number: 1})
}
