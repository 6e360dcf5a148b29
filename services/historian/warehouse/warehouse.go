// Package warehouse is the history in ClickHouse: its tables, how far they are, and batches written to them
// exactly once in effect.
//
// A batch is the rows of consecutive records of one partition of one topic. It is written to the table of events
// first, as one block, which is there whole or not at all; then to the tables of facts; then the position moves
// on. Whoever finds events ahead of the position writes the batch between the two again, with the same bounds, so
// that the server drops each block that it has (insert_deduplication_token). What slips through, because another
// historian chose other bounds at the same time, is one row under the tables' keys.
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

	"landfall.build/services/historian/rows"
	"landfall.build/services/journal"
)

var (
	// ErrOtherLog is returned by Open when the database is the history of another log. Rows of two logs cannot be
	// told apart, so nothing is written; another database has to be named.
	ErrOtherLog = errors.New("the database holds the history of another log")
	// ErrUnknownTables is returned by Open when the tables are not those of this version: a newer landfall made
	// them, or somebody altered them. Nothing is written until that is settled.
	ErrUnknownTables = errors.New("the history's tables are not those that this landfall writes")
)

// Options say where the history is.
type Options struct {
	// DSN is clickhouse://user:password@host:port/database?options, of the native protocol. The database is made
	// if it does not exist.
	DSN string
	// Cluster, if not empty, is the name of the cluster that tables are made on, replicated.
	Cluster string
	// LogID is the id of the log whose history it is. Empty, for readers, is any.
	LogID string
}

// Warehouse is a connection to the history. It is safe for use by several goroutines.
type Warehouse struct {
	connection driver.Conn
	cluster    string
}

const (
	// insertPatience bounds one insert, with what the server queues before it.
	insertPatience = 2 * time.Minute
	queryPatience  = time.Minute
	// oldest is the first version that has all that the tables use.
	oldestMajor, oldestMinor = 24, 8
)

// Open connects, makes or updates the tables, and checks that they are what this version writes.
func Open(ctx context.Context, o Options) (*Warehouse, error) {
	settings, err := clickhouse.ParseDSN(o.DSN)
	if err != nil {
		return nil, fmt.Errorf("the DSN of ClickHouse (clickhouse://user:password@host:9000/database) cannot be read: %s", withoutPassword(err))
	}
	ctx, cancel := context.WithTimeout(ctx, queryPatience)
	defer cancel()
	if err := makeDatabase(ctx, *settings, o.Cluster); err != nil {
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
	if version.Version.Major < oldestMajor || version.Version.Major == oldestMajor && version.Version.Minor < oldestMinor {
		return fmt.Errorf("ClickHouse is version %d.%d; at least %d.%d is needed", version.Version.Major, version.Version.Minor, oldestMajor, oldestMinor)
	}
	if err := w.migrate(ctx); err != nil {
		return err
	}
	if err := w.checkColumns(ctx); err != nil {
		return err
	}
	return w.claimLog(ctx, o.LogID)
}

// withoutPassword is what is wrong with a DSN; the client's own text may repeat all of it.
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
	o.ReadTimeout = insertPatience
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

// has says that a count is above 0. Who may write to what is there need not be somebody who may make it, and would be refused even
// IF NOT EXISTS; on a cluster it may be there and not elsewhere.
func has(ctx context.Context, c driver.Conn, count string, arguments ...any) bool {
	var n uint64
	err := c.QueryRow(ctx, count, arguments...).Scan(&n)
	return err == nil && n > 0
}

// quoteName makes an identifier of any text.
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

// claimLog makes the database the history of one log.
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
	// Open is the last offset of the batch that was begun and may not be in all tables, Next-1 if there is none:
	// the next batch has to be from Next to Open.
	Open int64
	// Claims has the claim in force of each service, before Next.
	Claims map[string]int64
}

// Position reads where a partition of a topic stands.
func (w *Warehouse) Position(ctx context.Context, topic string, partition int32) (Position, error) {
	ctx, cancel := context.WithTimeout(w.reading(ctx), queryPatience)
	defer cancel()
	fail := func(err error) (Position, error) {
		return Position{}, fmt.Errorf("read how far the history of %s/%d is: %w", topic, partition, err)
	}
	next, err := w.next(ctx, topic, partition)
	if err != nil {
		return fail(err)
	}
	var last, open uint64
	// The batch that is open is short; what is before it need not be looked at.
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

// Terms are the terms of a topic's partition as they stand at the position.
func (p Position) Terms(topic string) *journal.Terms {
	terms := journal.NewTerms(topic)
	for service, offset := range p.Claims {
		terms.Restore(service, offset)
	}
	return terms
}

// Close ends the connection.
func (w *Warehouse) Close() error { return w.connection.Close() }
