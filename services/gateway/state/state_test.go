package state

import (
	"testing"

	eventsv1 "landfall.build/events/v1"
	"landfall.build/services/gateway/admission"
	"landfall.build/services/gateway/view"
)

// TestAnswersOutliveASnapshot, those for good and those of the moment.
func TestAnswersOutliveASnapshot(t *testing.T) {
	q := New("main", view.DefaultLimits())
	q.Answers.put("mine", Given{Answer: admission.Answer{Refused: &eventsv1.RequestRefused{RequestId: "mine", Change: "a"}}, Delivery: "d1"})
	q.Answers.put("other", Given{Answer: admission.Answer{Admitted: &eventsv1.Admission{RequestId: "other", Change: "b"}}})
	frozen, err := q.Freeze()
	if err != nil {
		t.Fatal(err)
	}
	thawed, err := Thaw(frozen, "main", view.DefaultLimits())
	if err != nil {
		t.Fatal(err)
	}
	kept := &thawed.Answers
	a, _ := kept.Get("mine")
	b, _ := kept.Get("other")
	if !kept.HasRefused("d1") || kept.Has("mine") || !kept.Has("other") || a.Delivery != "d1" || a.Refused.GetChange() != "a" || b.Admitted.GetChange() != "b" {
		t.Errorf("%+v", kept)
	}
}
