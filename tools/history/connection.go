package history

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	driver "github.com/ClickHouse/clickhouse-go/v2"
)

// connect opens a connection, and returns the context of queries on it.
func connect(ctx context.Context, dsn string) (driver.Conn, context.Context, error) {
	options, err := driver.ParseDSN(dsn)
	if err != nil {
		return nil, nil, errors.New("the DSN of the history is not clickhouse://user:password@host:9000/database")
	}
	options.DialTimeout = 5 * time.Second
	connection, err := driver.Open(options)
	if err != nil {
		return nil, nil, err
	}
	if ctx, err = readOnly(ctx, connection); err != nil {
		connection.Close()
		return nil, nil, at(dsn, err)
	}
	return connection, ctx, nil
}

// at adds to an error which history it comes from, without the password.
func at(dsn string, err error) error {
	options, bad := driver.ParseDSN(dsn)
	if bad != nil {
		return err
	}
	return fmt.Errorf("the history at %s: %w", strings.Join(options.Addr, ", "), err)
}

// readOnly returns the context of queries that may only read. It also works for a user who may do nothing else.
func readOnly(ctx context.Context, connection driver.Conn) (context.Context, error) {
	var may string
	if err := connection.QueryRow(ctx, "SELECT value FROM system.settings WHERE name = 'readonly'").Scan(&may); err != nil {
		return nil, err
	}
	if may != "0" {
		return ctx, nil
	}
	return driver.Context(ctx, driver.WithSettings(driver.Settings{"readonly": 2})), nil
}

// Payloads calls each with the messages of one type that count, of one topic and queue, as JSON and in the order of the log. It stops at
// the first error that each returns.
func Payloads(ctx context.Context, dsn, topic, kind, queue string, each func(payload string) error) error {
	connection, ctx, err := connect(ctx, dsn)
	if err != nil {
		return err
	}
	defer connection.Close()
	found, err := connection.Query(ctx, "SELECT payload FROM events FINAL WHERE topic = ? AND type = ? AND queue = ? AND counts ORDER BY partition, offset", topic, kind, queue)
	if err != nil {
		return at(dsn, err)
	}
	defer found.Close()
	for found.Next() {
		var payload string
		if err := found.Scan(&payload); err != nil {
			return at(dsn, err)
		}
		if err := each(payload); err != nil {
			return err
		}
	}
	if err := found.Err(); err != nil {
		return at(dsn, err)
	}
	return nil
}
