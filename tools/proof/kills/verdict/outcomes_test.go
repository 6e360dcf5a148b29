package verdict

import (
	"fmt"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/journal/memory"
)

// TestALandingThatReadersMissOrHandleTwiceIsFound: a repeat is none.
func TestALandingThatReadersMissOrHandleTwiceIsFound(t *testing.T) {
	for name, c := range map[string]struct {
		outcomes []int64 // sequences of "landed"
		problems int
	}{
		"once": {[]int64{8}, 0}, "repeated": {[]int64{8, 8, 6}, 0}, "missed": {nil, 1}, "twice": {[]int64{8, 10}, 1},
	} {
		log := memory.New(memory.Options{Partitions: 1})
		put := func(topic, source string, term int64, m proto.Message) int64 {
			offsets, err := log.Append(t.Context(), topic, 0, events.Envelope{ID: fmt.Sprint(m), Source: source, Queue: "main", Term: term, Message: m})
			if err != nil {
				t.Fatal(err)
			}
			return offsets[0]
		}
		term := put(events.TopicChanges, events.ServiceLander, -1, &eventsv1.Claim{Service: events.ServiceLander})
		ref := &eventsv1.ChangeRef{Change: "a", Revision: 1}
		put(events.TopicChanges, events.ServiceGateway, -1, &eventsv1.ChangeAdmitted{Admission: &eventsv1.Admission{Change: "a", Revision: 1, LandingCommits: []*eventsv1.LandingCommit{{Head: "a"}}}})
		put(events.TopicChanges, events.ServiceLander, term, &eventsv1.LandIntended{Change: ref, Commits: []string{"t"}})
		put(events.TopicChanges, events.ServiceLander, term, &eventsv1.ChangeLanded{Change: ref, Commits: []string{"t"}})
		for _, sequence := range c.outcomes {
			put(events.TopicOutcomes, events.ServiceOutcomes, -1, &eventsv1.ChangeOutcome{Queue: "main", Subject: "a", State: "landed", Sequence: sequence})
		}
		problems, err := Outcomes(t.Context(), log, time.Millisecond)
		if err != nil || len(problems) != c.problems {
			t.Errorf("%s: %v, %v", name, problems, err)
		}
	}
}
