package historian

import (
	"context"
	"time"

	"landfall.build/platform/journal"
	"landfall.build/services/historian/rows"
	"landfall.build/services/historian/warehouse"
)

// batch is a set on its way to the store. free is called once it is written or dropped.
type batch struct {
	set  *rows.Set
	free func()
}

// gatherer makes batches of one lane's records, ahead of the one that is being written.
type gatherer struct {
	historian *Historian
	tp        TopicPartition
	cursor    journal.Cursor
	terms     *journal.Terms
	to        chan<- batch
}

// run makes batches until something fails. The first one completes the batch that was being written when the last historian stopped,
// with the same bounds.
func (g *gatherer) run(ctx context.Context, at warehouse.Position) error {
	for open := at.Open; ; open = -1 {
		b, err := g.gather(ctx, open)
		if err != nil {
			return err
		}
		select {
		case g.to <- b:
		case <-ctx.Done():
			b.free()
			return ctx.Err()
		}
	}
}

// gather waits for a record and makes a batch of those that follow within the interval, up to the bounds of a batch. If the first record
// is not behind the offset open, the batch ends there. Records up to open that exceed the bounds of a batch were never one batch; they
// are written as several.
func (g *gatherer) gather(ctx context.Context, open int64) (b batch, err error) {
	b = batch{set: g.historian.emptySet(), free: func() {}}
	defer func() {
		if err != nil {
			b.free()
		}
	}()
	first, err := g.cursor.Next(ctx)
	if err != nil {
		return b, err
	}
	g.add(b.set, first)
	completes := b.set.Last() <= open
	interval := time.NewTimer(g.historian.options.Interval)
	defer interval.Stop()
	large := false
	for b.set.Len() < warehouse.MaxRecords && b.set.Bytes() < maxBytes && !(completes && b.set.Last() >= open) {
		if !large && b.set.Bytes() > smallBytes {
			select {
			case g.historian.large <- struct{}{}:
			case <-ctx.Done():
				return b, ctx.Err()
			}
			large = true
			b.free = func() { <-g.historian.large }
		}
		e, ok, err := g.cursor.TryNext()
		if err != nil {
			return b, err
		}
		if ok {
			g.add(b.set, e)
			continue
		}
		due := interval.C
		if completes {
			due = nil
		}
		select {
		case <-g.cursor.Ready():
		case <-due:
			return b, nil
		case <-ctx.Done():
			return b, ctx.Err()
		}
	}
	return b, nil
}

func (g *gatherer) add(set *rows.Set, e journal.Entry) {
	set.Add(rows.Record{Topic: e.Topic, Partition: e.Partition, Offset: e.Offset, Envelope: e.Envelope, Counts: g.terms.Counts(e), Err: e.Err, Raw: e.Raw})
}
