package lander_test

import (
	"fmt"
	"testing"
	"time"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/journal"
)

// b was decided to be red whatever lands before it, because a was red too. The guard refuses the rejection of a, so b might
// be repaired by it: b leaves only by a decision that knows of the refusal.
func TestARejectionFromBeforeTheGuardRefusedAChangeAheadIsVoid(t *testing.T) {
	o := newHarness(t)
	o.poll(0)
	o.remote.versions = map[string][]*eventsv1.TargetVersion{
		"a": {{Target: "//a", Hash: "a"}}, "b": {{Target: "//b", Hash: "b"}}, "c": {{Target: "//b", Hash: "b"}},
	}
	o.append(events.TopicBuilds, events.ServiceBuilder, -1, &eventsv1.StepFinished{Target: "//b", Hash: "b", Attempt: 1, Outcome: eventsv1.StepOutcome_STEP_OUTCOME_FAILED})
	o.admit("a")
	o.admit("b")
	o.decide(rejected("a", 1), rejected("b", 1))
	for range 3 {
		o.poll(time.Second)
	}
	o.wantsAnswers("refused a", "refused b")
	o.decide(rejected("b", 2))
	o.poll(time.Second)
	o.wantsAnswers("refused a", "refused b", "rejected b")
}

// A refusal voids only rejections of changes behind the refused one.
func TestARefusalVoidsNoRejectionOfAChangeAhead(t *testing.T) {
	o := newHarness(t)
	o.poll(0)
	o.remote.versions = map[string][]*eventsv1.TargetVersion{"a": {{Target: "//a", Hash: "a"}}, "b": {{Target: "//b", Hash: "b"}}}
	o.append(events.TopicBuilds, events.ServiceBuilder, -1, &eventsv1.StepFinished{Target: "//a", Hash: "a", Attempt: 1, Outcome: eventsv1.StepOutcome_STEP_OUTCOME_FAILED})
	o.admit("a")
	o.admit("b")
	o.decide(rejected("b", 1), rejected("a", 1))
	for range 3 {
		o.poll(time.Second)
	}
	o.wantsAnswers("refused b", "rejected a")
}

func rejected(change string, decision int) *eventsv1.DecisionItem {
	return &eventsv1.DecisionItem{Item: &eventsv1.DecisionItem_RejectDecided{RejectDecided: &eventsv1.RejectDecided{
		Change: &eventsv1.ChangeRef{Change: change, Revision: 1}, Decision: fmt.Sprintf("reject %s, %d", change, decision),
		Reason: &eventsv1.Reason{Class: eventsv1.ReasonClass_REASON_CLASS_STEP_FAILED, Message: "the step failed"},
	}}}
}

// wantsAnswers compares what the lander has answered.
func (o *harness) wantsAnswers(list ...string) {
	o.Helper()
	var got []string
	o.each(func(e journal.Entry) {
		switch f := e.Message.(type) {
		case *eventsv1.Refused:
			got = append(got, "refused "+f.Change.Change)
		case *eventsv1.ChangeRejected:
			got = append(got, "rejected "+f.Change.Change)
		}
	})
	if fmt.Sprint(got) != fmt.Sprint(list) {
		o.Fatalf("the lander answers %v, want %v", got, list)
	}
}
