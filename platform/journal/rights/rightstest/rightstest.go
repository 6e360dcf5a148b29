// Package rightstest gives tests a log that goes by the table of rights, as the ACLs of a Kafka cluster do.
package rightstest

import (
	"context"
	"testing"

	"landfall.build/events"
	"landfall.build/platform/journal"
	"landfall.build/platform/journal/rights"
)

// As returns the log as an account has it: the test fails if it writes or reads a topic that the table does not give it.
func As(t testing.TB, log journal.Log, account string) journal.Log { return bound{log, t, account} }

type bound struct {
	journal.Log
	t       testing.TB
	account string
}

func (b bound) check(doing, topic string, may func(account string, t events.Topic) bool) {
	for _, row := range events.Topics() {
		if row.Name == topic && may(b.account, row) {
			return
		}
	}
	b.t.Errorf("the account %s %s %s, which the table of rights does not give it", b.account, doing, topic)
}

// Append implements journal.Log.
func (b bound) Append(ctx context.Context, topic string, partition int32, e ...events.Envelope) ([]int64, error) {
	b.check("writes", topic, rights.Writes)
	return b.Log.Append(ctx, topic, partition, e...)
}

// AppendAsync implements journal.Log.
func (b bound) AppendAsync(ctx context.Context, topic string, partition int32, e events.Envelope, done func(int64, error)) {
	b.check("writes", topic, rights.Writes)
	b.Log.AppendAsync(ctx, topic, partition, e, done)
}

// Follow implements journal.Log.
func (b bound) Follow(ctx context.Context, topic string, partition int32, from int64) (journal.Cursor, error) {
	b.check("reads", topic, rights.Reads)
	return b.Log.Follow(ctx, topic, partition, from)
}

// FollowSparingly implements journal.Sparing.
func (b bound) FollowSparingly(ctx context.Context, topic string, partition int32, from int64) (journal.Cursor, error) {
	b.check("reads", topic, rights.Reads)
	return journal.FollowSparingly(ctx, b.Log, topic, partition, from)
}

// End implements journal.Log.
func (b bound) End(ctx context.Context, topic string, partition int32) (int64, error) {
	b.check("reads", topic, rights.Reads)
	return b.Log.End(ctx, topic, partition)
}
