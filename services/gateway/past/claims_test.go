package past

import (
	"fmt"
	"testing"
	"time"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/health"
	"landfall.build/platform/journal/memory"
)

func TestThePastSaysWhoHadClaimedWhat(t *testing.T) {
	log := memory.New(memory.Options{Partitions: 3})
	partition := events.PartitionOf(main, 3)
	start := time.Date(2026, 1, 5, 10, 0, 0, 0, time.UTC)
	claim := func(topic, service, instance string, minute int) int64 {
		t.Helper()
		at := start.Add(time.Duration(minute) * time.Minute)
		offsets, err := log.Append(t.Context(), topic, partition, events.Envelope{
			ID: fmt.Sprint(service, minute), Source: service, Instance: instance, Time: at, Term: -1,
			Message: &eventsv1.Claim{Service: service, Instance: instance, ClaimedUs: at.UnixMicro()},
		})
		if err != nil {
			t.Fatal(err)
		}
		return offsets[0]
	}
	claim(events.TopicChanges, events.ServiceLander, "a", 1)
	claim(events.TopicDecisions, events.ServiceSelector, "a", 2)
	second := claim(events.TopicChanges, events.ServiceLander, "b", 10)
	p := New(Options{Log: log, Queue: main, Limits: limits, Every: 1, Bytes: 1 << 20})
	for _, c := range []struct {
		minute           int
		lander, selector string
	}{{11, "b", "a"}, {0, "", ""}, {1, "a", ""}, {5, "a", "a"}} {
		owners, err := p.Owners(t.Context(), start.Add(time.Duration(c.minute)*time.Minute))
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]health.Ownership{}
		for _, o := range owners {
			got[o.Service] = o
			if claimed := o.State == health.StateClaimed; claimed != (o.Instance != "") || claimed == o.Since.IsZero() || claimed != (o.Term != health.NoTerm) || o.Partition != partition {
				t.Errorf("minute %d: %+v", c.minute, o)
			}
		}
		if len(owners) != 4 || got[events.ServiceLander].Instance != c.lander || got[events.ServiceSelector].Instance != c.selector || got[events.ServiceProfiler].Instance != "" {
			t.Errorf("minute %d: %+v, want the lander %q and the selector %q", c.minute, owners, c.lander, c.selector)
		}
		if c.lander == "b" && (got[events.ServiceLander].Term != second || !got[events.ServiceLander].Since.Equal(start.Add(10*time.Minute))) {
			t.Errorf("the lander is %+v", got[events.ServiceLander])
		}
	}
}
