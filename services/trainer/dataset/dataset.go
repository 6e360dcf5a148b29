// Package dataset is what models are trained on: rows that the history in ClickHouse holds, each a vector as it was
// written with a prediction, and what came true.
package dataset

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	eventsv1 "landfall.build/events/v1"
	"landfall.build/services/profiler/features"
	"landfall.build/services/profiler/prediction"
)

// Row is one thing that was predicted and came true.
type Row struct {
	// At is when its vector was made, Ended when what it says of the target was known; microseconds since 1970.
	At, Ended int64
	// Vector in the order of the schema; NaN is missing.
	Vector []float32
	// Target is 1 or 0 (it passed; the pair broke), or the seconds of a build.
	Target float64
	// Censored: the build was aborted, and would have taken longer than Target.
	Censored bool
	// Predicted and Std are what was said at the time, for a duration in seconds; Source by what.
	Predicted, Std float64
	Source         string
}

// Set is the rows of one kind of one queue, oldest first by At. The same rows are in the same order, wherever and however they
// were written.
type Set struct {
	Queue string
	Kind  eventsv1.ModelKind
	Rows  []Row
	// OtherSchema counts rows that were left out because another version of the schema made their vectors.
	OtherSchema int
}

// MaxRows bounds a set: the newest.
const MaxRows = 100_000

// ErrNoHistory occurs when ClickHouse cannot be asked, or its tables are not those of the history. It is worth another try
// later.
var ErrNoHistory = errors.New("the history cannot be asked")

// Source is a ClickHouse that holds the history.
type Source struct{ connection driver.Conn }

// Open connects. The history's tables are the historian's to make.
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

// Read reads the rows of a kind whose vectors were made from a time on.
func (s *Source) Read(ctx context.Context, queue string, kind eventsv1.ModelKind, from time.Time) (*Set, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	set := &Set{Queue: queue, Kind: kind}
	width := len(prediction.SchemaOf(kind))
	// A change has many pairs, and several builds, of one moment: what else the rows say puts these in order, for the same
	// rows in another order make another model.
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

// Queues are those of which there are predictions.
func (s *Source) Queues(ctx context.Context) (queues []string, err error) {
	if err := s.connection.QueryRow(ctx, "SELECT arraySort(groupUniqArray(toString(queue))) FROM predictions").Scan(&queues); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNoHistory, err)
	}
	return queues, nil
}
