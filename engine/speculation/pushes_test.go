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
	if q.published.check != nil && len(q.published.check.Classes) > 0 && q.published.mainline.Analyzed {
		t.Fatalf("decisions may be taken though a push is not analysed: %v", q.published.mainline)
	}
	fact(t, q, 6, pushAnalyzed("m0", "m1", "first"))
	n := q.published.check
	if !q.published.mainline.Analyzed || n == nil || len(n.Classes) != 1 || len(n.Classes[0].Targets) != 1 || n.Classes[0].Targets[0].Hash != "second" {
		t.Fatalf("the mainline's own node is %v on %v", n, q.published.mainline)
	}
	passed := &eventsv1.Fact{Fact: &eventsv1.Fact_StepFinished{StepFinished: &eventsv1.StepFinished{
		Target: "t", Hash: "second", Attempt: 1, Outcome: eventsv1.StepOutcome_STEP_OUTCOME_PASSED}}}
	fact(t, q, 7, passed)
	if n := q.published.check; len(n.Classes) != 0 {
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
	outcomes := func() int { return len(q.published.nodes["c"].Classes[0].Outcomes) }
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
		o := q.published.nodes["c"].Classes[0].Outcomes
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

// TestATreeThatWasMadeBeforeALandingSaysNothingOfWhatThatMends, whichever of the two is read first: k did not merge without
// x, so a build of c on top of k had no tree. Once x and k have landed that would be said of c alone.
func TestATreeThatWasMadeBeforeALandingSaysNothingOfWhatThatMends(t *testing.T) {
	affects := func(targets ...string) *eventsv1.Affected {
		a := &eventsv1.Affected{}
		for _, name := range targets {
			a.Targets = append(a.Targets, target(name, name+"1"))
		}
		return a
	}
	ref := func(change string) *eventsv1.ChangeRef { return &eventsv1.ChangeRef{Change: change, Revision: 1} }
	noTree := &eventsv1.Fact{Fact: &eventsv1.Fact_BuildPrepared{BuildPrepared: &eventsv1.BuildPrepared{
		Build: "b", Change: ref("c"), Base: "m0", Assumed: []*eventsv1.ChangeRef{ref("k")},
		Outcome: eventsv1.PreparationOutcome_PREPARATION_OUTCOME_UNMERGEABLE, Message: "k does not merge without x",
	}}}
	lands := func(change, base, commit string) []*eventsv1.Fact {
		return []*eventsv1.Fact{
			{Fact: &eventsv1.Fact_LandIntended{LandIntended: &eventsv1.LandIntended{Change: ref(change), Decision: "d" + change, Base: base, Commits: []string{commit}}}},
			{Fact: &eventsv1.Fact_ChangeLanded{ChangeLanded: &eventsv1.ChangeLanded{Change: ref(change), Decision: "d" + change, Base: base, Commits: []string{commit}}}},
		}
	}
	for _, x := range []struct {
		landing string
		known   int
	}{{"x", 0}, {"stranger", 1}} {
		for _, late := range []bool{false, true} {
			q := New()
			settings := &eventsv1.Fact{Fact: &eventsv1.Fact_Settings{Settings: &eventsv1.QueueSettings{Hash: "s", Steps: &eventsv1.StepPolicy{}}}}
			fact(t, q, 1, settings, push("", "m0"), admitted("stranger"), admitted("x"), admitted("k"), admitted("c"),
				changeAnalyzed("stranger", affects("elsewhere")), changeAnalyzed("x", affects("both")), changeAnalyzed("k", affects("both", "mine")), changeAnalyzed("c", affects("mine")))
			landing := lands(x.landing, "m0", "m1")
			if late {
				fact(t, q, 10, append(landing, noTree)...)
			} else {
				fact(t, q, 10, append([]*eventsv1.Fact{noTree}, landing...)...)
			}
			if n := len(q.published.nodes["c"].Paths); n != x.known {
				t.Errorf("%s landed, and that there was no tree was read late (%v): %d paths are known, want %d", x.landing, late, n, x.known)
			}
		}
	}
}
