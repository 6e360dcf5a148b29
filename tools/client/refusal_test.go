package client

import (
	"strings"
	"testing"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/services/gateway/api/apitest"
)

// TestExplainNamesTheTargetsThatTheGuardFoundUnproven: as long as the change is pending.
func TestExplainNamesTheTargetsThatTheGuardFoundUnproven(t *testing.T) {
	t.Chdir(t.TempDir())
	f := serve(t)
	f.Fold("main", events.TopicChanges, &eventsv1.MainlineMoved{To: apitest.Commit("main"), Initial: true})
	f.run("land", "a")
	refused := &eventsv1.Refused{Change: apitest.Ref("a"), Base: apitest.Commit("main"), Message: "3 target versions are not proven"}
	for _, target := range []string{"//shop", "//shop/cart", "//docs"} {
		refused.Missing = append(refused.Missing, &eventsv1.TargetVersion{Target: target, Hash: "1", Part: 1})
	}
	f.Fold("main", events.TopicChanges, refused)
	line := "  unproven  //shop, //shop/cart, //docs on " + events.ShortID(apitest.Commit("main")) + "\n"
	for _, command := range []string{"explain", "status"} {
		if out, _, _ := f.run(command, "a"); !strings.Contains(out, line) {
			t.Errorf("%s a does not say %q:\n%s", command, line, out)
		}
	}
	f.run("cancel", "a")
	if out, _, _ := f.run("explain", "a"); strings.Contains(out, "unproven") {
		t.Errorf("explain a names unproven targets of a cancelled change:\n%s", out)
	}
}
