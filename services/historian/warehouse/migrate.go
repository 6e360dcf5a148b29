package warehouse

import (
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"text/template"
)

// The files are those of schemas/clickhouse, copied by schemas/generate.sh; a test compares the two.
//
//go:embed migrations/*.sql
var migrationFiles embed.FS

// migration is one file of schemas/clickhouse. A released one never changes: a later one alters the tables.
type migration struct {
	version    uint32
	name, text string
}

func (m migration) checksum() string {
	sum := sha256.Sum256([]byte(m.text))
	return hex.EncodeToString(sum[:8])
}

// Migrations returns how many there are: a release refuses the tables of one that has more.
func Migrations() int {
	names, _ := fs.Glob(migrationFiles, "migrations/*.sql") // the pattern is not malformed
	return len(names)
}

// migrations reads the files in order.
func migrations(files fs.FS) ([]migration, error) {
	names, err := fs.Glob(files, "migrations/*.sql")
	if err != nil {
		return nil, err
	}
	slices.Sort(names)
	var list []migration
	for i, path := range names {
		name := strings.TrimSuffix(strings.TrimPrefix(path, "migrations/"), ".sql")
		number, _, _ := strings.Cut(name, "_")
		version, err := strconv.ParseUint(number, 10, 32)
		if err != nil || int(version) != i+1 {
			return nil, fmt.Errorf("schemas/clickhouse: %s is not NNNN_name.sql with the number %04d", name, i+1)
		}
		text, err := fs.ReadFile(files, path)
		if err != nil {
			return nil, err
		}
		list = append(list, migration{uint32(version), name, string(text)})
	}
	return list, nil
}

// statements renders a migration for a single server (cluster is empty) or for a cluster.
func (m migration) statements(cluster string) ([]string, error) {
	dialect := struct{ OnCluster, Window string }{Window: "non_replicated_deduplication_window = 1000"}
	replicated := ""
	if cluster != "" {
		dialect.OnCluster, dialect.Window, replicated = "ON CLUSTER "+quoteName(cluster), "replicated_deduplication_window = 1000", "Replicated"
	}
	t, err := template.New(m.name).Option("missingkey=error").Funcs(template.FuncMap{
		// Path and name of a replica come from the server's own macros (default_replica_path).
		"engine": func(name string, arguments ...string) string {
			if len(arguments) == 0 {
				return replicated + name
			}
			return replicated + name + "(" + strings.Join(arguments, ", ") + ")"
		},
	}).Parse(m.text)
	if err != nil {
		return nil, fmt.Errorf("schemas/clickhouse/%s.sql: %w", m.name, err)
	}
	var text strings.Builder
	if err := t.Execute(&text, dialect); err != nil {
		return nil, fmt.Errorf("schemas/clickhouse/%s.sql: %w", m.name, err)
	}
	var list []string
	for _, s := range strings.Split(text.String(), ";\n") {
		if s = strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(s), ";")); s != "" {
			list = append(list, s)
		}
	}
	return list, nil
}

const migrationsTable = `CREATE TABLE IF NOT EXISTS migrations {{.OnCluster}} (
	version UInt32, name String, checksum String, applied_at DateTime64(3, 'UTC')
) ENGINE = {{engine "ReplacingMergeTree"}} ORDER BY version`

// migrate applies the migrations that are not applied yet. Every statement can be repeated, so an interrupted migration, or two
// historians at once, do no harm.
func (w *Warehouse) migrate(ctx context.Context) error {
	list, err := migrations(migrationFiles)
	if err != nil {
		return err
	}
	first, err := migration{name: "migrations", text: migrationsTable}.statements(w.cluster)
	if err != nil {
		return err
	}
	soon, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	if w.cluster != "" || !has(soon, w.connection, "SELECT count() FROM system.tables WHERE database = currentDatabase() AND name = 'migrations'") {
		if err := w.connection.Exec(soon, first[0]); err != nil {
			return fmt.Errorf("make the table of migrations: %w", err)
		}
	}
	applied, err := w.applied(soon)
	if err != nil {
		return fmt.Errorf("read which migrations are applied: %w", err)
	}
	for version, m := range applied {
		if int(version) > len(list) {
			return fmt.Errorf("%w: they are at migration %s, of a newer landfall; this one knows %d: use that one", ErrUnknownTables, m.name, len(list))
		}
	}
	for _, m := range list {
		if before, is := applied[m.version]; is {
			if before.checksum != m.checksum() {
				return fmt.Errorf("%w: migration %s was applied with another text (%s, here %s): migrations are never changed, a new one is added", ErrUnknownTables, m.name, before.checksum, m.checksum())
			}
			continue
		}
		statements, err := m.statements(w.cluster)
		if err != nil {
			return err
		}
		for _, s := range statements {
			if err := w.apply(ctx, s); err != nil {
				return fmt.Errorf("apply schemas/clickhouse/%s.sql: %w", m.name, err)
			}
		}
		if err := w.apply(ctx, "INSERT INTO migrations VALUES (?, ?, ?, now64(3))", m.version, m.name, m.checksum()); err != nil {
			return fmt.Errorf("note that schemas/clickhouse/%s.sql is applied: %w", m.name, err)
		}
	}
	return nil
}

// apply runs a statement of a migration. One that fills a table may take long.
func (w *Warehouse) apply(ctx context.Context, statement string, arguments ...any) error {
	timeout := queryTimeout
	if strings.HasPrefix(statement, "INSERT") {
		timeout = fillTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	return w.connection.Exec(ctx, statement, arguments...)
}

type appliedMigration struct{ name, checksum string }

func (w *Warehouse) applied(ctx context.Context) (map[uint32]appliedMigration, error) {
	found, err := w.connection.Query(ctx, "SELECT version, name, checksum FROM migrations")
	if err != nil {
		return nil, err
	}
	defer found.Close()
	list := map[uint32]appliedMigration{}
	for found.Next() {
		var version uint32
		var m appliedMigration
		if err := found.Scan(&version, &m.name, &m.checksum); err != nil {
			return nil, err
		}
		list[version] = m
	}
	return list, found.Err()
}
