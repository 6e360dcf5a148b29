package stack_test

import (
	"bytes"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"landfall.build/platform/configuration"
	"landfall.build/services/gateway/analytics"
	"landfall.build/tools/client"
	"landfall.build/tools/embedded/stack"
	"landfall.build/tools/history"
	"landfall.build/tools/simulate"
)

// ask is `landfall history --json`.
func ask(t *testing.T, data, query string, flags ...string) (rows []map[string]any, err error) {
	t.Helper()
	var out bytes.Buffer
	c := history.Command(func(file string) (*configuration.Configuration, error) {
		return configuration.Load(file, configuration.Defaults{Workers: 1})
	})
	c.SetOut(&out)
	c.SetErr(t.Output())
	c.SetArgs(append([]string{"--json", "--data", data, "--config", filepath.Join(data, "none.yaml"), query}, flags...))
	if err := c.ExecuteContext(t.Context()); err != nil {
		return nil, err
	}
	return rows, json.Unmarshal(out.Bytes(), &rows)
}

// simulated is `landfall simulate log --json`.
func simulated(t *testing.T, s *stack.Stack, data, queue string, flags ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	c := simulate.Command(func(file string) (*configuration.Configuration, error) {
		return configuration.Load(file, configuration.Defaults{Workers: 1})
	}, slog.New(slog.DiscardHandler))
	c.SetOut(&out)
	c.SetErr(io.Discard)
	c.SetArgs(append([]string{"log", "--queue", queue, "--brokers", strings.Join(s.Brokers(), ","), "--data", data, "--config", filepath.Join(data, "none.yaml"), "--policies", "landfall", "--json"}, flags...))
	err := c.ExecuteContext(t.Context())
	return out.String(), err
}

// readOnlyDSN is that of somebody who may not even set how to read.
func readOnlyDSN(t *testing.T, data string) string {
	t.Helper()
	dsn, err := os.ReadFile(filepath.Join(data, "clickhouse", "dsn"))
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(dsn)) + "?readonly=1"
}

func TestWhatLandedAndWhatDidNotIsInTheHistory(t *testing.T) {
	r := newRepository(t)
	r.branch("good", "f0/b.txt", "b\n")
	r.branch("failing", "f1/b.txt", "a bug\n")
	data := t.TempDir()
	s, err := stack.Start(t.Context(), stack.Options{Configuration: configured(t, r, data), Logger: slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn})), Version: "test", History: true})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if !strings.Contains(s.History(), "history in") {
		t.Fatal(s.History())
	}
	c, err := client.New(s.URL(), "tester")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"good", "failing"} {
		land(t, c, name, name)
	}
	for _, name := range []string{"good", "failing"} {
		settled(t, c, name)
	}
	var got []map[string]any
	for range 300 {
		got, err = ask(t, data, "SELECT change, outcome, reason_class FROM change_outcomes WHERE outcome != 'pending' ORDER BY change")
		if err == nil && len(got) == 2 {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	if err != nil || len(got) != 2 || got[0]["outcome"] != "rejected" || got[0]["reason_class"] != "step_failed" || got[1]["outcome"] != "landed" {
		t.Fatalf("%v, %v", got, err)
	}
	for range 300 { // another topic, read at its own pace
		got, err = ask(t, data, "SELECT countIf(outcome = 'passed') AS passed, countIf(outcome = 'failed') AS failed, uniqExact(build) AS builds FROM steps FINAL")
		if err != nil || len(got) == 1 && got[0]["passed"].(float64) > 0 && got[0]["failed"].(float64) > 0 {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	if err != nil || len(got) != 1 || got[0]["passed"].(float64) < 1 || got[0]["failed"].(float64) < 1 {
		t.Errorf("%v, %v", got, err)
	}
	for _, query := range []string{"DROP TABLE steps", "ALTER TABLE steps DROP COLUMN build", "TRUNCATE TABLE steps", "INSERT INTO steps SELECT * FROM steps", "SELECT 1 SETTINGS readonly = 0"} {
		if got, err = ask(t, data, query); err == nil || !strings.Contains(err.Error(), "readonly") {
			t.Errorf("%s: %v, %v", query, got, err)
		}
	}
	if got, err = ask(t, data, "SELECT count() > 0 AS there FROM steps SETTINGS max_threads = 1"); err != nil || len(got) != 1 || got[0]["there"] != 1.0 {
		t.Errorf("after what would have changed it: %v, %v", got, err)
	}
	if got, err = ask(t, data, "SELECT count() > 0 AS there FROM steps", "--clickhouse", readOnlyDSN(t, data)); err != nil || len(got) != 1 || got[0]["there"] != 1.0 {
		t.Errorf("of somebody who may read alone: %v, %v", got, err)
	}
	got, err = ask(t, data, "SELECT change, round(total - admission - analysis - worker - building - behind - push, 2) AS rest FROM time_to_land")
	if err != nil || len(got) != 1 || got[0]["change"] != "good" || got[0]["rest"] != 0.0 {
		t.Errorf("%v, %v", got, err)
	}
	// The gateway has the same, as the user who may only read.
	answer, err := http.Get(s.URL() + "/v1/queues/main/analytics?weeks=4")
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(answer.Body)
	answer.Body.Close()
	var figures analytics.Analytics
	if err == nil {
		err = json.Unmarshal(text, &figures)
	}
	if err != nil || figures.Missing != nil || len(figures.Waits) != 1 || figures.Waits[0].Landed != 1 || len(figures.Rejections) != 1 || figures.Rejections[0].Changes != 1 {
		t.Errorf("the gateway's figures are %s, %v", text, err)
	}
	for range 300 {
		got, err = ask(t, data, "SELECT kind, count() AS n FROM prediction_outcomes GROUP BY kind ORDER BY kind")
		if err != nil || len(got) == 2 {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	if err != nil || len(got) != 2 {
		t.Errorf("%v, %v", got, err)
	}
	if _, err := ask(t, data, "SELECT nonsense"); err == nil {
		t.Error("a question that makes no sense was answered")
	}
	fromLog, err := simulated(t, s, data, "main")
	if err != nil || !strings.Contains(fromLog, `"landed": 1`) {
		t.Fatalf("%v: %s", err, fromLog)
	}
	fromClickHouse := ""
	for range 300 { // which is behind the log
		if fromClickHouse, err = simulated(t, s, data, "main", "--from-clickhouse"); err == nil && fromClickHouse == fromLog {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	if err != nil || fromClickHouse != fromLog {
		t.Errorf("from ClickHouse, %v: %s\nfrom the log: %s", err, fromClickHouse, fromLog)
	}
	if _, err := simulated(t, s, data, "mian", "--from-clickhouse"); err == nil || !strings.Contains(err.Error(), `nothing of a queue "mian"`) {
		t.Errorf("a queue that the history does not know: %v", err)
	}
}
