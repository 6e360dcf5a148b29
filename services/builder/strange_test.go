package builder

import (
	"testing"
	"time"

	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/configuration"
	"landfall.build/platform/journal/memory"
)

// TestABuilderLeavesQueuesThatItDoesNotKnowToOthers: its configuration is older than the queue. The first record of a build
// stands, so one that says only that this builder knows nothing of the queue would count against the change.
func TestABuilderLeavesQueuesThatItDoesNotKnowToOthers(t *testing.T) {
	s := newSite(t, memory.Options{})
	base := s.commit("", scripts(map[string]string{"a": "true"}))
	knows := s.config
	older := *s.config
	older.Queues = map[string]configuration.Queue{}
	s.config = &older
	s.start("older")
	b := s.scheduled("b1", base, asked("//a:t")...)
	b.Change = change("C", pick(base, base))
	s.decide(b)
	time.Sleep(500 * time.Millisecond) // it would have said so by then
	s.config = knows
	s.start("newer")
	if p := s.prepared("b1"); p.Outcome != eventsv1.PreparationOutcome_PREPARATION_OUTCOME_PREPARED {
		t.Errorf("the first record says %v: %s", p.Outcome, p.Message)
	}
}
