package speculation

import (
	"testing"

	eventsv1 "landfall.build/events/v1"
)

func fact(t *testing.T, q *Queue, offset int64, facts ...*eventsv1.Fact) {
	t.Helper()
	for i, f := range facts {
		q.Apply(f, offset+int64(i))
	}
	q.Fold(q.Decide())
}

func push(from, to string) *eventsv1.Fact {
	return &eventsv1.Fact{Fact: &eventsv1.Fact_MainlineMoved{MainlineMoved: &eventsv1.MainlineMoved{From: from, To: to, Initial: from == ""}}}
}

func pushAnalyzed(from, to, hash string) *eventsv1.Fact {
	return &eventsv1.Fact{Fact: &eventsv1.Fact_MainlineAnalyzed{MainlineAnalyzed: &eventsv1.MainlineAnalyzed{From: from, To: to, Affected: &eventsv1.Affected{
		Targets: []*eventsv1.TargetVersion{{Target: "t", Hash: hash, Part: 1}},
	}}}}
}

// M23a: two pushes that are analysed in the other order leave the mainline as the later one made it; asking for
// a version that it has no more would never end.
func TestM23aOfTwoPushesTheLaterOneIsVerified(t *testing.T) {
	q := New()
	settings := &eventsv1.Fact{Fact: &eventsv1.Fact_Settings{Settings: &eventsv1.QueueSettings{Hash: "s", Steps: &eventsv1.StepPolicy{}}}}
	fact(t, q, 1, settings, push("", "m0"), push("m0", "m1"), push("m1", "m2"))
	fact(t, q, 5, pushAnalyzed("m1", "m2", "second"))
	if q.published[""] != nil && len(q.published[""].Classes) > 0 && q.publishedMainline.Analyzed {
		t.Fatalf("decisions may be taken though a push is not analysed: %v", q.publishedMainline)
	}
	fact(t, q, 6, pushAnalyzed("m0", "m1", "first"))
	n := q.published[""]
	if !q.publishedMainline.Analyzed || n == nil || len(n.Classes) != 1 || len(n.Classes[0].Targets) != 1 || n.Classes[0].Targets[0].Hash != "second" {
		t.Fatalf("the mainline's own node is %v on %v", n, q.publishedMainline)
	}
	passed := &eventsv1.Fact{Fact: &eventsv1.Fact_StepFinished{StepFinished: &eventsv1.StepFinished{
		Target: "t", Hash: "second", Attempt: 1, Outcome: eventsv1.StepOutcome_STEP_OUTCOME_PASSED}}}
	fact(t, q, 7, passed)
	if n := q.published[""]; len(n.Classes) != 0 {
		t.Fatalf("after its version passed: %v", n)
	}
}

// A push, and back to where it was: what does not merge there is red again. The analyzer does not look a second time at a
// commit that it has looked at, so whoever waited for that would wait for good.
func TestWhatDoesNotMergeIsRedAgainWhereTheMainlineCameBack(t *testing.T) {
	q := New()
	settings := &eventsv1.Fact{Fact: &eventsv1.Fact_Settings{Settings: &eventsv1.QueueSettings{Hash: "s", Steps: &eventsv1.StepPolicy{}}}}
	unmergeable := &eventsv1.Fact{Fact: &eventsv1.Fact_ChangeAnalyzed{ChangeAnalyzed: &eventsv1.ChangeAnalyzed{
		Change: &eventsv1.ChangeRef{Change: "c", Revision: 1}, Base: "m0", Outcome: eventsv1.AnalysisOutcome_ANALYSIS_OUTCOME_UNMERGEABLE,
	}}}
	outcomes := func() int { return len(q.published["c"].Classes[0].Outcomes) }
	fact(t, q, 1, settings, push("", "m0"), admitted("c"), admitted("other"), changeAnalyzed("other", &eventsv1.Affected{Targets: []*eventsv1.TargetVersion{target("t", "t1")}}), unmergeable)
	fact(t, q, 10, push("m0", "m1"), pushAnalyzed("m0", "m1", "pushed"))
	if n := outcomes(); n != 0 {
		t.Errorf("behind a push that may have mended it %d outcomes are known", n)
	}
	fact(t, q, 20, push("m1", "m0"))
	fact(t, q, 30, &eventsv1.Fact{Fact: &eventsv1.Fact_LandIntended{LandIntended: &eventsv1.LandIntended{
		Change: &eventsv1.ChangeRef{Change: "other", Revision: 1}, Decision: "d", Base: "m0", Commits: []string{"m2"}}}},
		&eventsv1.Fact{Fact: &eventsv1.Fact_ChangeLanded{ChangeLanded: &eventsv1.ChangeLanded{
			Change: &eventsv1.ChangeRef{Change: "other", Revision: 1}, Decision: "d", Base: "m0", Commits: []string{"m2"}}}})
	if q.Lineup.Head != "m2" {
		t.Fatalf("the head is %s", q.Lineup.Head)
	}
	if n := outcomes(); n != 1 {
		t.Errorf("where the mainline came back, and something landed that it does not meet, %d outcomes are known", n)
	}
}

// TestARepairUnblocksAlsoThoseThatItIsSaidNotToMeet: an analysis may overlook what a repair does, and changes that
// meet in hubs are no neighbours.
func TestARepairUnblocksAlsoThoseThatItIsSaidNotToMeet(t *testing.T) {
	q := newTestQueue(t)
	q.say(&eventsv1.MainlineMoved{From: "m0", To: "m1"})
	q.say(&eventsv1.MainlineAnalyzed{From: "m0", To: "m1", Affected: &eventsv1.Affected{Targets: []*eventsv1.TargetVersion{{Target: "//t", Hash: "red", Part: 1}}}})
	repair := q.enter("repair", "m1", "//elsewhere", "e")
	q.enter("c", "m1", "//t", "red too")
	for _, hash := range []string{"red", "red too"} {
		q.say(&eventsv1.StepFinished{Target: "//t", Hash: hash, Attempt: 1, Outcome: eventsv1.StepOutcome_STEP_OUTCOME_FAILED})
	}
	state := func() eventsv1.OutcomeState {
		o := q.published["c"].Classes[0].Outcomes
		if len(o) != 1 {
			t.Fatalf("c is told %v", o)
		}
		return o[0].State
	}
	if s := state(); s != eventsv1.OutcomeState_OUTCOME_STATE_BLOCKED {
		t.Fatalf("c is %v on a mainline that is red itself", s)
	}
	q.say(&eventsv1.LandIntended{Change: repair, Commits: []string{"m2"}})
	q.say(&eventsv1.ChangeLanded{Change: repair, Commits: []string{"m2"}, Proof: []*eventsv1.Proof{{Version: &eventsv1.TargetVersion{Target: "//t", Hash: "green"}}}})
	if s := state(); s == eventsv1.OutcomeState_OUTCOME_STATE_BLOCKED {
		t.Error("c waits for a repair that has landed")
	}
}
