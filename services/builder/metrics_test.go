package builder

import (
	"testing"
	"time"

	eventsv1 "landfall.build/events/v1"
)

// TestTheTimeOfWorkersIsUsedWastedOrIdle: two workers for ten seconds, one of which works for six.
func TestTheTimeOfWorkersIsUsedWastedOrIdle(t *testing.T) {
	now := time.Date(2026, 1, 5, 10, 0, 0, 0, time.UTC)
	m := newMetrics(nil, "default")
	m.workers, m.at = 2, now
	m.pass(now.Add(4 * time.Second))
	m.busy = 1
	m.pass(now.Add(10 * time.Second))
	if m.idle != 14*time.Second {
		t.Errorf("idle for %s", m.idle)
	}
	for outcome, took := range map[eventsv1.StepOutcome]time.Duration{
		eventsv1.StepOutcome_STEP_OUTCOME_PASSED: 1, eventsv1.StepOutcome_STEP_OUTCOME_FAILED: 2, eventsv1.StepOutcome_STEP_OUTCOME_TIMED_OUT: 4,
		eventsv1.StepOutcome_STEP_OUTCOME_ABORTED: 8, eventsv1.StepOutcome_STEP_OUTCOME_COULD_NOT_RUN: 16,
	} {
		m.step("q", &eventsv1.StepFinished{Outcome: outcome, FinishedUs: (took * time.Second).Microseconds()})
	}
	if m.used != 7*time.Second || m.wasted != 24*time.Second {
		t.Errorf("used %s, wasted %s", m.used, m.wasted)
	}
}
