package client

import (
	"strings"
	"testing"
	"time"

	"landfall.build/services/gateway/analytics"
)

func TestFiguresAreAWeekALineTheNewestFirst(t *testing.T) {
	a := analytics.None(analytics.Question{Queue: "shop", Weeks: 4})
	a.Missing = nil
	print := func(shadow bool) string {
		var out strings.Builder
		writeAnalytics(&out, a, shadow)
		return out.String()
	}
	if got, want := print(true), "queue shop: no change has left it in the last 4 weeks\n"; got != want {
		t.Errorf("it prints %q, want %q", got, want)
	}
	a.Verdicts = []analytics.WeekOfVerdicts{{Week: "2026-01-05", Rejected: 1}, {Week: "2026-01-12", Landed: 7, Rejected: 3, Conflicting: 1, Confirmed: 1, Contradicted: 1, Ejected: 2}}
	a.Waits = []analytics.WeekOfWaits{{Week: "2026-01-12", P50: 61, P95: 3700}}
	a.Builds = []analytics.WeekOfBuilds{{Week: "2026-01-12", PerChange: 1.25}}
	a.Work = []analytics.WeekOfWork{{Week: "2026-01-12", Hours: 12.04}}
	at := time.Date(2026, 1, 14, 10, 0, 0, 0, time.Local)
	a.Rejected = []analytics.RejectedChange{
		{Change: "a", At: at, Class: "step_failed", Targets: []string{"//x", "//y"}, Since: "passed", Title: "one", Author: "Ada"},
		{Change: "b", At: at, Class: "merge_conflict", Title: "two\x1b[31m", Author: "Bo"},
	}
	want := `queue shop is a shadow: this is what it would have done; it pushed nothing
WEEK OF WOULD LAND WAIT P50 P95 BUILDS WORKER HOURS REJECTED FAILED AGAIN PASSED SINCE EJECTED
2026-01-12 7 1m1s 1h1m40s 1.2 12.0 3 1 1 2
2026-01-05 0 - - 0.0 0.0 1 0 0 0
REJECTED AT WHY SINCE TITLE
a 2026-01-14 10:00:00 failed: //x, //y passed one (Ada)
b 2026-01-14 10:00:00 merge conflict - ` + Plain("two\x1b[31m") + ` (Bo)`
	if got := print(true); strings.Join(strings.Fields(got), " ") != strings.Join(strings.Fields(want), " ") {
		t.Errorf("it prints\n%s\nwant\n%s", got, want)
	}
	if got := print(false); strings.Contains(got, "shadow") || !strings.Contains(got, "WEEK OF     LANDED") {
		t.Errorf("of a queue that lands it prints\n%s", got)
	}
	a = analytics.None(analytics.Question{Queue: "shop", Weeks: 4})
	if got := print(false); got != a.Missing.Message+"\n"+a.Missing.Advice+"\n" {
		t.Errorf("without a history it prints %q", got)
	}
}
