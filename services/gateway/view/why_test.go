package view

import (
	"testing"

	eventsv1 "landfall.build/events/v1"
)

func TestAReasonNamesTheTargetsThatItsMessageDoesNot(t *testing.T) {
	failed := func(targets ...string) (out []*eventsv1.Proof) {
		for _, target := range targets {
			out = append(out, &eventsv1.Proof{Version: &eventsv1.TargetVersion{Target: target}})
		}
		return out
	}
	for want, reason := range map[string]*eventsv1.Reason{
		`Command "test" failed (in //a and //b)`: {Message: `Command "test" failed.`, Failed: failed("//b", "//a", "//b")},
		"//a failed":                             {Message: "//a failed.", Failed: failed("//a")},
		"it does not merge":                      {Message: "it does not merge"},
	} {
		if got := reasonText(reason, nil); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
