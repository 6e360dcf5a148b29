package historian

import (
	"context"
	"time"

	"landfall.build/services/historian/rows"
	"landfall.build/services/historian/warehouse"
	"landfall.build/services/journal"
)

// batch is a set on its way to the store. free is called once it is there, or given up.
type batch struct {
	set  *rows.Set
	free func()
}

// gatherer makes batches of one lane's records, ahead of the one that is being written.
type gatherer struct {
	historian *Historian
	lane      Lane
	cursor    journal.Cursor
	terms     *journal.Terms
	to        chan<- batch
}

// run gathers until something fails. The first batch completes the one that was open, with its bounds.
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

// gather waits for a record and takes what comes with it: up to the offset open if that is not in the log's past
// already, else until the batch is full, or no record has come for the rest of the interval.
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
	if b.set.Last() < open {
		return b, g.complete(ctx, b.set, open)
	}
	if b.set.Last() == open {
		return b, nil
	}
	interval := time.NewTimer(g.historian.options.Interval)
	defer interval.Stop()
	large := false
	for b.set.Len() < warehouse.MaxRecords && b.set.Bytes() < maxBytes {
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
		select {
		case <-g.cursor.Ready():
		case <-interval.C:
			return b, nil
		case <-ctx.Done():
			return b, ctx.Err()
		}
	}
	return b, nil
}

// complete takes what the batch that was open had. It was within the bounds when it was made; what is beyond them is
// no batch but a gap, which is filled by batches like any others.
func (g *gatherer) complete(ctx context.Context, set *rows.Set, open int64) error {
	for set.Last() < open && set.Len() < warehouse.MaxRecords && set.Bytes() < maxBytes {
		e, err := g.cursor.Next(ctx)
		if err != nil {
			return err
		}
		g.add(set, e)
	}
	return nil
}

func (g *gatherer) add(set *rows.Set, e journal.Entry) {
	set.Add(rows.Record{Topic: e.Topic, Partition: e.Partition, Offset: e.Offset, Envelope: e.Envelope, Counts: g.terms.Counts(e), Err: e.Err, Raw: e.Raw})
}
