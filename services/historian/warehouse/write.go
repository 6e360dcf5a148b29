package warehouse

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"

	"landfall.build/services/historian/rows"
)

// ErrForgotten is returned by Write if the history lacks records before the batch: the database was created again, or restored from a
// backup. Position returns where to begin.
var ErrForgotten = errors.New("the history does not have what was written to it")

// Write writes a batch of one partition of one topic, which follows the records before next, and moves the position behind it. After an
// error part of it may be there. Write with the same batch, or with the one that Position returns, completes it.
func (w *Warehouse) Write(ctx context.Context, topic string, partition int32, next int64, set *rows.Set) error {
	if set.Len() == 0 {
		return nil
	}
	token := fmt.Sprintf("%s/%d/%d-%d", topic, partition, set.First(), set.Last())
	if err := w.insert(ctx, token, "events", rows.EventColumns, set.Events.Columns(), nil); err != nil {
		return fmt.Errorf("write records %s to the history: %w", token, err)
	}
	for _, t := range rows.Tables() {
		if facts := set.Facts(t); len(facts) > 0 {
			if err := w.insert(ctx, token, t.Name(), t.Columns(), nil, facts); err != nil {
				return fmt.Errorf("write what records %s say to %s: %w", token, t.Name(), err)
			}
		}
	}
	if err := w.move(ctx, topic, partition, next, set.Last()+1); err != nil {
		return fmt.Errorf("move the history's position behind records %s: %w", token, err)
	}
	return nil
}

// move moves the position to an offset, if it is at least at another one.
func (w *Warehouse) move(ctx context.Context, topic string, partition int32, from, to int64) error {
	ctx, cancel := context.WithTimeout(w.reading(ctx), insertTimeout)
	defer cancel()
	// The server reports how many rows it wrote. If it reports none, the position is read.
	var wrote atomic.Uint64
	counting := clickhouse.Context(ctx, clickhouse.WithProgress(func(p *clickhouse.Progress) { wrote.Add(p.WroteRows) }))
	// One statement checks and inserts: between two, the database could be created again, which would leave a gap.
	if err := w.connection.Exec(counting, `INSERT INTO positions (topic, partition, next, updated) SELECT ?, ?, ?, now64(3, 'UTC')
		WHERE (SELECT max(next) FROM positions WHERE topic = ? AND partition = ?) >= ?`, topic, partition, to, topic, partition, from); err != nil {
		return err
	}
	if wrote.Load() > 0 {
		return nil
	}
	now, err := w.next(ctx, topic, partition)
	if err == nil && now < to {
		err = fmt.Errorf("%w: it stands at %d, and not at %d; it is written again from there", ErrForgotten, now, from)
	}
	return err
}

// next returns the offset of the first record that is not in all tables.
func (w *Warehouse) next(ctx context.Context, topic string, partition int32) (int64, error) {
	var next uint64
	err := w.connection.QueryRow(ctx, "SELECT max(next) FROM positions WHERE topic = ? AND partition = ?", topic, partition).Scan(&next)
	return int64(next), err
}

// insert sends one block, by columns or by rows. It is stored once insert returns nil.
func (w *Warehouse) insert(ctx context.Context, token, table string, names []string, columns []any, facts []any) error {
	ctx, cancel := context.WithTimeout(ctx, insertTimeout)
	// The client watches the context while it sends, and may do so still when the connection is back in the pool: ending the context at
	// once could close the connection of the next insert.
	defer time.AfterFunc(cancelDelay, cancel)
	settings := clickhouse.Settings{
		"insert_deduplicate": 1, "insert_deduplication_token": token,
		// A block that was stored before a crash, and of which a view has no rows yet, gets to the view when it is written again.
		"deduplicate_blocks_in_dependent_materialized_views": 1,
		// One part, acknowledged when it is stored, whatever the server's defaults are.
		"async_insert": 0, "max_insert_block_size": 1 << 20, "max_insert_threads": 1,
	}
	if w.cluster != "" {
		settings["insert_quorum"] = "auto"
	}
	batch, err := w.connection.PrepareBatch(clickhouse.Context(ctx, clickhouse.WithSettings(settings)), "INSERT INTO "+table+" ("+strings.Join(names, ", ")+")")
	if err != nil {
		return err
	}
	defer batch.Close()
	for i, values := range columns {
		if err := batch.Column(i).Append(values); err != nil {
			return err
		}
	}
	for row := range slices.Chunk(facts, len(names)) {
		if err := batch.Append(row...); err != nil {
			return err
		}
	}
	return batch.Send()
}

// cancelDelay is how long the context of an insert outlives it.
const cancelDelay = time.Second

// MaxRecords bounds the records of a batch: its events must fit one block of the server.
const MaxRecords = 50_000
