package history

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"landfall.build/platform/configuration"
)

func TestTheHistoryIsTheFirstPlaceThatIsKnown(t *testing.T) {
	t.Chdir(t.TempDir())
	data := t.TempDir()
	if err := os.MkdirAll(filepath.Join(data, "clickhouse"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(data, "clickhouse", "dsn"), []byte("clickhouse://of-up\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	none := func(string) (*configuration.Configuration, error) { return nil, os.ErrNotExist }
	with := func(dsn, data string) Load {
		return func(string) (*configuration.Configuration, error) {
			c := configuration.New(configuration.Defaults{Workers: 1})
			c.ClickHouse.DSN, c.Data = dsn, data
			return c, nil
		}
	}
	for _, c := range []struct {
		name, environment string
		place             Place
		load              Load
		want              string
	}{
		{"a flag", "clickhouse://env", Place{DSN: "clickhouse://flag", Data: data}, with("clickhouse://config", data), "clickhouse://flag"},
		{"the configuration", "clickhouse://env", Place{}, with("clickhouse://config", data), "clickhouse://config"},
		{"the environment", "clickhouse://env", Place{}, with("", data), "clickhouse://env"},
		{"the configuration's data directory", "", Place{}, with("", data), "clickhouse://of-up"},
		{"a data directory that was asked for", "clickhouse://env", Place{Data: data}, with("clickhouse://config", "elsewhere"), "clickhouse://of-up"},
		{"no configuration", "", Place{Data: data}, none, "clickhouse://of-up"},
	} {
		t.Setenv(fromEnvironment, c.environment)
		c.place.Configuration = "none.yaml"
		if got, err := c.place.Find(c.load); err != nil || got != c.want {
			t.Errorf("%s: %q, %v", c.name, got, err)
		}
	}
	t.Setenv(fromEnvironment, "")
	if _, err := (Place{Configuration: "none.yaml"}).Find(none); err == nil || !strings.Contains(err.Error(), "landfall up writes it") {
		t.Errorf("nowhere: %v", err)
	}
	if err := os.WriteFile("broken.yaml", []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	broken := errors.New("line 1 is wrong")
	if _, err := (Place{Configuration: "broken.yaml"}).Find(func(string) (*configuration.Configuration, error) { return nil, broken }); !errors.Is(err, broken) {
		t.Errorf("a configuration that is there and wrong: %v", err)
	}
}

func TestAnswersAreTablesForPeopleAndObjectsForPrograms(t *testing.T) {
	at := time.Date(2026, 1, 5, 10, 0, 0, 500e6, time.UTC)
	var missing *time.Time
	a := answer{columns: []string{"change", "at", "day", "end"}, rows: [][]any{{"two\nlines\tof \x1b[31mit", &at, at.Truncate(24 * time.Hour), missing}}}
	var table, object bytes.Buffer
	if err := errors.Join(a.printTable(&table), a.printJSON(&object)); err != nil {
		t.Fatal(err)
	}
	if got := table.String(); strings.Count(got, "\n") != 2 || !strings.Contains(got, "two lines of it  2026-01-05 10:00:00.500  2026-01-05") {
		t.Errorf("%s", got)
	}
	if got := object.String(); !strings.HasPrefix(got, `[{"at":"2026-01-05T10:00:00.5Z","change":"two\nlines\tof \u001b[31mit"`) || !strings.Contains(got, `"end":null`) {
		t.Errorf("%s", got)
	}
}
