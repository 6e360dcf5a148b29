package speculation

import (
	"testing"

	eventsv1 "landfall.build/events/v1"
)

// TestAMainlineThatCannotBePreparedIsNotBuiltWithoutEnd: its tries are bounded, a tick gives one more, and another
// head begins anew.
func TestAMainlineThatCannotBePreparedIsNotBuiltWithoutEnd(t *testing.T) {
	q := New()
	offset := int64(0)
	apply := func(f *eventsv1.Fact) *eventsv1.GraphDelta {
		offset++
		q.Apply(f, offset)
		d := q.Decide()
		q.Fold(d)
		return d
	}
	outstanding := func(d *eventsv1.GraphDelta) bool {
		for _, n := range d.GetNodes() {
			if n.Mainline {
				return len(n.Classes) > 0
			}
		}
		return q.published.check != nil && len(q.published.check.Classes) > 0
	}
	push := func(from, to string) *eventsv1.GraphDelta {
		apply(&eventsv1.Fact{Fact: &eventsv1.Fact_MainlineMoved{MainlineMoved: &eventsv1.MainlineMoved{From: from, To: to, Initial: from == ""}}})
		return apply(&eventsv1.Fact{Fact: &eventsv1.Fact_MainlineAnalyzed{MainlineAnalyzed: &eventsv1.MainlineAnalyzed{
			From: from, To: to, Affected: &eventsv1.Affected{Targets: []*eventsv1.TargetVersion{{Target: "//t", Hash: to, Part: 1}}}}}})
	}
	fail := func(head string) *eventsv1.GraphDelta {
		offset++
		return apply(&eventsv1.Fact{Fact: &eventsv1.Fact_BuildPrepared{BuildPrepared: &eventsv1.BuildPrepared{
			Build: head + string(rune('a'+offset)), Change: &eventsv1.ChangeRef{}, Base: head,
			Outcome: eventsv1.PreparationOutcome_PREPARATION_OUTCOME_INFRASTRUCTURE}}})
	}
	push("", "m0")
	if !outstanding(push("m0", "m1")) {
		t.Fatal("a push is not to be verified")
	}
	for try := 1; try <= maxFailedChecks; try++ {
		if got := outstanding(fail("m1")); got != (try < maxFailedChecks) {
			t.Fatalf("after %d failures another build is wanted: %v", try, got)
		}
	}
	if !outstanding(apply(&eventsv1.Fact{Fact: &eventsv1.Fact_Tick{Tick: &eventsv1.Tick{}}})) {
		t.Fatal("a tick gives no further try")
	}
	if outstanding(fail("m1")) {
		t.Fatal("a tick gives more than one further try")
	}
	if !outstanding(push("m1", "m2")) {
		t.Fatal("another head gets no try of its own")
	}
}
