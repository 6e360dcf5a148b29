// Package dataset reads what models are trained on from the history in ClickHouse: rows of a vector, as it was published with a
// prediction, and of what was observed.
package dataset

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"landfall.build/engine/features"
	"landfall.build/engine/prediction"
	eventsv1 "landfall.build/events/v1"
)

// Row is a prediction and what was observed.
type Row struct {
	// At is when the vector was made, Ended when the target was known; in microseconds since 1970.
	At, Ended int64
	// Vector in the order of the schema; NaN is missing.
	Vector []float32
	// Target is 1 if the change passed or the pair broke, else 0; for a build, its seconds.
	Target float64
	// Censored is set for an aborted build: it would have taken longer than Target.
	Censored bool
	// Predicted and Std are the published prediction, for a duration in seconds; Source is what predicted it.
	Predicted, Std float64
	Source         string
}

// Set is the rows of one kind of one queue, oldest first by At. Their order depends on the rows alone.
type Set struct {
	Queue string
	Kind  eventsv1.ModelKind
	Rows  []Row
	// OtherSchema counts rows that were left out because their vectors are of another version of the schema.
	OtherSchema int
}

// MaxRows bounds the rows of a set; the newest are read.
const MaxRows = 100_000

// ErrNoHistory occurs when ClickHouse does not answer, or lacks the tables of the history. It is worth a retry later.
var ErrNoHistory = errors.New("the history cannot be read")

// Source is a ClickHouse that holds the history.
type Source struct{ connection driver.Conn }

// Open connects. The historian makes the tables.
func Open(dsn string) (*Source, error) {
	o, err := clickhouse.ParseDSN(dsn)
	if err != nil {
		return nil, fmt.Errorf("%w: its DSN is not clickhouse://user:password@host:9000/database", ErrNoHistory)
	}
	o.DialTimeout = 5 * time.Second
	o.ReadTimeout = 2 * time.Minute
	c, err := clickhouse.Open(o)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNoHistory, err)
	}
	return &Source{c}, nil
}

// Close ends the connection.
func (s *Source) Close() error { return s.connection.Close() }

// Read returns the rows of a kind whose vectors were made at a time or later.
func (s *Source) Read(ctx context.Context, queue string, kind eventsv1.ModelKind, from time.Time) (*Set, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	set := &Set{Queue: queue, Kind: kind}
	width := len(prediction.SchemaOf(kind))
	// Several pairs and builds of a change have the same time. The hash orders them: the same rows in another order make another model.
	found, err := s.connection.Query(ctx, `SELECT toUnixTimestamp64Micro(at), toUnixTimestamp64Micro(ended_at), toFloat64(predicted), toFloat64(std), toString(source), toUInt32(schema), features, toFloat64(target), toUInt8(censored)
		FROM training_`+prediction.KindName(kind)+` WHERE queue = ? AND at >= fromUnixTimestamp64Micro(?)
		ORDER BY at DESC, change, revision, cityHash64(ended_at, predicted, std, source, schema, features, target, censored) LIMIT ?`, queue, from.UnixMicro(), MaxRows)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNoHistory, err)
	}
	defer found.Close()
	for found.Next() {
		var r Row
		var schema uint32
		var censored uint8
		if err := found.Scan(&r.At, &r.Ended, &r.Predicted, &r.Std, &r.Source, &schema, &r.Vector, &r.Target, &censored); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrNoHistory, err)
		}
		if schema != features.Version || len(r.Vector) != width {
			set.OtherSchema++
			continue
		}
		r.Censored = censored != 0
		set.Rows = append(set.Rows, r)
	}
	if err := found.Err(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNoHistory, err)
	}
	slices.Reverse(set.Rows)
	return set, nil
}

// Queues returns the queues that have predictions.
func (s *Source) Queues(ctx context.Context) (queues []string, err error) {
	if err := s.connection.QueryRow(ctx, "SELECT arraySort(groupUniqArray(toString(queue))) FROM predictions").Scan(&queues); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNoHistory, err)
	}
	return queues, nil
}
