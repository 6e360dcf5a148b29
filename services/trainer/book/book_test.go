package book

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
	b := New()
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
		b.Fold(x.m)
		if got, before := b.InUse(success).GetVersion(), b.Before(success).GetVersion(); got != x.inUse || before != x.before {
			t.Errorf("after %d: %q is in use and %q was before, want %q and %q", i, got, before, x.inUse, x.before)
		}
	}
	if b.TrainedAt(success, 9) != 9 || b.TrainedAt(success, 10-skew) != 9 || b.TrainedAt(success, 9-skew) != 7 || b.TrainedAt(eventsv1.ModelKind_MODEL_KIND_DURATION, 9) != 0 {
		t.Error(b.TrainedAt(success, 9), b.TrainedAt(success, 10-skew), b.TrainedAt(success, 9-skew))
	}
	for version, want := range map[string]error{"a": nil, "success-b2": nil, "c": nil, "": ErrNoModel, "z": ErrNoModel} {
		if _, err := b.Find(version); !errors.Is(err, want) {
			t.Errorf("find %q: %v", version, err)
		}
	}
	b.Fold(&eventsv1.ModelTrained{Model: model("a9")})
	if _, err := b.Find("a"); !errors.Is(err, ErrAmbiguous) {
		t.Error(err)
	}
}

func TestOnlyTheNewestAreKeptWhole(t *testing.T) {
	b := New()
	for i := range 3 * keptWhole {
		b.Fold(&eventsv1.ModelPromoted{Model: model(fmt.Sprintf("%04d", i))})
	}
	whole := 0
	for _, e := range b.Entries {
		if e.Whole() {
			whole++
		}
	}
	if whole != keptWhole || len(b.Entries) != 3*keptWhole || b.Entries[0].Model.Card == nil {
		t.Errorf("%d of %d are whole", whole, len(b.Entries))
	}
}
