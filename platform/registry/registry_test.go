package registry

import (
	"errors"
	"fmt"
	"testing"

	"google.golang.org/protobuf/proto"

	eventsv1 "landfall.build/events/v1"
)

const success = eventsv1.ModelKind_MODEL_KIND_SUCCESS

func model(version string) *eventsv1.Model {
	return &eventsv1.Model{Kind: success, Version: version, Predictor: []byte("x"), Card: &eventsv1.ModelCard{TrainedUs: 7}}
}

func TestTheLastPromotionIsInUseAndTheOneBeforeItCanComeBack(t *testing.T) {
	r := New()
	for i, x := range []struct {
		m             proto.Message
		inUse, before string
	}{
		{&eventsv1.ModelTrained{Model: model("a1")}, "", ""},
		{&eventsv1.ModelPromoted{Model: model("a1")}, "a1", ""},
		{&eventsv1.ModelPromoted{Model: model("b2")}, "b2", "a1"},
		{&eventsv1.ModelTrained{Model: &eventsv1.Model{Kind: success, Version: "c3", Card: &eventsv1.ModelCard{TrainedUs: 9}}}, "b2", "a1"},
		{&eventsv1.ModelPromoted{Model: model("a1")}, "a1", "b2"},
		{&eventsv1.ModelRolledBack{Kind: success, Version: "a1"}, "", ""},
		{&eventsv1.ModelPromoted{Model: model("b2")}, "b2", ""},
		{&eventsv1.ModelPromoted{}, "b2", ""},
	} {
		r.Apply(x.m)
		if got, before := r.InUse(success).GetVersion(), r.Previous(success).GetVersion(); got != x.inUse || before != x.before {
			t.Errorf("after %d: %q is in use and %q was before, want %q and %q", i, got, before, x.inUse, x.before)
		}
	}
	if r.TrainedAt(success, 9) != 9 || r.TrainedAt(success, 10-maxSkew) != 9 || r.TrainedAt(success, 9-maxSkew) != 7 || r.TrainedAt(eventsv1.ModelKind_MODEL_KIND_DURATION, 9) != 0 {
		t.Error(r.TrainedAt(success, 9), r.TrainedAt(success, 10-maxSkew), r.TrainedAt(success, 9-maxSkew))
	}
	for version, want := range map[string]error{"a": nil, "success-b2": nil, "c": nil, "": ErrNoModel, "z": ErrNoModel} {
		if _, err := r.Find(version); !errors.Is(err, want) {
			t.Errorf("find %q: %v", version, err)
		}
	}
	r.Apply(&eventsv1.ModelTrained{Model: model("a9")})
	if _, err := r.Find("a"); !errors.Is(err, ErrAmbiguous) {
		t.Error(err)
	}
}

func TestOnlyTheNewestKeepTheirPredictors(t *testing.T) {
	r := New()
	for i := range 3 * keptPredictors {
		r.Apply(&eventsv1.ModelPromoted{Model: model(fmt.Sprintf("%04d", i))})
	}
	predictors := 0
	for _, e := range r.Entries {
		if e.HasPredictor() {
			predictors++
		}
	}
	if predictors != keptPredictors || len(r.Entries) != 3*keptPredictors || r.Entries[0].Model.Card == nil {
		t.Errorf("%d of %d are predictors", predictors, len(r.Entries))
	}
}
