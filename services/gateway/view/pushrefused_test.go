package view_test

import (
	"slices"
	"strings"
	"testing"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/services/gateway/api/apitest"
	"landfall.build/services/gateway/view"
)

// TestARefusedPushIsShownFromTheFirstOn, with the remote's sentence first and once, without an estimate, until something lands.
func TestARefusedPushIsShownFromTheFirstOn(t *testing.T) {
	s := begin(t)
	s.land("a")
	s.land("b")
	const said = "main is frozen until Monday"
	intend := func(change string) {
		s.Fold(main, events.TopicChanges, &eventsv1.LandIntended{
			Change: &eventsv1.ChangeRef{Change: change, Revision: 1}, Decision: "d" + change, Base: apitest.Commit("main"), Commits: []string{apitest.Commit(change)},
		})
	}
	for range 2 {
		intend("a")
		s.Fold(main, events.TopicChanges, &eventsv1.LandVoid{
			Change: &eventsv1.ChangeRef{Change: "a", Revision: 1}, Decision: "da", Commit: apitest.Commit("a"), Refused: true, Reason: said, StampUs: 1_700_000_000_000_000,
		})
		sum, e, o, _ := s.look("a")
		if !strings.HasPrefix(sum.Why, "\u201c"+said) || strings.Count(sum.Why, said) != 1 || e.Reasons[0].Code != view.ReasonPushRefused {
			t.Errorf("it waits for %+v", e.Reasons[0])
		}
		if o.Unreachable == nil || !strings.HasPrefix(o.Unreachable.Sentence, "\u201c"+said) {
			t.Errorf("the queue says %+v", o.Unreachable)
		}
		if sum.ETA == nil || sum.ETA.Unknown != "the remote refuses its push" {
			t.Errorf("the estimate is %+v", sum.ETA)
		}
	}
	// Nor is there an estimate of what waits for it, though one was made before.
	s.Graph(main, &eventsv1.GraphDelta{Nodes: []*eventsv1.Node{{Change: refOf("b"), Analyzed: true, Ahead: []*eventsv1.Ahead{{Change: refOf("a")}}}}})
	if sum, _, _, _ := s.look("b"); sum.ETA == nil || sum.ETA.Unknown != "the remote refuses the push of a change ahead of it" {
		t.Errorf("the estimate of what is behind it is %+v", sum.ETA)
	}
	if sum, _, _, _ := s.look("a"); !strings.Contains(sum.Why, "tried 2 times") || !strings.Contains(sum.Why, "2023-11-14 22:13:20 UTC") {
		t.Errorf("after two of them: %s", sum.Why)
	}
	intend("a")
	if sum, _, _, _ := s.look("a"); !strings.HasPrefix(sum.Why, "\u201c"+said) {
		t.Errorf("while it is tried again: %s", sum.Why)
	}
	s.Fold(main, events.TopicChanges, &eventsv1.ChangeLanded{
		Change: &eventsv1.ChangeRef{Change: "a", Revision: 1}, Decision: "da", Base: apitest.Commit("main"), Commits: []string{apitest.Commit("a")},
	})
	if _, _, o, _ := s.look("b"); o.Unreachable != nil {
		t.Errorf("after a landing the queue says %+v", o.Unreachable)
	}
}

// TestPushesThatAreRefusedAlikeAreToldTwiceAtMost: the first with the remote's words, the newest with how many there were, and
// the list of the queue does not quote again what its first line does.
func TestPushesThatAreRefusedAlikeAreToldTwiceAtMost(t *testing.T) {
	s := begin(t)
	s.land("a")
	const said = "main needs a signed-off commit"
	a := &eventsv1.ChangeRef{Change: "a", Revision: 1}
	for range 7 {
		s.Fold(main, events.TopicDecisions, &eventsv1.Decision{Items: []*eventsv1.DecisionItem{{Item: &eventsv1.DecisionItem_LandDecided{
			LandDecided: &eventsv1.LandDecided{Change: a, Decision: "da"}}}}})
		s.Fold(main, events.TopicChanges, &eventsv1.LandIntended{Change: a, Decision: "da", Base: apitest.Commit("main"), Commits: []string{apitest.Commit("a")}})
		s.Fold(main, events.TopicChanges, &eventsv1.LandVoid{Change: a, Decision: "da", Commit: apitest.Commit("a"), Refused: true, Reason: said, StampUs: 1_700_000_000_000_000})
	}
	_, e, _, _ := s.look("a")
	told := ""
	for _, line := range e.Timeline {
		told += line.Text + "\n"
	}
	if strings.Count(told, said) != 1 || strings.Count(told, "7 times by now") != 1 || strings.Count(told, "efused its push") != 2 || strings.Count(told, "Decided to land") != 1 {
		t.Errorf("its story is\n%s", told)
	}
	for _, r := range e.Reasons {
		if r.Code == view.ReasonDeciding {
			t.Errorf("it waits for %q too", r.Sentence)
		}
	}
	var list []view.Summary
	s.Read(main, func(q *view.Queue) { list = q.Pending() })
	if strings.Contains(list[0].Why, said) || !strings.Contains(list[0].Why, "refused 7 times") {
		t.Errorf("in the list it says %q", list[0].Why)
	}
	s.Fold(main, events.TopicChanges, &eventsv1.ChangeEjected{Change: a, Decision: "da", Reason: &eventsv1.Reason{Class: eventsv1.ReasonClass_REASON_CLASS_PUSH_REFUSED, Message: said}})
	if sum, _, _, _ := s.look("a"); !strings.HasPrefix(sum.Why, "Ejected: \u201c"+said) || !strings.Contains(sum.Why, "the remote") {
		t.Errorf("it ended: %s", sum.Why)
	}
}

// TestAPauseByTheRemoteIsShownEverywhere: first and once, with the time at which it began, and nobody has an estimate.
func TestAPauseByTheRemoteIsShownEverywhere(t *testing.T) {
	s := begin(t)
	s.land("a")
	s.land("b")
	const said = "You are not allowed to push code to protected branches on this project."
	a := &eventsv1.ChangeRef{Change: "a", Revision: 1}
	refuse := func() {
		s.Fold(main, events.TopicChanges, &eventsv1.LandIntended{Change: a, Decision: "da", Base: apitest.Commit("main"), Commits: []string{apitest.Commit("a")}})
		s.Fold(main, events.TopicChanges, &eventsv1.LandVoid{
			Change: a, Decision: "da", Commit: apitest.Commit("a"), Refused: true, Concern: eventsv1.RefusalConcern_REFUSAL_CONCERN_QUEUE, Reason: said, StampUs: 1_700_000_000_000_000,
		})
	}
	s.Fold(main, events.TopicPriorities, &eventsv1.Priority{Estimates: &eventsv1.Estimates{Moved: []*eventsv1.Estimate{
		{Change: &eventsv1.ChangeRef{Change: "b", Revision: 1}, P50Us: 1_700_000_100_000_000},
	}}})
	refuse()
	s.Fold(main, events.TopicChanges, &eventsv1.LandingsPaused{Message: said, SinceUs: 1_700_000_000_000_000, StampUs: 1_700_000_060_000_000})
	s.land("c")
	for _, change := range []string{"a", "b", "c"} {
		sum, e, o, _ := s.look(change)
		var all []string
		for _, r := range e.Reasons {
			all = append(all, r.Sentence)
		}
		if text := strings.Join(all, " "); !strings.HasPrefix(sum.Why, "\u201c"+said) || strings.Count(text, said) != 1 ||
			e.Reasons[0].Code != view.ReasonPausedByRemote || !strings.Contains(sum.Why, "since 2023-11-14 22:13:20 UTC") {
			t.Errorf("%s waits for %q", change, all)
		}
		if sum.ETA == nil || !strings.HasPrefix(sum.ETA.Unknown, "landings are paused: ") || !sum.ETA.Median.IsZero() {
			t.Errorf("the estimate of %s is %+v", change, sum.ETA)
		}
		if o.PausedByRemote == nil || o.PausedByRemote.Message != said || o.PausedByRemote.Since.Unix() != 1_700_000_000 || o.Unreachable != nil {
			t.Errorf("the queue says %+v, %+v", o.PausedByRemote, o.Unreachable)
		}
		told := 0
		for _, line := range e.Timeline {
			if line.Kind == view.ReasonPausedByRemote {
				told++
			}
		}
		if told != 1 {
			t.Errorf("the timeline of %s tells of it %d times", change, told)
		}
	}
	s.Fold(main, events.TopicChanges, &eventsv1.LandingsResumed{StampUs: 1_700_000_070_000_000})
	sum, e, o, _ := s.look("b")
	if o.PausedByRemote != nil || strings.Contains(sum.ETA.Unknown, "paused") || strings.Contains(sum.Why, said) ||
		!slices.ContainsFunc(e.Timeline, func(line view.Event) bool { return line.Kind == "landings_resumed" }) {
		t.Errorf("once it takes pushes again: %+v, %+v, %s", o.PausedByRemote, sum.ETA, sum.Why)
	}
}

// TestLandingsThatGoOnWithoutAnyAreNotSaidToBeTaken: the remote has refused another change in other words, so it is not known to
// refuse every push. It has taken none.
func TestLandingsThatGoOnWithoutAnyAreNotSaidToBeTaken(t *testing.T) {
	const others = "It is no longer known that the remote refuses every push; landings go on."
	for how, want := range map[string]string{"refused": others, "landed": "The remote takes pushes again; landings go on."} {
		s := begin(t)
		for _, change := range []string{"a", "b", "c"} {
			s.land(change)
		}
		void := func(change, said string, atUS int64) {
			ref := &eventsv1.ChangeRef{Change: change, Revision: 1}
			s.Fold(main, events.TopicChanges, &eventsv1.LandIntended{Change: ref, Decision: "d" + change, Base: apitest.Commit("main"), Commits: []string{apitest.Commit(change)}})
			s.Fold(main, events.TopicChanges, &eventsv1.LandVoid{Change: ref, Decision: "d" + change, Commit: apitest.Commit(change), Refused: true, Reason: said, StampUs: atUS})
		}
		void("a", "frozen", 1_700_000_000_000_000)
		s.Fold(main, events.TopicChanges, &eventsv1.LandingsPaused{Message: "frozen", SinceUs: 1_700_000_000_000_000, StampUs: 1_700_000_000_000_000})
		if how == "refused" {
			void("b", "policy", 1_700_000_005_000_000)
		} else {
			a := &eventsv1.ChangeRef{Change: "a", Revision: 1}
			s.Fold(main, events.TopicChanges, &eventsv1.LandIntended{Change: a, Decision: "da", Base: apitest.Commit("main"), Commits: []string{apitest.Commit("a")}})
			s.Fold(main, events.TopicChanges, &eventsv1.ChangeLanded{Change: a, Decision: "da", Base: apitest.Commit("main"), Commits: []string{apitest.Commit("a")}, StampUs: 1_700_000_005_000_000})
		}
		s.Fold(main, events.TopicChanges, &eventsv1.LandingsResumed{StampUs: 1_700_000_006_000_000})
		_, e, _, _ := s.look("c")
		told := ""
		for _, line := range e.Timeline {
			if line.Kind == "landings_resumed" {
				told = line.Text
			}
		}
		if told != want {
			t.Errorf("%s: %q", how, told)
		}
	}
}

// TestARefusedChangeIsNamedWhileItIsTheOnlyOne, in the line of the queue and in a pause: others may land.
func TestARefusedChangeIsNamedWhileItIsTheOnlyOne(t *testing.T) {
	s := begin(t)
	s.land("a")
	s.land("b")
	const said = "frozen/ is frozen until Monday"
	refuse := func(change string) {
		ref := &eventsv1.ChangeRef{Change: change, Revision: 1}
		s.Fold(main, events.TopicChanges, &eventsv1.LandIntended{Change: ref, Decision: "d" + change, Base: apitest.Commit("main"), Commits: []string{apitest.Commit(change)}})
		s.Fold(main, events.TopicChanges, &eventsv1.LandVoid{Change: ref, Decision: "d" + change, Commit: apitest.Commit(change), Refused: true, Reason: said,
			Concern: eventsv1.RefusalConcern_REFUSAL_CONCERN_QUEUE, StampUs: 1_700_000_000_000_000})
	}
	const when = "2023-11-14 22:13:20 UTC"
	refuse("a")
	if _, _, o, _ := s.look("b"); o.Unreachable == nil || o.Unreachable.Sentence != "\u201c"+said+"\u201d: the remote refuses the push of a, most recently at "+when+"; it is tried again within a minute, and others land if the remote takes them." {
		t.Errorf("the queue says %+v", o.Unreachable)
	}
	s.Fold(main, events.TopicChanges, &eventsv1.LandingsPaused{Message: said, SinceUs: 1_700_000_000_000_000, StampUs: 1_700_000_000_000_000})
	if _, _, o, _ := s.look("b"); o.PausedByRemote.Sentence != "\u201c"+said+"\u201d: the remote has refused a since "+when+" in words that concern every push, so landings are paused; the next change that is ready is tried at once, and a again within a minute, or at once after a resume." {
		t.Errorf("paused: %s", o.PausedByRemote.Sentence)
	}
	refuse("b")
	if _, _, o, _ := s.look("b"); !strings.Contains(o.PausedByRemote.Sentence, "has refused every push since "+when) {
		t.Errorf("once b is refused too: %s", o.PausedByRemote.Sentence)
	}
	s.Fold(main, events.TopicChanges, &eventsv1.LandingsResumed{StampUs: 1_700_000_070_000_000})
	if _, _, o, _ := s.look("b"); !strings.Contains(o.Unreachable.Sentence, "the remote refuses the pushes since the last landing") {
		t.Errorf("of two refused changes the queue says %+v", o.Unreachable)
	}
}
