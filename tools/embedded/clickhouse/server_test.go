package clickhouse_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	driver "github.com/ClickHouse/clickhouse-go/v2"

	"landfall.build/tools/embedded/clickhouse"
)

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

func start(t testing.TB, dir string) *clickhouse.Server {
	t.Helper()
	s, err := clickhouse.Start(t.Context(), clickhouse.Options{Dir: dir, Log: quiet()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func connect(t *testing.T, dsn string) driver.Conn {
	t.Helper()
	o, err := driver.ParseDSN(dsn)
	if err != nil {
		t.Fatal(err)
	}
	o.Auth.Database = "default"
	c, err := driver.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// patiently tries until the server answers again.
func patiently(t testing.TB, what func() error) {
	t.Helper()
	var err error
	for range 300 {
		if err = what(); err == nil {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Fatal(err)
}

func TestAcknowledgedRowsSurviveKillingTheServerAndStartingItAgain(t *testing.T) {
	dir := t.TempDir()
	s := start(t, dir)
	ctx := t.Context()
	c := connect(t, s.DSN())
	for _, statement := range []string{"CREATE DATABASE kept", "CREATE TABLE kept.rows (n UInt64) ENGINE = MergeTree ORDER BY n"} {
		if err := c.Exec(ctx, statement); err != nil {
			t.Fatal(err)
		}
	}
	acknowledged := uint64(0)
	insert := func() error {
		b, err := c.PrepareBatch(ctx, "INSERT INTO kept.rows")
		if err != nil {
			return err
		}
		if err := b.Append(acknowledged + 1); err != nil {
			return err
		}
		if err := b.Send(); err != nil {
			return err
		}
		acknowledged++
		return nil
	}
	for round := range 3 {
		for range 20 {
			patiently(t, insert)
		}
		before := s.Process()
		if err := syscall.Kill(before, syscall.SIGKILL); err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		patiently(t, func() error { return c.Ping(ctx) })
		if s.Process() == before {
			t.Error("the server answers from the process that was killed")
		}
	}
	s.Close()
	s = start(t, dir)
	c = connect(t, s.DSN())
	var found uint64
	if err := c.QueryRow(ctx, "SELECT uniqExact(n) FROM kept.rows").Scan(&found); err != nil || found < acknowledged {
		t.Errorf("%d of %d acknowledged rows are there, %v", found, acknowledged, err)
	}
}

func TestRubbishOnThePortAndFailedLoginsDoNotEndTheServer(t *testing.T) {
	s := start(t, t.TempDir())
	o, _ := driver.ParseDSN(s.DSN())
	before := s.Process()
	for _, rubbish := range []string{"GET / HTTP/1.1\r\n\r\n", "\x00\xff\x00\xff", strings.Repeat("x", 100_000)} {
		connection, err := net.Dial("tcp", o.Addr[0])
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprint(connection, rubbish)
		connection.Close()
	}
	wrong := *o
	wrong.Auth.Password = "wrong"
	if c, err := driver.Open(&wrong); err != nil || c.Ping(t.Context()) == nil {
		t.Errorf("a wrong password was taken (%v)", err)
	}
	c := connect(t, s.DSN())
	if err := c.Ping(t.Context()); err != nil || s.Process() != before {
		t.Errorf("process %d, was %d; %v", s.Process(), before, err)
	}
}

func TestWithoutAPasswordNothingCanBeReadOrChanged(t *testing.T) {
	dir := t.TempDir()
	s := start(t, dir)
	o, _ := driver.ParseDSN(s.DSN())
	o.Auth.Username, o.Auth.Password, o.Auth.Database = "default", "", "default"
	c, err := driver.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for _, statement := range []string{"CREATE DATABASE mine", "CREATE TABLE default.x (n Int8) ENGINE = Memory", "SELECT * FROM file('/etc/passwd', 'LineAsString')", "SHOW USERS"} {
		rows, err := c.Query(t.Context(), statement)
		if err == nil {
			for rows.Next() {
			}
			err = rows.Err()
		}
		if err == nil {
			t.Errorf("%s was done without a password", statement)
		}
	}
	info, err := os.Stat(filepath.Join(dir, clickhouse.DSNFile))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file with the password: %v, %v", info, err)
	}
}

func TestASecondServerOnOneDirectoryIsRefused(t *testing.T) {
	dir := t.TempDir()
	start(t, dir)
	if _, err := clickhouse.Start(t.Context(), clickhouse.Options{Dir: dir, Log: quiet()}); !errors.Is(err, clickhouse.ErrDirInUse) {
		t.Errorf("got %v", err)
	}
}

func TestWhereTheLibraryIsMissingOneLineSaysHowToGetIt(t *testing.T) {
	t.Setenv("LANDFALL_CLICKHOUSE_HOME", t.TempDir())
	_, err := clickhouse.Start(context.Background(), clickhouse.Options{Dir: t.TempDir(), Log: quiet()})
	if !errors.Is(err, clickhouse.ErrNotInstalled) || !strings.Contains(err.Error(), "make clickhouse") || strings.Contains(err.Error(), "\n") {
		t.Errorf("got %v", err)
	}
}

func TestTheScriptInstallsTheVersionThatIsRun(t *testing.T) {
	script, err := os.ReadFile("install")
	if err != nil || !strings.Contains(string(script), "version="+clickhouse.Version+" ") {
		t.Errorf("install does not name %s (%v)", clickhouse.Version, err)
	}
}
