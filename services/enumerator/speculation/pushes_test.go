package speculation

import (
	"testing"

	eventsv1 "landfall.build/events/v1"
)

func fact(t *testing.T, q *Queue, offset int64, facts ...*eventsv1.Fact) {
	t.Helper()
	for i, f := range facts {
		q.Apply(f, offset+int64(i))
	}
	q.Fold(q.Decide())
}

func push(from, to string) *eventsv1.Fact {
	return &eventsv1.Fact{Fact: &eventsv1.Fact_MainlineMoved{MainlineMoved: &eventsv1.MainlineMoved{From: from, To: to, Initial: from == ""}}}
}

func pushAnalyzed(from, to, hash string) *eventsv1.Fact {
	return &eventsv1.Fact{Fact: &eventsv1.Fact_MainlineAnalyzed{MainlineAnalyzed: &eventsv1.MainlineAnalyzed{From: from, To: to, Affected: &eventsv1.Affected{
		Targets: []*eventsv1.TargetVersion{{Target: "t", Hash: hash, Part: 1}},
	}}}}
}

// M23a: two pushes that are analysed in the other order leave the mainline as the later one made it; asking for
// a version that it has no more would never end.
func TestM23aOfTwoPushesTheLaterOneIsVerified(t *testing.T) {
	q := New()
	settings := &eventsv1.Fact{Fact: &eventsv1.Fact_Settings{Settings: &eventsv1.QueueSettings{Hash: "s", Steps: &eventsv1.StepPolicy{}}}}
	fact(t, q, 1, settings, push("", "m0"), push("m0", "m1"), push("m1", "m2"))
	fact(t, q, 5, pushAnalyzed("m1", "m2", "second"))
	if q.published[""] != nil && len(q.published[""].Classes) > 0 && q.publishedMainline.Analyzed {
		t.Fatalf("decisions may be taken though a push is not analysed: %v", q.publishedMainline)
	}
	fact(t, q, 6, pushAnalyzed("m0", "m1", "first"))
	n := q.published[""]
	if !q.publishedMainline.Analyzed || n == nil || len(n.Classes) != 1 || len(n.Classes[0].Targets) != 1 || n.Classes[0].Targets[0].Hash != "second" {
		t.Fatalf("the mainline's own node is %v on %v", n, q.publishedMainline)
	}
	passed := &eventsv1.Fact{Fact: &eventsv1.Fact_StepFinished{StepFinished: &eventsv1.StepFinished{
		Target: "t", Hash: "second", Attempt: 1, Outcome: eventsv1.StepOutcome_STEP_OUTCOME_PASSED}}}
	fact(t, q, 7, passed)
	if n := q.published[""]; len(n.Classes) != 0 {
		t.Fatalf("after its version passed: %v", n)
	}
}
