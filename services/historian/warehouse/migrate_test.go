package warehouse

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
)

func TestTheMigrationsAreThoseOfTheSchemas(t *testing.T) {
	list, err := migrations(migrationFiles)
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("../../../schemas/clickhouse/*.sql")
	if err != nil || len(files) != len(list) || len(list) == 0 {
		t.Fatalf("%d migrations, %d files in schemas/clickhouse (%v); run schemas/generate.sh", len(list), len(files), err)
	}
	for _, m := range list {
		want, err := os.ReadFile("../../../schemas/clickhouse/" + m.name + ".sql")
		if err != nil || string(want) != m.text {
			t.Errorf("%s is not the file of schemas/clickhouse (%v); run schemas/generate.sh", m.name, err)
		}
	}
}

// TestEveryStatementCanBeRepeatedAndFitsAClusterToo: a migration may be interrupted, or applied by two at once.
func TestEveryStatementCanBeRepeatedAndFitsAClusterToo(t *testing.T) {
	list, err := migrations(migrationFiles)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range list {
		single, err := m.statements("")
		if err != nil {
			t.Fatal(err)
		}
		cluster, err := m.statements("main `1`")
		if err != nil || len(cluster) != len(single) {
			t.Fatalf("%s: %d statements for one server, %d for a cluster, %v", m.name, len(single), len(cluster), err)
		}
		for i, s := range single {
			body := withoutComments(s)
			fills := repeatable(m.text, body)
			if !strings.HasPrefix(body, "CREATE TABLE IF NOT EXISTS ") && !strings.HasPrefix(body, "CREATE OR REPLACE VIEW ") &&
				!strings.HasPrefix(body, "CREATE MATERIALIZED VIEW IF NOT EXISTS ") && !strings.Contains(body, "ADD COLUMN IF NOT EXISTS") && !fills {
				t.Errorf("%s: cannot be repeated: %.60s", m.name, body)
			}
			if strings.Contains(s, "Replicated") || strings.Contains(s, "ON CLUSTER") || strings.Contains(s, "{{") {
				t.Errorf("%s: not for a single server: %.60s", m.name, body)
			}
			if !fills && !strings.Contains(cluster[i], "ON CLUSTER `main \\`1\\``") {
				t.Errorf("%s: not on the cluster: %.60s", m.name, body)
			}
			if table := strings.HasPrefix(body, "CREATE TABLE"); table != strings.Contains(cluster[i], "ENGINE = Replicated") {
				t.Errorf("%s: its engine on a cluster: %.60s", m.name, body)
			}
		}
	}
}

// repeatable reports whether a statement only fills a table of its migration in which a row that is there twice is one row.
func repeatable(migration, statement string) bool {
	rest, fills := strings.CutPrefix(statement, "INSERT INTO ")
	table, query, _ := strings.Cut(rest, " ")
	_, after, made := strings.Cut(migration, "CREATE TABLE IF NOT EXISTS "+table+" ")
	engine, _, _ := strings.Cut(after, ";\n")
	return fills && made && strings.HasPrefix(strings.TrimSpace(query), "SELECT") &&
		(strings.Contains(engine, `"ReplacingMergeTree"`) || strings.Contains(engine, `"AggregatingMergeTree"`))
}

func withoutComments(s string) string {
	var kept []string
	for _, line := range strings.Split(s, "\n") {
		if !strings.HasPrefix(strings.TrimSpace(line), "--") {
			kept = append(kept, line)
		}
	}
	return strings.TrimSpace(strings.Join(kept, "\n"))
}

func TestMigrationsWithAGapAreRefused(t *testing.T) {
	for _, names := range [][]string{{"0002_x.sql"}, {"0001_x.sql", "0003_y.sql"}, {"first.sql"}} {
		files := fstest.MapFS{}
		for _, n := range names {
			files["migrations/"+n] = &fstest.MapFile{Data: []byte("SELECT 1")}
		}
		if _, err := migrations(files); err == nil {
			t.Errorf("%v were taken", names)
		}
	}
}
