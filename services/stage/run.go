package stage

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"landfall.build/events"
	"landfall.build/services/journal"
	"landfall.build/services/snapshot"
)

// SaysLive is what a service's log says of a partition once it has folded what was there at its start.
const SaysLive = "live"

// ErrSuperseded is returned once another instance has claimed the partition: what this one would write
// counts no more.
var ErrSuperseded = errors.New("another instance has claimed the partition")

// Options of a stage's loop.
type Options struct {
	Log      journal.Log
	Instance string
	Version  string
	Logger   *slog.Logger
	// Snapshots, if there is a store, keep a start from folding the log from its beginning.
	Snapshots *snapshot.Store
	// Clock, time.Now if nil, stamps what the service writes. Nothing waits by it.
	Clock func() time.Time
}

// Now is what the clock says.
func (o Options) Now() time.Time {
	if o.Clock == nil {
		return time.Now()
	}
	return o.Clock()
}

// Run owns one partition until the context ends, the ownership is lost, or a write fails; whoever owns it
// next starts from the log.
func Run(ctx context.Context, o Options, s Stage, partition int32) error {
	r, err := Take(ctx, o, s, partition)
	if err != nil {
		return err
	}
	defer r.Close()
	for {
		did, err := r.Step(ctx)
		if err == nil && !did {
			err = r.wait(ctx)
		}
		if err != nil {
			return err
		}
	}
}

// Owner is a stage on one partition under one term. It does one thing at a time, and is for one goroutine; any error
// ends the ownership.
type Owner struct {
	o         Options
	stage     Stage
	partition int32
	term      int64
	keeping   *Keeping
	w         *Writer
	p         *Partition
	own, in   journal.Cursor
	// held is an input that waits for the own records before it.
	held *journal.Entry
	// taken counts inputs since the keeping was last told.
	taken int
}

// Take claims a partition, and opens the last snapshot if there is one; the log is still to be folded.
func Take(ctx context.Context, o Options, s Stage, partition int32) (*Owner, error) {
	term, err := Claim(ctx, o.Log, s.Service, o.Instance, o.Version, s.Output, partition, o.Now())
	if err != nil {
		return nil, err
	}
	r := &Owner{
		o: o, stage: s, partition: partition, term: term, keeping: NewKeeping(o, s.Service, partition),
		w: NewWriter(o, s.Service, s.Output, partition, term),
	}
	if kept, ok := r.keeping.Last(term); ok {
		switch err = r.from(ctx, kept); {
		case err == nil:
			return r, nil
		case !errors.Is(err, ErrStale):
			return nil, err
		}
		r.keeping.Drop(err)
	}
	if err := r.open(ctx, NewPartition(s), 0, 0); err != nil {
		return nil, err
	}
	return r, nil
}

// from opens what a snapshot holds; ErrStale if it is none of this log.
func (r *Owner) from(ctx context.Context, kept Kept) error {
	p, err := Thaw(r.stage, kept)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrStale, err)
	}
	end, err := r.o.Log.End(ctx, r.stage.Input, r.partition)
	if err != nil {
		return err
	}
	if p.inputNext > end {
		return fmt.Errorf("%w: %s has %d records, and it has taken %d", ErrStale, r.stage.Input, end, p.inputNext)
	}
	return r.open(ctx, p, kept.Own, p.inputNext)
}

func (r *Owner) open(ctx context.Context, p *Partition, own, in int64) (err error) {
	r.p, r.held, r.taken = p, nil, 0
	if r.own, err = r.o.Log.Follow(ctx, r.stage.Output, r.partition, own); err != nil {
		return err
	}
	if r.in, err = r.o.Log.Follow(ctx, r.stage.Input, r.partition, in); err != nil {
		r.own.Close()
	}
	return err
}

// Close ends the reading.
func (r *Owner) Close() {
	r.own.Close()
	r.in.Close()
}

// Folded says that the owner holds all that its predecessors wrote: what comes next it answers itself.
func (r *Owner) Folded() bool { return r.p.live && !r.p.Behind() }

// Step takes one record that has arrived, of its own topic or the next input, without waiting; did is false if there was
// none. What it writes is part of its state at once, and under way when it returns.
func (r *Owner) Step(ctx context.Context) (did bool, err error) {
	select {
	case err := <-r.w.failed:
		return false, err
	default:
	}
	if r.p.NeedsOwn() {
		did, err = r.takeOwn()
	} else {
		did, err = r.takeInput(ctx)
	}
	if errors.Is(err, ErrStale) {
		r.keeping.Drop(err)
		r.Close()
		return true, r.open(ctx, NewPartition(r.stage), 0, 0)
	}
	return did, err
}

// takeOwn reads on in the own topic, up to the claim.
func (r *Owner) takeOwn() (did bool, err error) {
	e, ok, err := r.own.TryNext()
	if err != nil || !ok {
		return false, err
	}
	r.p.Own(e)
	if r.p.Stale() {
		return false, ErrStale
	}
	if e.Offset >= r.term {
		r.p.Live()
		r.o.Logger.Debug(SaysLive, "service", r.stage.Service, "partition", r.partition, "term", r.term)
	}
	return true, nil
}

func (r *Owner) takeInput(ctx context.Context) (did bool, err error) {
	e, err := r.next()
	if err != nil {
		return false, err
	}
	if e == nil {
		return false, r.keep()
	}
	if errors.Is(e.Err, events.ErrUndecodable) {
		if r.stage.Reports {
			r.w.deadLetter(ctx, *e)
		}
		return true, nil
	}
	fits, orphans := r.p.Fits(*e)
	if orphans > 0 {
		r.o.Logger.Error("records of the stage's own answer no input; they are left out", "service", r.stage.Service,
			"topic", r.stage.Output, "partition", r.partition, "records", orphans, "before", fmt.Sprintf("%s/%d/%d", r.stage.Input, r.partition, e.Offset))
	}
	if !fits {
		r.held = e
		return true, nil
	}
	queue, out := r.p.Input(*e)
	r.taken++
	if out != nil {
		if err := r.w.Write(ctx, queue, strconv.FormatInt(r.stage.Position(out), 10), e.Trace, out); err != nil {
			return false, err
		}
		if r.stage.Warnings != nil {
			for _, text := range r.stage.Warnings(out) {
				r.o.Logger.Warn(text, "queue", queue)
			}
		}
	}
	return true, r.keep()
}

// next is the next input, nil if none has arrived.
func (r *Owner) next() (*journal.Entry, error) {
	if e := r.held; e != nil {
		r.held = nil
		return e, nil
	}
	e, ok, err := r.in.TryNext()
	if err != nil || !ok {
		return nil, err
	}
	return &e, nil
}

// Check reads on in the own topic, if it is not needed for anything else, to see whether another instance has claimed it.
func (r *Owner) Check() error {
	if r.p.NeedsOwn() || r.p.Behind() {
		return nil
	}
	return r.w.CheckTerm(r.own)
}

// wait returns when there may be something to do.
func (r *Owner) wait(ctx context.Context) error {
	switch {
	case r.p.NeedsOwn():
		return r.w.Wait(ctx, nil, r.own.Ready())
	case r.p.Behind():
		// What stands in the own topic is still to be folded: nobody may read it to look for claims.
		return r.w.Wait(ctx, nil, r.in.Ready())
	}
	return r.w.Wait(ctx, r.own, r.in.Ready())
}

// keep keeps a snapshot when that is due.
func (r *Owner) keep() error {
	if !r.p.live || r.p.Behind() {
		return nil
	}
	r.keeping.Live(r.w)
	taken := r.taken
	r.taken = 0
	return r.keeping.Offer(taken, r.own, r.p.Freeze)
}
