package view_test

import (
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
		if sum.ETA == nil || !strings.Contains(sum.ETA.Unknown, said) {
			t.Errorf("the estimate is %+v", sum.ETA)
		}
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
