package client

import (
	"strings"
	"testing"
	"time"

	"landfall.build/services/gateway/view"
)

func TestAStatusNamesTheFilesThatNoTargetCovers(t *testing.T) {
	var out strings.Builder
	writeChange(&out, time.Time{}, view.Change{Analysis: &view.Analysis{Outcome: "analyzed", TargetsTotal: 1, Targets: []string{"//app"},
		Uncovered: &view.Uncovered{Files: []string{"run.sh"}, FilesTotal: 1, Policy: "warn", Ignored: []string{"README.md", "a\x1b.md"}, IgnoredTotal: 2}}})
	for _, line := range []string{
		"  affects   1 target: //app\n",
		"  uncovered 1 file (analysis.uncovered: warn): run.sh\n",
		"  ignored   2 files that no target covers: README.md, a",
	} {
		if !strings.Contains(out.String(), line) {
			t.Errorf("%q is not in\n%s", line, out.String())
		}
	}
	if strings.Contains(out.String(), "\x1b") {
		t.Error("a path steers the terminal")
	}
}

func TestEventsOfEarlierRevisionsAreFolded(t *testing.T) {
	out := &strings.Builder{}
	writeTimeline(out, []view.Event{{Text: "first", Earlier: true}, {Text: "second", Earlier: true}, {Text: "third"}})
	lines := strings.Split(out.String(), "\n")
	if len(lines) != 3 || lines[0] != "  2 events of earlier revisions (--json lists them)" || !strings.HasSuffix(lines[1], "  third") {
		t.Errorf("the timeline is %q", lines)
	}
}
