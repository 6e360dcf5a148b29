package clickhouse_test

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"google.golang.org/protobuf/proto"

	"landfall.build/events"
	"landfall.build/events/seedtest"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/journal"
	"landfall.build/platform/journal/memory"
	"landfall.build/tools/replay/replaytest"
)

// comparedViews are what analysts ask, with the same of a fold.
var comparedViews = []struct {
	view string
	// The key of a row, in SQL, and its figures.
	key, figures string
	of           func(*folded) figures
}{
	{"depth_by_hour", "queue, hour", "mean_depth, deepest, entered, left", (*folded).depths},
	{"refusals_by_week", "queue, week, cause", "refusals, changes", (*folded).refused},
	{"rejections_by_target", "queue, target", "rejections, changes", (*folded).rejecting},
	{"cost_per_change", "queue, change, revision", "steps, seconds", (*folded).costs},
	{"utilisation_by_hour", "pool, hour", "busy, workers, used, at_work", (*folded).utilisation},
	{"waits_by_week", "queue, week", "landed, mean, admission, analysis, worker, building, behind, push", (*folded).waits},
	{"accuracy_by_week", "queue, week", "changes, predicted_rate, landed_rate, brier, calibration_error, durations, predicted_seconds, mean_seconds, mean_error, covered", (*folded).accuracies},
	{"target_rates", "queue, target", "versions, attempts, failure_rate, flake_rate", (*folded).rates},
}

// rowsOf returns the rows of a view.
func rowsOf(t testing.TB, c driver.Conn, view, key, wanted string) figures {
	t.Helper()
	texts, numbers := strings.Split(key, ", "), strings.Split(wanted, ", ")
	for i := range texts {
		texts[i] = "toString(" + texts[i] + ")"
	}
	for i := range numbers {
		numbers[i] = "toFloat64(" + numbers[i] + ")"
	}
	found, err := c.Query(t.Context(), fmt.Sprintf("SELECT trim(BOTH ' ' FROM concat(%s)), [%s] FROM %s", strings.Join(texts, ", ' ', "), strings.Join(numbers, ", "), view))
	if err != nil {
		t.Fatalf("%s: %v", view, err)
	}
	defer found.Close()
	list := figures{}
	for found.Next() {
		var key string
		var values []float64
		if err := found.Scan(&key, &values); err != nil {
			t.Fatal(err)
		}
		if list[key] != nil {
			t.Errorf("%s has two rows of %s", view, key)
		}
		list[key] = values
	}
	if err := found.Err(); err != nil {
		t.Fatalf("%s: %v", view, err)
	}
	return list
}

// sameFigures compares a view with a fold. Views round to three decimals, some figures to four.
func sameFigures(t testing.TB, view, names string, want, got figures) {
	t.Helper()
	for _, key := range slices.Sorted(maps.Keys(want)) {
		for i, name := range strings.Split(names, ", ") {
			if got[key] == nil {
				t.Errorf("%s has no row of %s", view, key)
				break
			}
			if w, g := want[key][i], got[key][i]; math.Abs(w-g) > 0.0006 || math.IsNaN(w) != math.IsNaN(g) {
				t.Errorf("%s, %s: %s is %g in the log, and %g in the view", view, key, name, w, g)
			}
		}
	}
	for _, key := range slices.Sorted(maps.Keys(got)) {
		if want[key] == nil {
			t.Errorf("%s has a row of %s: %v", view, key, got[key])
		}
	}
}

// compareViews compares all, and returns how many rows each has.
func compareViews(t testing.TB, dsn string, log journal.Log) map[string]int {
	t.Helper()
	c := connectTo(t, dsn)
	f := foldForAnalysts(t, log)
	rows := map[string]int{}
	for _, v := range comparedViews {
		want := v.of(f)
		sameFigures(t, v.view, v.figures, want, rowsOf(t, c, v.view, v.key, v.figures))
		rows[v.view] = len(want)
	}
	return rows
}

// fillWithInventions makes three weeks of events, and their history.
func fillWithInventions(t testing.TB, dsn string, seed uint64) journal.Log {
	t.Helper()
	log := memory.New(memory.Options{Partitions: 2})
	invent := newInventor(seed, log)
	invent.every = 10 * time.Minute
	for range 3000 {
		invent.next(t)
	}
	_, stop := run(t, dsn, log, 10*time.Millisecond)
	caughtUp(t, dsn, log)
	stop()
	return log
}

func TestWhatAnalystsAskIsAFoldOfTheLog(t *testing.T) {
	dsn := database(t)
	log := fillWithInventions(t, dsn, seedtest.Of(t))
	for view, rows := range compareViews(t, dsn, log) {
		if rows < 3 {
			t.Errorf("%s was compared in %d rows", view, rows)
		}
	}
}

// TestTheTablesOfAnOlderReleaseAreFilledIn: the history is there, and what 0007 makes of it is not.
func TestTheTablesOfAnOlderReleaseAreFilledIn(t *testing.T) {
	dsn := database(t)
	log := fillWithInventions(t, dsn, 2)
	c := connectTo(t, dsn)
	const made = "['runs', 'build_times', 'last_predictions', 'preparations', 'refusals', 'failed_versions', 'taken_back', 'queue_pools']"
	var drops []string
	if err := c.QueryRow(t.Context(), `SELECT groupArray(concat('DROP TABLE ', name, ' SYNC')) FROM (SELECT name FROM system.tables
		WHERE database = currentDatabase() AND (has(`+made+`, name) OR engine = 'MaterializedView') ORDER BY engine = 'MaterializedView' DESC)`).Scan(&drops); err != nil || len(drops) != 16 {
		t.Fatalf("%v, %v", drops, err)
	}
	for _, statement := range append(drops, "ALTER TABLE migrations DELETE WHERE version = 7 SETTINGS mutations_sync = 1") {
		if err := c.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 { // once applied, and once found
		caughtUp(t, dsn, log)
		compareViews(t, dsn, log)
	}
}

func TestWhatAnalystsAskIsAFoldOfTheRecordedLogs(t *testing.T) {
	rows := map[string]int{}
	for _, file := range []string{"demo", "live"} {
		for _, l := range replaytest.ReadRecordings(t, "../../replay/recompute/testdata/recorded/"+file+".bz2") {
			log := l.Open(t)
			dsn := database(t)
			_, stop := run(t, dsn, log, 10*time.Millisecond)
			caughtUp(t, dsn, log)
			stop()
			for view, n := range compareViews(t, dsn, log) {
				rows[view] += n
			}
		}
	}
	for view, n := range rows {
		t.Logf("%s: %d rows", view, n)
		if n == 0 {
			t.Errorf("%s has no row of any recorded log", view)
		}
	}
}

// TestAnOutageThatWasRetriedIsNoFlake: a version failed while something was down, somebody retried it, and it passed. Another one flaked.
func TestAnOutageThatWasRetriedIsNoFlake(t *testing.T) {
	log := memory.New(memory.Options{Partitions: 1})
	at := time.Date(2026, 1, 5, 10, 0, 0, 0, time.UTC)
	write := func(topic, source string, m proto.Message) {
		t.Helper()
		at = at.Add(time.Minute)
		if _, err := log.Append(t.Context(), topic, 0, events.Envelope{ID: at.String(), Source: source, Queue: "main", Term: -1, Time: at, Message: m}); err != nil {
			t.Fatal(err)
		}
	}
	step := func(target string, attempt uint32, outcome eventsv1.StepOutcome) {
		write(events.TopicBuilds, events.ServiceBuilder, &eventsv1.StepFinished{Target: target, Hash: "h", Attempt: attempt, Outcome: outcome, Build: "b",
			StartedUs: at.UnixMicro() - 1, FinishedUs: at.UnixMicro()})
	}
	write(events.TopicDecisions, events.ServiceSelector, &eventsv1.Decision{Items: []*eventsv1.DecisionItem{{Item: &eventsv1.DecisionItem_BuildScheduled{
		BuildScheduled: &eventsv1.BuildScheduled{Build: "b", Change: &eventsv1.AssumedChange{Change: &eventsv1.ChangeRef{Change: "c", Revision: 1}}}}}}})
	failed, passed := eventsv1.StepOutcome_STEP_OUTCOME_FAILED, eventsv1.StepOutcome_STEP_OUTCOME_PASSED
	step("//down", 1, failed)
	step("//down", 2, failed)
	write(events.TopicChanges, events.ServiceGateway, &eventsv1.ChangeRetried{Change: &eventsv1.ChangeRef{Change: "c", Revision: 1},
		Failed: []*eventsv1.Proof{{Version: &eventsv1.TargetVersion{Target: "//down", Hash: "h"}, Attempt: 2}}})
	step("//down", 3, passed)
	step("//flaky", 1, failed)
	step("//flaky", 2, passed)
	dsn := database(t)
	_, stop := run(t, dsn, log, 10*time.Millisecond)
	caughtUp(t, dsn, log)
	stop()
	sameFigures(t, "target_rates", "versions, attempts, failure_rate, flake_rate", figures{"main //down": {1, 1, 0, 0}, "main //flaky": {1, 2, 0, 1}},
		rowsOf(t, connectTo(t, dsn), "target_rates", "queue, target", "versions, attempts, failure_rate, flake_rate"))
}
