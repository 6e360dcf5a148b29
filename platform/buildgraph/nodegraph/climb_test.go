package nodegraph

import "testing"

func TestAClimbIsMadeOfTwoDotsAlone(t *testing.T) {
	for spec, want := range map[string]bool{
		"..": true, "../": true, "../..": true, "./../../.": true, "../../../../../../../..": true,
		"../../../../../../../../..": false, ".": false, "": false, "...": false, "../...": false, "..../..": false, "../a": false, "a/..": false,
	} {
		if got := isClimb(spec); got != want {
			t.Errorf("%q: %v", spec, got)
		}
	}
}
