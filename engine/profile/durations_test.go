package profile

import (
	"fmt"
	"testing"

	eventsv1 "landfall.build/events/v1"
)

// TestDurationsAreKeptOfTheTargetsThatRanLast: a target that goes on running is known whatever others come and go; one that has not
// run for long is as one that never did.
func TestDurationsAreKeptOfTheTargetsThatRanLast(t *testing.T) {
	p := New()
	for i := range 3 * keptDurations / 1000 {
		delta := &eventsv1.GraphDelta{Durations: []*eventsv1.StepDuration{{Target: "steady", DurationUs: 7_000_000}}}
		for k := range 1000 {
			delta.Durations = append(delta.Durations, &eventsv1.StepDuration{Target: fmt.Sprint(1000*i + k), DurationUs: 1_000_000})
		}
		p.Apply(&eventsv1.Speculation{Delta: delta})
	}
	if r := p.durations.Peek("steady"); r == nil || r.mean != 7_000_000 || r.runs != 20 {
		t.Errorf("of the target that goes on running %+v is known", r)
	}
	if p.durations.Peek("0") != nil || p.durations.Peek(fmt.Sprint(3*keptDurations/1000*1000-1)) == nil {
		t.Error("what ran long ago is known, or what ran last is not")
	}
}
