package doctor

import (
	"testing"

	"landfall.build/services/gateway/view"
)

// TestARefusedPushIsNoMainlineThatIsAway: the remote was reached, and others may land.
func TestARefusedPushIsNoMainlineThatIsAway(t *testing.T) {
	for kind, want := range map[string]string{view.ReasonPushRefused: "change_refused", "unreadable": "mainline_unreachable", "push_unanswered": "mainline_unreachable"} {
		code := troubleCode(&view.Trouble{Kind: kind})
		if _, known := meanings[code]; code != want || !known {
			t.Errorf("%s is %s (known: %v), want %s", kind, code, known, want)
		}
	}
}
