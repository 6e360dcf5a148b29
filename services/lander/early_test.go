package lander_test

import (
	"testing"
	"time"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
)

// TestADecisionThatIsReadBeforeItsAdmissionIsNotLost: topics are read one after the other, and a lander may be stopped in
// between for as long as it takes to admit a change and to decide it.
func TestADecisionThatIsReadBeforeItsAdmissionIsNotLost(t *testing.T) {
	o := newHarness(t)
	o.poll(0)
	o.remote.versions = map[string][]*eventsv1.TargetVersion{"a": {{Target: "//a", Hash: "a"}}}
	o.append(events.TopicBuilds, events.ServiceBuilder, -1, &eventsv1.StepFinished{Target: "//a", Hash: "a", Attempt: 1, Outcome: eventsv1.StepOutcome_STEP_OUTCOME_FAILED})
	o.decide(rejected("a", 1))
	o.poll(time.Second)
	o.admit("a")
	o.poll(time.Second)
	o.wantsAnswers("rejected a")
}
