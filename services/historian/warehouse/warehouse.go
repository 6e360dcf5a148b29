// Package warehouse is the history in ClickHouse: its tables, the position up to which they are written, and batches that are written
// exactly once in effect.
//
// A batch is the rows of consecutive records of one partition of one topic. It is written to the table of events first, as one block,
// which is stored whole or not at all; then to the tables of facts; then the position moves behind it. A historian that finds events
// ahead of the position writes the batch between the two again, with the same bounds, and the server drops each block that it has
// already (insert_deduplication_token). If two historians choose different bounds at the same time, rows are stored twice, and the keys
// of the tables make one row of them.
package warehouse

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"landfall.build/platform/journal"
	"landfall.build/services/historian/rows"
)

var (
	// ErrOtherLog is returned by Open when the database is the history of another log. Rows of two logs cannot be
	// distinguished, so nothing is written; another database must be named.
	ErrOtherLog = errors.New("the database holds the history of another log")
	// ErrUnknownTables is returned by Open when the tables are not those of this version: a newer landfall made
	// them, or somebody altered them. Nothing is written until that is settled.
	ErrUnknownTables = errors.New("the history's tables are not those that this landfall writes")
)

// Options of a connection.
type Options struct {
	// DSN is clickhouse://user:password@host:port/database?options, of the native protocol. The database is made
	// if it does not exist.
	DSN string
	// Cluster is the cluster on which replicated tables are made, empty for a single server.
	Cluster string
	// LogID is the id of the log that the history must be of. Readers leave it empty: any log.
	LogID string
}

// Warehouse is a connection to the history. It is safe for use by several goroutines.
type Warehouse struct {
	connection driver.Conn
	cluster    string
}

const (
	// insertTimeout bounds one insert, with what the server queues before it.
	insertTimeout = 2 * time.Minute
	queryTimeout  = time.Minute
	// fillTimeout bounds one statement of a migration, which may have to read a history of years.
	fillTimeout = time.Hour
	// minMajor and minMinor are the first version with everything that the tables use.
	minMajor, minMinor = 24, 8
)

// Open connects, makes or updates the tables, and checks that they are what this version writes.
func Open(ctx context.Context, o Options) (*Warehouse, error) {
	settings, err := clickhouse.ParseDSN(o.DSN)
	if err != nil {
		return nil, fmt.Errorf("the DSN of ClickHouse (clickhouse://user:password@host:9000/database) cannot be read: %s", withoutPassword(err))
	}
	soon, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	if err := makeDatabase(soon, *settings, o.Cluster); err != nil {
		return nil, err
	}
	w := &Warehouse{cluster: o.Cluster}
	if w.connection, err = clickhouse.Open(withLimits(*settings)); err != nil {
		return nil, fmt.Errorf("ClickHouse at %s: %w", strings.Join(settings.Addr, ", "), err)
	}
	if err := w.prepare(ctx, o); err != nil {
		w.Close()
		return nil, err
	}
	return w, nil
}

func (w *Warehouse) prepare(ctx context.Context, o Options) error {
	version, err := w.connection.ServerVersion()
	if err != nil {
		return fmt.Errorf("ClickHouse does not answer: %w", err)
	}
	if version.Version.Major < minMajor || version.Version.Major == minMajor && version.Version.Minor < minMinor {
		return fmt.Errorf("ClickHouse is version %d.%d; at least %d.%d is needed", version.Version.Major, version.Version.Minor, minMajor, minMinor)
	}
	if err := w.migrate(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	if err := w.checkColumns(ctx); err != nil {
		return err
	}
	return w.claimLog(ctx, o.LogID)
}

// withoutPassword returns the text of an error without what it quotes: the client may quote the whole DSN.
func withoutPassword(err error) string {
	text := err.Error()
	if i := strings.Index(text, `"`); i >= 0 {
		if j := strings.LastIndex(text, `"`); j > i {
			text = text[:i] + "…" + text[j+1:]
		}
	}
	return text
}

func withLimits(o clickhouse.Options) *clickhouse.Options {
	o.DialTimeout = 5 * time.Second
	o.ReadTimeout = insertTimeout
	if o.MaxOpenConns == 0 {
		o.MaxOpenConns = 16
	}
	o.MaxIdleConns = 4
	return &o
}

func makeDatabase(ctx context.Context, o clickhouse.Options, cluster string) error {
	name := o.Auth.Database
	if name == "" {
		return errors.New("the DSN of ClickHouse names no database: clickhouse://user:password@host:9000/landfall")
	}
	o.Auth.Database = "default"
	c, err := clickhouse.Open(withLimits(o))
	if err != nil {
		return fmt.Errorf("ClickHouse at %s: %w", strings.Join(o.Addr, ", "), err)
	}
	defer c.Close()
	on := ""
	if cluster != "" {
		on = " ON CLUSTER " + quoteName(cluster)
	}
	if cluster == "" && has(ctx, c, "SELECT count() FROM system.databases WHERE name = ?", name) {
		return nil
	}
	if err := c.Exec(ctx, "CREATE DATABASE IF NOT EXISTS "+quoteName(name)+on); err != nil {
		return fmt.Errorf("ClickHouse at %s: make the database %s: %w", strings.Join(o.Addr, ", "), name, err)
	}
	return nil
}

// has reports whether a count is above 0. CREATE … IF NOT EXISTS fails for a user who may write to what exists but not create it, so it
// is run only for what does not exist. On a cluster it always is: another server may lack it.
func has(ctx context.Context, c driver.Conn, count string, arguments ...any) bool {
	var n uint64
	err := c.QueryRow(ctx, count, arguments...).Scan(&n)
	return err == nil && n > 0
}

// quoteName quotes any text as an identifier.
func quoteName(name string) string {
	return "`" + strings.NewReplacer("\\", "\\\\", "`", "\\`").Replace(name) + "`"
}

// checkColumns finds tables that were altered by hand before an insert fails halfway.
func (w *Warehouse) checkColumns(ctx context.Context) error {
	want := map[string][]string{"events": rows.EventColumns, "positions": {"topic", "partition", "next", "updated"}}
	for _, t := range rows.Tables() {
		want[t.Name()] = t.Columns()
	}
	found, err := w.connection.Query(ctx, "SELECT table, name FROM system.columns WHERE database = currentDatabase()")
	if err != nil {
		return fmt.Errorf("look at the history's tables: %w", err)
	}
	defer found.Close()
	have := map[string][]string{}
	for found.Next() {
		var table, name string
		if err := found.Scan(&table, &name); err != nil {
			return err
		}
		have[table] = append(have[table], name)
	}
	if err := found.Err(); err != nil {
		return fmt.Errorf("look at the history's tables: %w", err)
	}
	for _, table := range slices.Sorted(maps.Keys(want)) { // the same database gives the same error
		for _, c := range want[table] {
			if !slices.Contains(have[table], c) {
				return fmt.Errorf("%w: table %s has no column %s; add it again, or stop all historians, drop the database and start them: it is filled from the log", ErrUnknownTables, table, c)
			}
		}
	}
	return nil
}

// claimLog makes the database the history of one log, or returns ErrOtherLog.
func (w *Warehouse) claimLog(ctx context.Context, id string) error {
	if id == "" {
		return nil
	}
	read := func() (ids []string, err error) {
		return ids, w.connection.QueryRow(ctx, "SELECT groupUniqArray(id) FROM log").Scan(&ids)
	}
	ids, err := read()
	if err == nil && len(ids) == 0 {
		if err = w.connection.Exec(w.reading(ctx), "INSERT INTO log (id, since) VALUES (?, now64(3))", id); err == nil {
			ids, err = read()
		}
	}
	if err != nil {
		return fmt.Errorf("read whose history it is: %w", err)
	}
	if len(ids) != 1 || ids[0] != id {
		return fmt.Errorf("%w (%s; this log is %s): name another database in clickhouse.dsn, or drop this one", ErrOtherLog, strings.Join(ids, ", "), id)
	}
	return nil
}

// reading makes replicas wait for what was acknowledged by others, on a cluster.
func (w *Warehouse) reading(ctx context.Context) context.Context {
	if w.cluster == "" {
		return ctx
	}
	return clickhouse.Context(ctx, clickhouse.WithSettings(clickhouse.Settings{"insert_quorum": "auto", "select_sequential_consistency": 1}))
}

// Position is where a partition of a topic stands.
type Position struct {
	// Next is the offset of the first record that is not in all tables.
	Next int64
	// Open is the last offset of a batch that may not be in all tables, Next-1 if there is none. The next batch must be from Next to Open.
	Open int64
	// Claims has, by service, the offset of its last claim before Next.
	Claims map[string]int64
}

// Position returns how far a partition of a topic is written.
func (w *Warehouse) Position(ctx context.Context, topic string, partition int32) (Position, error) {
	ctx, cancel := context.WithTimeout(w.reading(ctx), queryTimeout)
	defer cancel()
	fail := func(err error) (Position, error) {
		return Position{}, fmt.Errorf("read how far the history of %s/%d is: %w", topic, partition, err)
	}
	next, err := w.next(ctx, topic, partition)
	if err != nil {
		return fail(err)
	}
	var last, open uint64
	// Only the open batch is counted, which is short.
	if err := w.connection.QueryRow(ctx, "SELECT max(offset), count() FROM events WHERE topic = ? AND partition = ? AND offset >= ?", topic, partition, next).Scan(&last, &open); err != nil {
		return fail(err)
	}
	p := Position{Next: next, Open: next - 1, Claims: map[string]int64{}}
	if open > 0 {
		p.Open = int64(last)
	}
	found, err := w.connection.Query(ctx, "SELECT source, toInt64(max(offset)) FROM events WHERE topic = ? AND partition = ? AND offset < ? AND type = 'Claim' AND error = '' GROUP BY source", topic, partition, next)
	if err != nil {
		return fail(err)
	}
	defer found.Close()
	for found.Next() {
		var service string
		var offset int64
		if err := found.Scan(&service, &offset); err != nil {
			return fail(err)
		}
		p.Claims[service] = offset
	}
	if err := found.Err(); err != nil {
		return fail(err)
	}
	return p, nil
}

// Terms returns the terms of a topic's partition at the position.
func (p Position) Terms(topic string) *journal.Terms {
	terms := journal.NewTerms(topic)
	for service, offset := range p.Claims {
		terms.Restore(service, offset)
	}
	return terms
}

// Close ends the connection.
func (w *Warehouse) Close() error { return w.connection.Close() }
