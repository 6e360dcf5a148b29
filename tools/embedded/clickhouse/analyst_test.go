package clickhouse_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	driver "github.com/ClickHouse/clickhouse-go/v2"

	"landfall.build/services/historian/warehouse"
	"landfall.build/tools/embedded/clickhouse"
)

// historyOf returns a server with an empty history, and a file beside its data that nobody may read.
func historyOf(t *testing.T) (s *clickhouse.Server, dir, secret string) {
	t.Helper()
	dir = t.TempDir()
	s = start(t, dir)
	w, err := warehouse.Open(t.Context(), warehouse.Options{DSN: s.DSN(), LogID: "mine"})
	if err != nil {
		t.Fatal(err)
	}
	w.Close()
	secret = filepath.Join(dir, "secret")
	if err := os.WriteFile(secret, []byte("do not tell\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return s, dir, secret
}

func analystOf(t *testing.T, s *clickhouse.Server) string {
	t.Helper()
	dsn, err := s.AnalystDSN()
	if errors.Is(err, clickhouse.ErrNoAnalyst) {
		t.Skip("this kernel has no Landlock, so there is no analyst; TestWithoutLandlockThereIsNoAnalyst is for that")
	}
	if err != nil {
		t.Fatal(err)
	}
	return dsn
}

// byHTTP asks as the analyst over HTTP.
func byHTTP(t *testing.T, s *clickhouse.Server, dsn, query string, settings url.Values) (status int, body string) {
	t.Helper()
	at, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	if settings == nil {
		settings = url.Values{}
	}
	settings.Set("database", "landfall")
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.HTTP()+"/?"+settings.Encode(), strings.NewReader(query))
	if err != nil {
		t.Fatal(err)
	}
	password, _ := at.User.Password()
	request.Header.Set("X-ClickHouse-User", at.User.Username())
	request.Header.Set("X-ClickHouse-Key", password)
	answer, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(text)
}

func TestTheAnalystReadsTheHistoryByBothProtocols(t *testing.T) {
	s, _, _ := historyOf(t)
	dsn := analystOf(t, s)
	c := connectTo(t, dsn)
	for _, query := range []string{
		"SELECT * FROM waits_by_week", "SELECT count() FROM events FINAL", "SELECT name FROM system.tables WHERE database = 'landfall' AND name = 'steps'",
		"SHOW TABLES", "SELECT value FROM system.settings WHERE name = 'readonly'", "DESCRIBE TABLE steps", "SELECT max_execution_time FROM (SELECT 1 AS max_execution_time) SETTINGS max_execution_time = 5",
	} {
		if _, _, err := answered(t.Context(), c, query); err != nil {
			t.Errorf("%s: %v", query, err)
		}
		if status, body := byHTTP(t, s, dsn, query, nil); status != http.StatusOK {
			t.Errorf("by HTTP, %s: %d %s", query, status, body)
		}
	}
	// A client with a deadline sends it as a setting.
	soon, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if _, n, err := answered(soon, c, "SELECT count() FROM steps"); err != nil || n != 1 {
		t.Errorf("with a deadline: %d rows, %v", n, err)
	}
}

// TestTheGuidesCurlAnswers runs the lines of the guide that ask by HTTP, in the folder of a server.
func TestTheGuidesCurlAnswers(t *testing.T) {
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("curl is not installed")
	}
	s, dir, _ := historyOf(t)
	analystOf(t, s)
	guide, err := os.ReadFile(analystsGuide)
	if err != nil {
		t.Fatal(err)
	}
	var script []string
	for _, line := range strings.Split(string(guide), "\n") {
		if line = strings.TrimSpace(line); strings.HasPrefix(line, "cd ~/.landfall/clickhouse && ") || strings.HasPrefix(line, "curl ") {
			script = append(script, strings.Replace(line, "~/.landfall/clickhouse", "'"+dir+"'", 1))
		}
	}
	if len(script) != 2 {
		t.Fatalf("the guide has %q", script)
	}
	out, err := exec.CommandContext(t.Context(), "sh", "-ec", strings.Join(script, "\n")).CombinedOutput()
	if err != nil || strings.Contains(string(out), "Exception") {
		t.Errorf("%v: %s", err, out)
	}
}

func TestTheAnalystsPasswordStays(t *testing.T) {
	s, dir, _ := historyOf(t)
	path := filepath.Join(dir, clickhouse.AnalystFile)
	before := analystOf(t, s)
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file with the password: %v, %v", info, err)
	}
	s.Close()
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	s = start(t, dir)
	if analystOf(t, s) != before {
		t.Error("the analyst has another password after a start")
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file with the password, once everybody could read it: %v, %v", info, err)
	}
	s.Close()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	s = start(t, dir)
	if now := analystOf(t, s); now == before || strings.Contains(now, "analyst:@") {
		t.Errorf("the analyst's DSN after the file was removed: %s", now)
	}
	wrong, err := driver.ParseDSN(before)
	if err != nil {
		t.Fatal(err)
	}
	if c, err := driver.Open(wrong); err != nil || c.Ping(t.Context()) == nil {
		t.Errorf("the password of the file that was removed is still taken (%v)", err)
	}
}

// TestTheAnalystCanDoNothingButRead tries everything, by both protocols. Where there is nothing to see it checks that nothing was done.
func TestTheAnalystCanDoNothingButRead(t *testing.T) {
	s, dir, secret := historyOf(t)
	dsn := analystOf(t, s)
	c := connectTo(t, dsn)
	owner := connectTo(t, s.DSN())
	own, err := driver.ParseDSN(s.DSN())
	if err != nil {
		t.Fatal(err)
	}
	reached := make(chan string, 100)
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { reached <- r.URL.Path }))
	defer elsewhere.Close()
	web := elsewhere.URL + "/"
	for _, query := range []string{
		// Writing and altering.
		"INSERT INTO log (id, since) VALUES ('x', now64(3))", "INSERT INTO steps SELECT * FROM steps", "ALTER TABLE steps DROP COLUMN build", "ALTER TABLE steps DELETE WHERE 1",
		"DELETE FROM steps WHERE 1", "TRUNCATE TABLE steps", "DROP TABLE steps", "DROP VIEW waits_by_week", "DROP DATABASE landfall", "RENAME TABLE steps TO other",
		"OPTIMIZE TABLE steps FINAL", "DETACH TABLE steps", "EXCHANGE TABLES steps AND builds",
		"CREATE TABLE x (n Int8) ENGINE = Memory", "CREATE TEMPORARY TABLE x (n Int8)", "CREATE VIEW x AS SELECT 1", "CREATE DATABASE x", "CREATE FUNCTION x AS (a) -> a",
		"CREATE TABLE x ENGINE = URL('" + web + "', 'CSV') AS SELECT 1",
		"CREATE NAMED COLLECTION x AS a = 1", "CREATE DICTIONARY x (a UInt64) PRIMARY KEY a SOURCE(FILE(path '" + secret + "' format 'CSV')) LAYOUT(FLAT()) LIFETIME(0)",
		"BACKUP TABLE steps TO File('" + filepath.Join(dir, "backup") + "')", "RESTORE TABLE steps FROM File('x')",
		// Other rights.
		"CREATE USER x", "ALTER USER analyst IDENTIFIED BY 'x'", "DROP USER analyst", "GRANT INSERT ON *.* TO analyst", "CREATE ROLE x", "ALTER SETTINGS PROFILE default SETTINGS readonly = 0",
		"CREATE QUOTA x", "CREATE ROW POLICY x ON steps USING 1 TO ALL", "EXECUTE AS landfall SELECT 1",
		"SYSTEM SHUTDOWN", "SYSTEM KILL", "SYSTEM FLUSH LOGS", "SYSTEM RELOAD CONFIG", "SYSTEM STOP LISTEN TCP", "KILL QUERY WHERE 1 SYNC", "KILL MUTATION WHERE 1",
		// Files.
		"SELECT * FROM file('" + secret + "', 'LineAsString')", "SELECT file('" + secret + "')", "SELECT file('" + filepath.Join(dir, "dsn") + "')", "SELECT file('../dsn')", "SELECT file('" + filepath.Join(dir, "analyst") + "')",
		"SELECT file('/etc/passwd')", "SELECT file('/proc/self/root" + secret + "')", "SELECT file('" + filepath.Join(dir, "data/../secret") + "')",
		fmt.Sprintf("SELECT file('/proc/%d/environ')", os.Getpid()), fmt.Sprintf("SELECT file('/proc/%d/cmdline')", os.Getpid()),
		"SELECT * FROM file('../secret', 'LineAsString')",
		"INSERT INTO FUNCTION file('" + filepath.Join(dir, "written") + "', 'CSV', 'n Int8') SELECT 1", "SELECT * FROM fileCluster('default', '" + secret + "', 'LineAsString')",
		"SELECT * FROM executable('x', 'CSV', 'n Int8', (SELECT 1))", "SELECT * FROM sqlite('" + secret + "', 'x')", "SELECT * FROM filesystem('" + dir + "')",
		"SELECT * FROM `" + secret + "`", "SELECT catboostEvaluate('" + secret + "', 1)", "SELECT * FROM iceberg('" + dir + "')", "SELECT * FROM icebergLocal('" + dir + "')", "SELECT * FROM deltaLakeLocal('" + dir + "')",
		// Other servers, and this one as somebody else.
		"SELECT * FROM url('" + web + "', 'LineAsString')", "SELECT * FROM url('file://" + secret + "', 'LineAsString')", "INSERT INTO FUNCTION url('" + web + "', 'CSV', 'n Int8') SELECT 1",
		"SELECT * FROM remote('" + own.Addr[0] + "', 'landfall', 'steps', 'landfall', '" + own.Auth.Password + "')", "SELECT * FROM remoteSecure('127.0.0.1', 'landfall', 'steps')",
		"SELECT * FROM s3('" + web + "x.csv', 'CSV')", "SELECT * FROM gcs('" + web + "x.csv', 'CSV')", "SELECT * FROM hdfs('hdfs://127.0.0.1/x', 'CSV', 'n Int8')", "SELECT * FROM mysql('127.0.0.1:3306', 'a', 'b', 'c', 'd')",
		"SELECT * FROM postgresql('127.0.0.1:5432', 'a', 'b', 'c', 'd')", "SELECT * FROM mongodb('127.0.0.1:1', 'a', 'b', 'c', 'd', 'n Int8')", "SELECT * FROM redis('127.0.0.1:1', 'n', 'n Int8')",
		"SELECT * FROM jdbc('x', 'y', 'z')", "SELECT * FROM odbc('x', 'y', 'z')", "SELECT * FROM azureBlobStorage('x', 'y', 'z')", "SELECT * FROM cluster('default', 'landfall', 'steps')",
		"SELECT hasColumnInTable('127.0.0.1', 'landfall', '" + own.Auth.Password + "', 'landfall', 'steps', 'queue')", "SELECT * FROM `" + web + "x.csv`",
		// What the server knows of others.
		"SELECT * FROM system.users", "SELECT * FROM system.processes", "SELECT * FROM system.query_log", "SELECT * FROM system.server_settings", "SELECT * FROM system.disks", "SELECT * FROM system.backups",
		"SHOW CREATE USER landfall", "SHOW ACCESS", "SELECT * FROM system.zookeeper WHERE path = '/'", "SELECT * FROM default.x", "SELECT demangle('x')",
		// Bounds.
		"SELECT 1 SETTINGS readonly = 0", "SELECT 1 SETTINGS readonly = 2", "SET readonly = 0", "SET max_memory_usage = 0", "SET max_execution_time = 0", "SET max_execution_time = 3600", "SET allow_ddl = 1",
		"SET max_concurrent_queries_for_user = 0", "SET max_memory_usage_for_user = 0", "SET max_temporary_data_on_disk_size_for_user = 0", "SET max_untracked_memory = 100000000000",
		"SELECT 1 SETTINGS max_execution_time = 0", "SELECT 1 SETTINGS timeout_overflow_mode = 'break'", "SELECT 1 SETTINGS allow_introspection_functions = 1",
		"SELECT groupArray(number) FROM numbers(1000000000)", "SELECT count() FROM numbers(1000000000000000) SETTINGS max_execution_time = 1", "SELECT sleep(3) FROM numbers(1000) SETTINGS max_block_size = 1, max_execution_time = 1",
	} {
		columns, n, err := answered(t.Context(), c, query)
		if err == nil {
			t.Errorf("%s was done: %v, %d rows", query, columns, n)
		}
		if status, body := byHTTP(t, s, dsn, query, nil); status == http.StatusOK && !strings.Contains(body, "DB::Exception") {
			t.Errorf("by HTTP, %s was done: %.100s", query, body)
		} else if strings.Contains(body, "do not tell") {
			t.Errorf("by HTTP, %s tells: %.200s", query, body)
		}
	}
	for _, settings := range []url.Values{{"readonly": {"0"}}, {"max_execution_time": {"0"}}, {"max_memory_usage": {"0"}}, {"allow_ddl": {"1"}}} {
		if status, body := byHTTP(t, s, dsn, "SELECT 1", settings); status == http.StatusOK {
			t.Errorf("by HTTP, %v was taken: %.100s", settings, body)
		}
	}
	// Taken, and without an effect.
	for _, query := range []string{"SYSTEM STOP MERGES", "SYSTEM STOP MERGES landfall.log", "SET profile = 'default'"} {
		answered(t.Context(), c, query)
		byHTTP(t, s, dsn, query, nil)
	}
	for _, settings := range []url.Values{nil, {"profile": {"default"}}} {
		if status, body := byHTTP(t, s, dsn, "SELECT getSetting('readonly'), getSetting('max_execution_time') <= 60, getSetting('max_memory_usage') > 0", settings); status != http.StatusOK || body != "1\ttrue\ttrue\n" && body != "1\t1\t1\n" {
			t.Errorf("by HTTP, with %v: %d %s", settings, status, body)
		}
	}
	if err := owner.Exec(t.Context(), "OPTIMIZE TABLE log FINAL"); err != nil {
		t.Errorf("the analyst has stopped merges: %v", err)
	}
	select {
	case path := <-reached:
		t.Errorf("the server fetched %s for the analyst", path)
	default:
	}
	for _, file := range []string{"backup", "written"} {
		if found, _ := filepath.Glob(filepath.Join(dir, "*", file)); len(found) > 0 {
			t.Errorf("%v was written", found)
		}
		if _, err := os.Stat(filepath.Join(dir, file)); err == nil {
			t.Errorf("%s was written", file)
		}
	}
	var tables, migrations uint64
	if err := owner.QueryRow(t.Context(), "SELECT (SELECT count() FROM system.tables WHERE database = 'landfall' AND name IN ('steps', 'waits_by_week')), (SELECT count() FROM migrations FINAL)").Scan(&tables, &migrations); err != nil || tables != 2 || migrations != uint64(warehouse.Migrations()) {
		t.Errorf("after the attack %d tables and %d migrations, %v", tables, migrations, err)
	}
	if _, _, err := answered(t.Context(), connectTo(t, dsn), "SELECT count() FROM steps"); err != nil {
		t.Errorf("after the attack the analyst cannot read: %v", err)
	}
}

// TestWithoutLandlockThereIsNoAnalyst: the host is one that cannot confine a server, as on an older kernel.
func TestWithoutLandlockThereIsNoAnalyst(t *testing.T) {
	here, err := clickhouse.Folder()
	if err != nil {
		t.Fatal(err)
	}
	home := t.TempDir()
	folder := filepath.Join(home, clickhouse.Version)
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(here, "libchdb.so"), filepath.Join(folder, "libchdb.so")); err != nil {
		t.Fatal(err)
	}
	host := "#!/bin/sh\ncase $1 in --*) echo 'this kernel has no Landlock' >&2; exit 1;; esac\nexec '" + filepath.Join(here, "landfall-clickhouse") + "' \"$@\"\n"
	if err := os.WriteFile(filepath.Join(folder, "landfall-clickhouse"), []byte(host), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("LANDFALL_CLICKHOUSE_HOME", home)
	dir := t.TempDir()
	var log bytes.Buffer
	s, err := clickhouse.Start(t.Context(), clickhouse.Options{Dir: dir, Log: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	if dsn, err := s.AnalystDSN(); !errors.Is(err, clickhouse.ErrNoAnalyst) || dsn != "" {
		t.Errorf("the analyst's DSN is %q, %v", dsn, err)
	}
	if !strings.Contains(log.String(), "no user analyst") || !strings.Contains(log.String(), "no Landlock") {
		t.Errorf("nobody said why: %s", &log)
	}
	var users uint64
	if err := connect(t, s.DSN()).QueryRow(t.Context(), "SELECT count() FROM system.users WHERE name = 'analyst'").Scan(&users); err != nil || users != 0 {
		t.Errorf("%d users analyst, %v", users, err)
	}
}
