package lander

import (
	"fmt"
	"strings"
	"testing"

	"landfall.build/engine/targets"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/buildgraph"
	"landfall.build/platform/configuration"
)

// TestALandingOfMoreTargetsThanARecordHoldsIsVerifiedAsAWhole: an intention that cannot be written would hold up its queue for ever.
func TestALandingOfMoreTargetsThanARecordHoldsIsVerifiedAsAWhole(t *testing.T) {
	loader := buildgraph.NewLoader(configuration.Queue{Analysis: configuration.Analysis{Adapter: configuration.AdapterWholeRepository}}, nil)
	studied := &buildgraph.Result{Deleted: []string{"//gone"}}
	for i, tree := range []string{"before", "after"} {
		part, _, err := loader.Part(t.Context(), nil, tree)
		if err != nil {
			t.Fatal(err)
		}
		if studied.Base = part; i == 1 {
			studied.Parts = append(studied.Parts, part)
		}
	}
	studied.Base.Tree = "before"
	for i := range 100 {
		studied.Targets = append(studied.Targets, &eventsv1.TargetVersion{Target: fmt.Sprint("//", i), Hash: "h", Part: 1})
	}
	if versions, deleted := bounded(studied); len(versions) != 100 || len(deleted) != 1 {
		t.Errorf("%d versions, %v", len(versions), deleted)
	}
	studied.Targets[0].Target += strings.Repeat("x", maxVersionBytes)
	if versions, deleted := bounded(studied); len(versions) != 1 || versions[0].Target != targets.Repository || len(deleted) != 0 {
		t.Errorf("%d versions, %v", len(versions), deleted)
	}
}
