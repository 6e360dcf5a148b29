package client

import (
	"strings"
	"testing"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/services/gateway/api/apitest"
)

// A file that does not merge may have any name.
func TestWhoSteersAChangeIsShownPlainText(t *testing.T) {
	t.Chdir(t.TempDir()) // outside of a clone the gateway looks refs up
	f := serve(t)
	f.run("land", "a")
	f.run("land", "b")
	f.Fold("main", events.TopicChanges, &eventsv1.ChangeAnalyzed{Change: apitest.Ref("b"), Base: apitest.Commit("main"), Outcome: eventsv1.AnalysisOutcome_ANALYSIS_OUTCOME_UNMERGEABLE,
		Message: "CONFLICT (content): Merge conflict in e\x1b]0;evil\a\x1b[2J.txt"})
	out, progress, code := f.run("priority", "b", "--front")
	if code != 0 || !strings.Contains(out, "Merge conflict in e") {
		t.Fatalf("exit %d: %s%s", code, out, progress)
	}
	if strings.ContainsAny(out, "\x1b\a") {
		t.Errorf("it is shown %q", out)
	}
}
