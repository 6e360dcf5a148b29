package view_test

import (
	"slices"
	"testing"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/services/gateway/view"
)

// TestSinceListsWhatHappenedLateToAChangeThatHadLeft: a step of a cancelled change ends after another change was cancelled too.
func TestSinceListsWhatHappenedLateToAChangeThatHadLeft(t *testing.T) {
	s := begin(t)
	s.land("early")
	s.land("other")
	s.Fold(main, events.TopicDecisions, &eventsv1.Decision{Items: []*eventsv1.DecisionItem{{Item: &eventsv1.DecisionItem_BuildScheduled{
		BuildScheduled: &eventsv1.BuildScheduled{Build: "b", Change: &eventsv1.AssumedChange{Change: &eventsv1.ChangeRef{Change: "early", Revision: 1}}}}}}})
	s.Fold(main, events.TopicChanges, &eventsv1.ChangeCancelled{Change: "early"})
	s.Fold(main, events.TopicChanges, &eventsv1.ChangeCancelled{Change: "other"})
	var since uint64
	s.Read(main, func(q *view.Queue) { since = q.Sequence() })
	s.Fold(main, events.TopicBuilds, &eventsv1.StepFinished{Build: "b", Target: "//t", Hash: "h", Attempt: 1, Outcome: eventsv1.StepOutcome_STEP_OUTCOME_FAILED})
	s.Read(main, func(q *view.Queue) {
		updates := q.Since(since, nil)
		if !slices.ContainsFunc(updates, func(u view.Update) bool { return u.Change == "early" && len(u.Events) == 1 }) {
			t.Errorf("after %d it lists %+v", since, updates)
		}
	})
}
