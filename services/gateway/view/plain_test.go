package view_test

import (
	"slices"
	"strings"
	"testing"

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
	expect("analysed, unlike changes ahead", "changes ahead of it are not analysed yet")
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
