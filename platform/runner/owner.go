package runner

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"google.golang.org/protobuf/proto"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/health"
	"landfall.build/platform/journal"
	"landfall.build/platform/snapshot"
)

// SaysLive is the log message of a service that is live on a partition: from now on it decides. A service that claims
// nothing is live once it has caught up with what the log held at its start.
const SaysLive = "live"

var (
	// ErrSuperseded is returned once another instance has claimed the partition: what this one would write does not count.
	ErrSuperseded = errors.New("another instance has claimed the partition")
	// ErrStale says that a snapshot is of no use: it holds outputs that do not count, or is of another log.
	ErrStale = errors.New("the snapshot does not fit the log")
)

// Options are what an instance of a service runs with.
type Options struct {
	Log      journal.Log
	Instance string
	Version  string
	Logger   *slog.Logger
	// Snapshots, if there is a store, keep a start from folding the log from its beginning.
	Snapshots *snapshot.Store
	// Clock, time.Now if nil, stamps what the service writes. Nothing waits by it.
	Clock func() time.Time
	// Health, if set, is told how far the service has read.
	Health *health.Service
	// Metrics, if set, measures the service.
	Metrics *Metrics
}

// Now returns what the clock shows.
func (o Options) Now() time.Time {
	if o.Clock == nil {
		return time.Now()
	}
	return o.Clock()
}

// Claim appends the claim that opens a term, and returns the term.
func Claim(ctx context.Context, log journal.Log, service, instance, version, topic string, partition int32, now time.Time) (int64, error) {
	offsets, err := log.Append(ctx, topic, partition, events.Envelope{
		ID:     events.DeriveID(log.ID(), "claim", service, instance, topic, fmt.Sprint(partition), fmt.Sprint(now.UnixNano())),
		Source: service, Instance: instance, Time: now, Term: -1,
		Message: &eventsv1.Claim{Service: service, Instance: instance, Version: version, ClaimedUs: now.UnixMicro()},
	})
	if err != nil {
		return 0, fmt.Errorf("claim partition %d of %s: %w", partition, topic, err)
	}
	return offsets[0], nil
}

// Run owns one partition until the context ends, the ownership is lost, or a write fails; whoever owns it next starts from
// the log.
func Run(ctx context.Context, o Options, s Service, partition int32) error {
	r, err := Take(ctx, o, s, partition)
	if err != nil {
		return err
	}
	defer r.Close()
	r.health = o.Health.Begin(partition, r.term)
	r.reportRead()
	var ticks <-chan time.Time
	if s.TickEvery > 0 {
		ticker := time.NewTicker(s.TickEvery)
		defer ticker.Stop()
		ticks = ticker.C
	}
	for ctx.Err() == nil {
		did, err := r.Step(ctx)
		switch {
		case err == nil && !did:
			err = r.wait(ctx, ticks)
		case err == nil:
			// A service that is never idle hears of the time all the same: a queue that waits for a tick may share its
			// partition with one that always has something to do.
			select {
			case <-ticks:
				err = r.Tick(ctx, "")
			default:
			}
		}
		if err != nil {
			return err
		}
	}
	return ctx.Err()
}

// Owner is a service on one partition under one term. It does one thing at a time, and is for one goroutine; any error ends
// the ownership.
type Owner struct {
	o         Options
	service   Service
	partition int32
	term      int64
	core      Core
	w         *writer
	snapshots *termSnapshots
	own       journal.Cursor
	// sources are the cursors of the service's sources, in their order; of a service that reads back the own topic is the
	// first. They are opened once the core can say where it reads on.
	sources []journal.Cursor
	// ends holds where each source ended when it was opened. caughtUp is set once the core has applied all of that.
	ends     []int64
	caughtUp bool
	// live is set once the own topic is read up to the claim.
	live bool
	// undecided is set while inputs are applied that the core has not been asked about.
	undecided bool
	// taken counts the records that were applied since keeping was last offered the state.
	taken int
	// health is that of the partition.
	health *health.Partition
	// newest is the time of the newest record that was applied.
	newest time.Time
}

// Take claims a partition, and opens the last snapshot if there is one; the log is still to be folded.
func Take(ctx context.Context, o Options, s Service, partition int32) (*Owner, error) {
	term, err := Claim(ctx, o.Log, s.Name, o.Instance, o.Version, s.Output, partition, o.Now())
	if err != nil {
		return nil, err
	}
	r := &Owner{
		o: o, service: s, partition: partition, term: term,
		w: newWriter(o, s.Name, s.Output, partition, term), snapshots: newTermSnapshots(o, s.Name, partition),
	}
	if kept, ok := r.snapshots.Last(term); ok {
		core, err := r.restore(ctx, kept)
		switch {
		case err == nil:
			return r, r.open(ctx, core, kept.Own)
		case !errors.Is(err, ErrStale):
			return nil, err
		}
		r.snapshots.Drop(err)
	}
	return r, r.open(ctx, s.New(), 0)
}

// restore opens what a snapshot holds; ErrStale if it is none of this log.
func (r *Owner) restore(ctx context.Context, kept savedState) (Core, error) {
	core, err := r.service.Restore(kept.State, kept.Term)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrStale, err)
	}
	for _, topic := range r.service.Sources {
		end, err := r.o.Log.End(ctx, topic, r.partition)
		if err != nil {
			return nil, fmt.Errorf("end of %s/%d: %w", topic, r.partition, err)
		}
		if next := core.Next(topic); next > end {
			return nil, fmt.Errorf("%w: %s has %d records, and it has taken %d", ErrStale, topic, end, next)
		}
	}
	return core, nil
}

// open begins to read the own topic.
func (r *Owner) open(ctx context.Context, core Core, own int64) (err error) {
	r.core, r.live, r.undecided, r.taken = core, false, false, 0
	r.own, err = r.o.Log.Follow(ctx, r.service.Output, r.partition, own)
	return err
}

// follow opens the sources where the core reads on.
func (r *Owner) follow(ctx context.Context) error {
	for _, topic := range r.service.Sources {
		end, err := r.o.Log.End(ctx, topic, r.partition)
		if err != nil {
			return err
		}
		r.ends = append(r.ends, end)
		if topic == r.service.Output {
			r.sources = append(r.sources, r.own)
			continue
		}
		c, err := r.o.Log.Follow(ctx, topic, r.partition, r.core.Next(topic))
		if err != nil {
			return err
		}
		r.sources = append(r.sources, c)
	}
	return nil
}

// Close ends the reading.
func (r *Owner) Close() {
	if r.service.Close != nil {
		r.service.Close()
	}
	r.closeCursors()
	r.health.End()
}

func (r *Owner) closeCursors() {
	if r.own != nil {
		r.own.Close()
	}
	for _, c := range r.sources {
		if c != r.own {
			c.Close()
		}
	}
	r.own, r.sources, r.ends, r.caughtUp = nil, nil, nil, false
}

// Live reports whether the own topic is read up to the claim. Then the core holds all that its predecessors wrote, and decides
// what comes next.
func (r *Owner) Live() bool { return r.live }

// Step takes what has arrived, without waiting, and acts on it; did is false if there was nothing. A service that does not
// read back has what it writes in its state at once, and under way when Step returns.
func (r *Owner) Step(ctx context.Context) (did bool, err error) {
	select {
	case err := <-r.w.failed:
		return false, err
	default:
	}
	if r.core.NeedsOwn() {
		return r.stepOwn(ctx)
	}
	if r.sources == nil {
		if err := r.follow(ctx); err != nil {
			return false, err
		}
	}
	for _, c := range r.sources {
		took, err := r.drain(ctx, c)
		if did = did || took; err != nil {
			return did, err
		}
	}
	acted, err := r.Act(ctx)
	if did = did || acted; err != nil {
		return did, err
	}
	if did {
		// After Act: a service that reads back has applied what it wrote, too.
		r.reportRead()
	}
	return did, r.keep()
}

// reportRead reports how far the sources are applied.
func (r *Owner) reportRead() {
	if r.health == nil {
		return
	}
	for _, topic := range r.service.Sources {
		r.health.Read(topic, r.core.Next(topic))
	}
}

// stepOwn takes one record of the own topic, up to the claim.
func (r *Owner) stepOwn(ctx context.Context) (did bool, err error) {
	e, ok, err := r.own.TryNext()
	if err != nil || !ok {
		return false, err
	}
	if r.service.ReadsBack {
		if err := r.apply(e); err != nil {
			return true, err
		}
	} else {
		r.core.Fold(Append{Queue: e.Queue, Subject: e.Subject, Message: e.Message, Own: &e})
	}
	if r.core.Stale() {
		r.snapshots.Drop(ErrStale)
		r.closeCursors()
		return true, r.open(ctx, r.service.New(), 0)
	}
	if e.Offset >= r.term {
		r.core.GoLive(r.o.Now())
		r.live, r.undecided = true, true
		r.o.Logger.Debug(SaysLive, "service", r.service.Name, "partition", r.partition, "term", r.term)
	}
	return true, nil
}

// drain takes what has arrived in one source.
func (r *Owner) drain(ctx context.Context, c journal.Cursor) (took bool, err error) {
	began := r.o.Metrics.begin()
	defer func() {
		if took {
			r.o.Metrics.folded(began)
		}
	}()
	for range max(1, r.service.Batch) {
		if r.core.NeedsOwn() {
			return took, nil
		}
		e, ok, err := c.TryNext()
		if err != nil || !ok {
			return took, err
		}
		took = true
		if r.undecided && !r.core.CanBatch(e) {
			if _, err := r.Act(ctx); err != nil {
				return took, err
			}
		}
		if err := r.apply(e); err != nil {
			return took, err
		}
	}
	return took, nil
}

// apply lets the core take a record of a source.
func (r *Owner) apply(e journal.Entry) error {
	if r.service.ReadsBack && e.Topic == r.service.Output {
		if r.w.ownRead = e.Offset + 1; r.supersedes(e) {
			return ErrSuperseded
		}
	}
	r.core.Apply(Input{Record: &e, Now: r.o.Now()})
	r.newest = e.Time
	r.taken++
	r.undecided = true
	return nil
}

// supersedes reports whether a record of the own topic is the claim of a later owner.
func (r *Owner) supersedes(e journal.Entry) bool {
	return e.Source == r.service.Name && e.Offset > r.term && journal.BeginsTerm(e.Envelope)
}

// Act carries out what the core decides on what it has applied. A service that reads back is asked again when more has been
// read; any other until it decides nothing more.
func (r *Owner) Act(ctx context.Context) (did bool, err error) {
	for r.undecided && r.live {
		began := r.o.Metrics.begin()
		effects := r.core.Decide()
		r.o.Metrics.decided(began)
		if len(effects) == 0 {
			r.undecided = false
			return did, nil
		}
		for _, e := range effects {
			if err := r.perform(ctx, e); err != nil {
				return true, err
			}
		}
		if did = true; r.service.ReadsBack {
			return true, nil
		}
	}
	return did, nil
}

func (r *Owner) perform(ctx context.Context, e Effect) error {
	switch e := e.(type) {
	case Append:
		r.o.Metrics.wrote(r.newest)
		if err := r.write(ctx, e); err != nil {
			return err
		}
	case DeadLetter:
		if err := r.w.deadLetter(ctx, e); err != nil {
			return err
		}
	case Log:
		r.o.Logger.Log(ctx, e.Level, e.Text, e.Args...)
	default:
		outcome := r.service.Perform(ctx, e)
		if err := ctx.Err(); err != nil {
			return err // what was under way was ended by us: its outcome says nothing
		}
		if outcome != nil {
			r.core.Apply(Input{Outcome: outcome, Now: r.o.Now()})
			return nil
		}
	}
	r.core.Fold(e)
	return nil
}

// write appends a record. Of a service that reads back it reads on up to the record: what it means is decided by what came
// before it in the log, not by having been written.
func (r *Owner) write(ctx context.Context, a Append) error {
	if !r.service.ReadsBack {
		return r.w.Write(ctx, a)
	}
	offset, err := r.w.writeAndWait(ctx, a)
	if err != nil {
		return err
	}
	for {
		e, err := r.own.Next(ctx)
		if err != nil {
			return err
		}
		if err := r.apply(e); err != nil {
			return err
		}
		if e.Offset >= offset {
			return nil
		}
	}
}

// Tick lets time pass in a queue, or in all that are due if queue is "".
func (r *Owner) Tick(ctx context.Context, queue string) error {
	if !r.live || r.core.NeedsOwn() {
		return nil
	}
	r.core.Apply(Input{Tick: &Tick{Queue: queue}, Now: r.o.Now()})
	r.undecided = true
	if r.service.ReadsBack {
		return nil
	}
	_, err := r.Act(ctx)
	return err
}

// Check reads on in the own topic to see whether another instance has claimed it. A service that reads back sees it anyway.
func (r *Owner) Check() error {
	if !r.live || r.service.ReadsBack {
		return nil
	}
	return r.w.checkTerm(r.own)
}

// wait returns when there may be something to do.
func (r *Owner) wait(ctx context.Context, ticks <-chan time.Time) error {
	var own <-chan struct{}
	var ready [3]<-chan struct{}
	if r.core.NeedsOwn() {
		ready[0], ticks = r.own.Ready(), nil
	} else {
		for i, c := range r.sources {
			ready[i] = c.Ready()
		}
		if r.live && !r.service.ReadsBack {
			own = r.own.Ready()
		}
	}
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case err := <-r.w.failed:
			return err
		case <-ready[0]:
			return nil
		case <-ready[1]:
			return nil
		case <-ready[2]:
			return nil
		case <-ticks:
			return r.Tick(ctx, "")
		case <-own:
			if err := r.Check(); err != nil {
				return err
			}
		}
	}
}

// keep keeps a snapshot when that is due.
func (r *Owner) keep() error {
	if !r.live || r.undecided && !r.service.ReadsBack {
		return nil
	}
	if !r.caughtUp {
		for i, topic := range r.service.Sources {
			if r.core.Next(topic) < r.ends[i] {
				return nil
			}
		}
		r.caughtUp = true
		r.reportRead()
		r.health.CaughtUp()
	}
	r.snapshots.caughtUp(r.w)
	taken := r.taken
	r.taken = 0
	return r.snapshots.maybeSave(taken, r.own, r.service.ReadsBack, func() ([]byte, error) { return proto.Marshal(r.core.Snapshot()) })
}
