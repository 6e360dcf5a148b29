package view_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"landfall.build/engine/eta"
	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/services/gateway/api/apitest"
	"landfall.build/services/gateway/view"
)

// unknown returns why there is no estimate of a change, "" if there is one.
func (s *transcript) unknown(change string) (why string) {
	s.t.Helper()
	s.Read(main, func(q *view.Queue) {
		c, known := q.Change(change)
		if !known || c.ETA == nil {
			s.t.Fatalf("of %s there is no estimate", change)
		}
		why = c.ETA.Unknown
	})
	return why
}

// TestAReasonForNoEstimateThatHasPassedIsNotShown: estimates come at most once a second, and what happens meanwhile counts.
func TestAReasonForNoEstimateThatHasPassedIsNotShown(t *testing.T) {
	s := begin(t)
	s.land("a")
	expect := func(when, want string) {
		t.Helper()
		if got := s.unknown("a"); got != want {
			t.Errorf("%s: no estimate: %q, want %q", when, got, want)
		}
	}
	const estimated = "it is being estimated"
	expect("at its admission", eta.NotAnalyzed)
	s.Estimate(main, "a", eta.NotAnalyzed)
	expect("not analysed", eta.NotAnalyzed)
	s.Fold(main, events.TopicChanges, &eventsv1.ChangeAnalyzed{Change: apitest.Ref("a"), Base: apitest.Commit("main"),
		Outcome: eventsv1.AnalysisOutcome_ANALYSIS_OUTCOME_ANALYZED, Affected: &eventsv1.Affected{Targets: []*eventsv1.TargetVersion{{Target: "//a"}}}})
	expect("analysed, and nothing is ahead", estimated)
	s.Graph(main, &eventsv1.GraphDelta{Nodes: []*eventsv1.Node{node("a", 1)}})
	expect("analysed", estimated)
	s.Estimate(main, "a", eta.NoDurations)
	expect("analysed, without durations", eta.NoDurations)
	s.Estimate(main, "a", "", 5, 6, 7, 9, 12)
	expect("estimated", "")
	s.Fold(main, events.TopicChanges, &eventsv1.QueuePaused{Who: "sre"})
	expect("paused", eta.Paused)
	s.Estimate(main, "a", eta.Paused)
	s.Fold(main, events.TopicChanges, &eventsv1.QueueResumed{Who: "sre"})
	expect("resumed", estimated)
	s.Fold(main, events.TopicChanges, &eventsv1.ChangeHeld{Change: "a", Hold: "manual", Who: "bob"})
	expect("held", eta.Held)
	s.Estimate(main, "a", eta.Held)
	s.Fold(main, events.TopicChanges, &eventsv1.ChangeReleased{Change: "a", Hold: "manual", Who: "bob"})
	expect("released", estimated)
	s.Estimate(main, "a", eta.Blocked)
	expect("not blocked any more", estimated)
	s.Estimate(main, "a", "", 5, 6, 7, 9, 12)
	s.Graph(main, &eventsv1.GraphDelta{Nodes: []*eventsv1.Node{outcome(node("a", 1), eventsv1.OutcomeState_OUTCOME_STATE_BLOCKED, "//a")}})
	expect("blocked since the last estimate", "whether the mainline fails in its targets too is verified first")
	red := &eventsv1.Node{Mainline: true, Change: &eventsv1.ChangeRef{}, Classes: []*eventsv1.Class{{
		Outcomes: []*eventsv1.Outcome{{State: eventsv1.OutcomeState_OUTCOME_STATE_RED, Version: &eventsv1.TargetVersion{Target: "//a", Hash: "h"}}}}}}
	s.Graph(main, &eventsv1.GraphDelta{Nodes: []*eventsv1.Node{red}})
	expect("blocked by the mainline", eta.Blocked)
	s.Graph(main, &eventsv1.GraphDelta{Nodes: []*eventsv1.Node{node("a", 1)}})
	expect("it meets what is red on the mainline, and has not run", eta.Blocked)
	s.Graph(main, &eventsv1.GraphDelta{Nodes: []*eventsv1.Node{outcome(node("a", 1), eventsv1.OutcomeState_OUTCOME_STATE_GREEN, "//a")}})
	expect("it repairs that", "")
}

// TestAMoveByTheLanderIsNoMoveToTheFront, and a pause by a person is in the story of whoever it keeps waiting.
func TestAMoveByTheLanderIsNoMoveToTheFront(t *testing.T) {
	s := begin(t)
	s.land("a")
	s.land("b")
	s.land("c")
	s.Fold(main, events.TopicChanges, &eventsv1.ChangeMoved{Change: "b", Before: "a", Who: events.ServiceLander, Why: "the remote refuses a"})
	s.Fold(main, events.TopicChanges, &eventsv1.ChangeMoved{Change: "c", Who: "sre"})
	s.Fold(main, events.TopicChanges, &eventsv1.QueuePaused{Who: "sre", Why: "kernel upgrade"})
	s.land("d")
	s.Fold(main, events.TopicChanges, &eventsv1.QueueResumed{Who: "sre"})
	for change, front := range map[string]bool{"a": false, "b": false, "c": true, "d": false} {
		sum, e, _, _ := s.look(change)
		if sum.Urgent != front {
			t.Errorf("%s was moved to the front: %v", change, sum.Urgent)
		}
		var told []string
		for _, line := range e.Timeline {
			if line.Kind == "queue_paused" || line.Kind == "queue_resumed" {
				told = append(told, line.Text)
			}
		}
		if want := []string{"The queue is paused by sre: kernel upgrade; builds continue, nothing lands.", "The queue is resumed by sre."}; !slices.Equal(told, want) {
			t.Errorf("%s is told %q", change, told)
		}
	}
}

// TestWhatIsStillBeingAnalysedIsNamed, and nothing is said of changes ahead where all are analysed.
func TestWhatIsStillBeingAnalysedIsNamed(t *testing.T) {
	s := begin(t)
	s.land("a")
	s.land("b")
	analysed := func(id string) {
		s.Fold(main, events.TopicChanges, &eventsv1.ChangeAnalyzed{Change: apitest.Ref(id), Base: apitest.Commit("main"),
			Outcome: eventsv1.AnalysisOutcome_ANALYSIS_OUTCOME_ANALYZED, Affected: &eventsv1.Affected{Targets: []*eventsv1.TargetVersion{{Target: "//" + id}}}})
	}
	waiting := func() *eventsv1.Node { return &eventsv1.Node{Change: apitest.Ref("b"), Position: 2} }
	why := func() (why, unknown string) {
		s.Read(main, func(q *view.Queue) {
			e, _ := q.Explain("b")
			why = e.Why
		})
		return why, s.unknown("b")
	}
	analysed("b")
	s.Graph(main, &eventsv1.GraphDelta{Nodes: []*eventsv1.Node{waiting()}})
	if why, unknown := why(); why != "a ahead of it is still being analysed." || unknown != "changes ahead of it are not analysed yet" {
		t.Errorf("behind a, which is not analysed: %q, %q", why, unknown)
	}
	analysed("a")
	if why, unknown := why(); strings.Contains(why, "being analysed") || unknown != "it is being estimated" {
		t.Errorf("behind a, which is analysed: %q, %q", why, unknown)
	}
}

// TestATargetThatSeveralCommitsOfAChangeAffectIsCountedOnce, and is without steps if it has none at any of them.
func TestATargetThatSeveralCommitsOfAChangeAffectIsCountedOnce(t *testing.T) {
	s := begin(t)
	s.land("a")
	v := func(target, hash string, trivial bool) *eventsv1.TargetVersion {
		return &eventsv1.TargetVersion{Target: target, Hash: hash, Trivial: trivial}
	}
	s.Fold(main, events.TopicChanges, &eventsv1.ChangeAnalyzed{Change: apitest.Ref("a"), Base: apitest.Commit("main"), Outcome: eventsv1.AnalysisOutcome_ANALYSIS_OUTCOME_ANALYZED,
		Affected: &eventsv1.Affected{Targets: []*eventsv1.TargetVersion{v("//a", "1", true), v("//b", "1", true), v("//a", "2", false), v("//b", "2", true), v("//a", "3", false)}}})
	s.Read(main, func(q *view.Queue) {
		c, _ := q.Change("a")
		if a := c.Analysis; !slices.Equal(a.Targets, []string{"//a", "//b"}) || a.TargetsTotal != 2 || a.TargetsWithoutSteps != 1 {
			t.Errorf("%+v", a)
		}
	})
}

// TestWhyABuildWasAbortedSpeaksOfChanges, and not of what the selector reckons with.
func TestWhyABuildWasAbortedSpeaksOfChanges(t *testing.T) {
	for why, want := range map[string]string{
		"its path is hardly needed any more (0.01)": "other builds are needed more",
		"its path can no longer come about":         "what it assumed of the changes ahead cannot happen any more",
		"k, which it assumed, did not land":         "k, which it assumed, did not land",
		"":                                          "no longer wanted",
	} {
		s := begin(t)
		s.land("a")
		s.Schedule(main, "build-a", "a", nil, "//a")
		s.Fold(main, events.TopicDecisions, &eventsv1.Decision{Items: []*eventsv1.DecisionItem{{Item: &eventsv1.DecisionItem_BuildAborted{
			BuildAborted: &eventsv1.BuildAborted{Build: "build-a", Why: why}}}}})
		s.Read(main, func(q *view.Queue) {
			c, _ := q.Change("a")
			if !slices.ContainsFunc(c.Timeline, func(e view.Event) bool { return e.Text == "Build build-a aborted: "+want+"." }) {
				t.Errorf("%q: %+v", why, c.Timeline)
			}
			if len(c.Builds) != 1 || c.Builds[0].Message != want {
				t.Errorf("%q: %+v", why, c.Builds)
			}
		})
	}
}

// TestWhoWaitsForAChangeThatAffectsEverythingIsSaid on both sides.
func TestWhoWaitsForAChangeThatAffectsEverythingIsSaid(t *testing.T) {
	s := begin(t)
	for _, id := range []string{"a", "all", "b"} {
		s.land(id)
		s.Fold(main, events.TopicChanges, &eventsv1.ChangeAnalyzed{Change: apitest.Ref(id), Base: apitest.Commit("main"),
			Outcome: eventsv1.AnalysisOutcome_ANALYSIS_OUTCOME_ANALYZED, Affected: &eventsv1.Affected{All: id == "all", Targets: []*eventsv1.TargetVersion{{Target: "//" + id}}}})
	}
	s.Graph(main, &eventsv1.GraphDelta{Nodes: []*eventsv1.Node{node("a", 1), node("all", 2, meets("a")), node("b", 3, meets("all"))}})
	for change, want := range map[string]string{"all": "a is ahead of it, and it conflicts with everything.", "b": "all is ahead of it and conflicts with everything."} {
		s.Read(main, func(q *view.Queue) {
			e, _ := q.Explain(change)
			var said []string
			for _, r := range e.Reasons {
				said = append(said, r.Sentence)
			}
			if !strings.Contains(strings.Join(said, "\n"), want) {
				t.Errorf("%s: %q, want %q", change, said, want)
			}
		})
	}
}

// TestAnAbortedBuildStaysAborted though another build proves its versions later. One whose versions were proven before has passed.
func TestAnAbortedBuildStaysAborted(t *testing.T) {
	s := begin(t)
	s.land("a")
	prepared := func(build string, versions ...string) {
		s.Schedule(main, build, "a", nil, "//a", "//b")
		p := &eventsv1.BuildPrepared{Build: build, Change: apitest.Ref("a"), Outcome: eventsv1.PreparationOutcome_PREPARATION_OUTCOME_PREPARED}
		for _, v := range versions {
			p.Versions = append(p.Versions, &eventsv1.TargetVersion{Target: v, Hash: apitest.VersionOf("build-1", v), Part: 1})
		}
		s.Fold(main, events.TopicBuilds, p)
	}
	abort := func(build string) {
		s.Fold(main, events.TopicDecisions, &eventsv1.Decision{StampUs: apitest.Start.Add(time.Hour).UnixMicro(), Items: []*eventsv1.DecisionItem{{Item: &eventsv1.DecisionItem_BuildAborted{
			BuildAborted: &eventsv1.BuildAborted{Build: build, Why: "its path can no longer come about"}}}}})
	}
	prepared("build-1", "//a", "//b")
	prepared("build-2", "//a")
	s.Finish(main, "build-1", "//a", 1, eventsv1.StepOutcome_STEP_OUTCOME_PASSED, "", "")
	abort("build-1")
	abort("build-2")
	after := apitest.Start.Add(2 * time.Hour).UnixMicro()
	s.Fold(main, events.TopicBuilds, &eventsv1.StepFinished{Target: "//b", Hash: apitest.VersionOf("build-1", "//b"), Attempt: 1, Build: "build-3",
		Outcome: eventsv1.StepOutcome_STEP_OUTCOME_PASSED, StartedUs: after, FinishedUs: after})
	s.Read(main, func(q *view.Queue) {
		c, _ := q.Change("a")
		if c.Builds[0].State != view.BuildAborted || c.Builds[1].State != view.BuildPassed {
			t.Errorf("the builds are %+v", c.Builds)
		}
		if b := c.Builds[0]; b.StepsDone != 1 || b.StepsTotal != 2 {
			t.Errorf("a build that was aborted after one of two steps shows %d of %d", b.StepsDone, b.StepsTotal)
		}
	})
}

// TestEventsOfEarlierRevisionsAreMarked, those that were cut out between them too.
func TestEventsOfEarlierRevisionsAreMarked(t *testing.T) {
	s := begin(t)
	s.land("a")
	s.Schedule(main, "build-1", "a", nil, "//a")
	earlier := func() (marked, own int) {
		s.Read(main, func(q *view.Queue) {
			c, _ := q.Change("a")
			for _, e := range c.Timeline {
				if e.Earlier {
					marked++
				} else {
					own++
				}
			}
		})
		return marked, own
	}
	if marked, own := earlier(); marked != 0 || own != 2 {
		t.Errorf("of revision 1 are %d events, of earlier ones %d", own, marked)
	}
	revised := admissionOf("a")
	revised.Revision, revised.RequestId = 2, "revise"
	s.Fold(main, events.TopicChanges, &eventsv1.ChangeRevised{Admission: revised})
	s.Fold(main, events.TopicChanges, &eventsv1.ChangeMoved{Change: "a", Who: "bob"})
	if marked, own := earlier(); marked != 2 || own != 2 {
		t.Errorf("of revision 2 are %d events, of earlier ones %d", own, marked)
	}
	for range 300 {
		s.Fold(main, events.TopicChanges, &eventsv1.ChangeHeld{Change: "a", Hold: "h", Who: "bob"})
		s.Fold(main, events.TopicChanges, &eventsv1.ChangeReleased{Change: "a", Hold: "h", Who: "bob"})
	}
	if marked, own := earlier(); marked != 2 || own < 100 {
		t.Errorf("after many events of revision 2 are %d events, of earlier ones %d", own, marked)
	}
}

// TestWhoWaitsWithTargetsThatAreNotValidReadsTheCauseFirst, though it is rejected only when those ahead of it have left.
func TestWhoWaitsWithTargetsThatAreNotValidReadsTheCauseFirst(t *testing.T) {
	s := begin(t)
	s.land("a")
	s.land("b")
	s.Fold(main, events.TopicChanges, &eventsv1.ChangeAnalyzed{Change: apitest.Ref("b"), Base: apitest.Commit("main"),
		Outcome: eventsv1.AnalysisOutcome_ANALYSIS_OUTCOME_INVALID, Message: "the change makes target definitions that are not valid:\nb/landfall.yaml:3: no field stepz"})
	s.Fold(main, events.TopicChanges, &eventsv1.QueuePaused{Who: "sre"})
	s.Graph(main, &eventsv1.GraphDelta{Nodes: []*eventsv1.Node{node("a", 1), node("b", 2, meets("a"))}})
	const want = "As it stands it cannot land: the change makes target definitions that are not valid: b/landfall.yaml:3: no field stepz."
	s.Read(main, func(q *view.Queue) {
		e, _ := q.Explain("b")
		if e.Why != want || e.Reasons[0].Sentence != want || len(e.Reasons) < 3 {
			t.Errorf("b waits for %+v", e.Reasons)
		}
	})
}

// TestADecisionThatWasRefusedIsToldOnce: the check before landing asks for more, and then it is decided again.
func TestADecisionThatWasRefusedIsToldOnce(t *testing.T) {
	b := newBlame(t, "c")
	now := apitest.Start.Add(time.Hour)
	decided := func(id string, item *eventsv1.DecisionItem) {
		now = now.Add(time.Second)
		b.Fold(main, events.TopicDecisions, &eventsv1.Decision{StampUs: now.UnixMicro(), Items: []*eventsv1.DecisionItem{item}})
		b.Fold(main, events.TopicChanges, &eventsv1.Refused{Change: apitest.Ref("c"), Decision: id, Message: "//x is verified first", StampUs: now.UnixMicro()})
	}
	for _, id := range []string{"d1", "d2"} {
		decided(id, &eventsv1.DecisionItem{Item: &eventsv1.DecisionItem_RejectDecided{RejectDecided: &eventsv1.RejectDecided{Change: apitest.Ref("c"), Decision: id}}})
	}
	decided("d3", &eventsv1.DecisionItem{Item: &eventsv1.DecisionItem_EjectDecided{EjectDecided: &eventsv1.EjectDecided{Change: apitest.Ref("c"), Decision: "d3"}}})
	b.Read(main, func(q *view.Queue) {
		c, _ := q.Change("c")
		var told []string
		for _, e := range c.Timeline[1:] {
			told = append(told, e.Text)
		}
		const refused = "The last check, on the mainline as it stands, does not allow that: //x is verified first"
		const check = "; the last check, on the mainline as it stands, comes before the "
		if want := []string{"It fails as things stand" + check + "rejection.", refused, refused, "It cannot be verified" + check + "ejection.", refused}; !slices.Equal(told, want) {
			t.Errorf("told is %q, want %q", told, want)
		}
	})
}

// TestAnEstimateThatRestsOnNothingIsNotShown: a's target has never run, and the first builds of the queue took seconds, where the
// prior says minutes. What is predicted deviates by more than its mean, and the interval goes from now to hours.
func TestAnEstimateThatRestsOnNothingIsNotShown(t *testing.T) {
	s := begin(t)
	s.land("a")
	s.land("b")
	predict := func(source string, mean, std float64) {
		b := node("b", 2)
		b.Ahead = []*eventsv1.Ahead{{Change: apitest.Ref("a"), Conflicts: true}}
		s.Profile(main, &eventsv1.Profile{Delta: &eventsv1.GraphDelta{Nodes: []*eventsv1.Node{node("a", 1), b}}, Predictions: []*eventsv1.Prediction{
			{Change: apitest.Ref("a"), DurationMeanUs: mean, DurationStdUs: std, DurationSource: source},
			{Change: apitest.Ref("b"), DurationMeanUs: 1e6, DurationStdUs: 1e5, DurationSource: "targets"}}})
		s.Estimate(main, "a", "", 5, 6, 7, 9, 12)
		s.Estimate(main, "b", "", 5, 6, 7, 9, 12)
	}
	for _, c := range []struct {
		source    string
		mean, std float64
		a, b      string
	}{
		{"queue", 707e6, 4023e6, eta.NoDurations, ""}, // what waits for it has as wide an interval
		{"queue", 707e6, 300e6, "", ""},
		{"targets", 8e6, 13e6, "", ""},
	} {
		predict(c.source, c.mean, c.std)
		if a, b := s.unknown("a"), s.unknown("b"); a != c.a || b != c.b {
			t.Errorf("with %v ± %v of %s there is no estimate of a: %q, of b: %q; want %q and %q", c.mean, c.std, c.source, a, b, c.a, c.b)
		}
	}
}
