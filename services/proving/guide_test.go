package proving

import (
	"os"
	"strings"
	"testing"
)

// TestTheGuideNamesEveryRuleAndTrouble, and nothing that is not there.
func TestTheGuideNamesEveryRuleAndTrouble(t *testing.T) {
	text, err := os.ReadFile("../../docs/guides/proof.md")
	if err != nil {
		t.Fatal(err)
	}
	guide := string(text)
	for _, r := range Rules() {
		if !strings.Contains(guide, "| `"+string(r.Rule)+"` | "+r.Says+" | "+r.Without+" |") {
			t.Errorf("the guide does not say of %s what rules.go says", r.Rule)
		}
	}
	for _, trouble := range troubleNames {
		if !strings.Contains(guide, trouble.name) {
			t.Errorf("the guide does not have the trouble %q", trouble.name)
		}
	}
	for _, known := range KnownFaults() {
		if !strings.Contains(guide, "`"+known.String()+"`") {
			t.Errorf("the guide does not have the known fault %q", known)
		}
	}
}
