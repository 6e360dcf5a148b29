package builder

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/services/builder/order"
	"landfall.build/services/builder/work"
	"landfall.build/services/journal"
	"landfall.build/services/snapshot"
	"landfall.build/services/stage"
)

// quiet is how long nothing has to arrive before a record that others were to precede is taken all the same, and before
// a partition counts as read although its end was not seen: what is missing then was torn and never comes.
const quiet = time.Second

// follower folds the three topics of one partition into the floor.
type follower struct {
	*session
	partition int32
	order     *order.Order
	live      bool
	keeper    *snapshot.Keeper
}

func (s *session) follow(ctx context.Context, partition int32) error {
	f := &follower{session: s, partition: partition}
	var err error
	f.order, err = order.New(f, func() (order.Ends, error) {
		return order.Ask(func(topic string) (int64, error) { return s.Log.End(ctx, topic, partition) })
	})
	if err != nil {
		return err
	}
	f.keeper = snapshot.NewKeeper(s.Snapshots, snapshot.Key{Log: s.Log.ID(), Service: events.ServiceBuilder, Partition: partition}, s.Logger)
	f.thaw()
	err = f.order.Open(func(topic string, from int64) (journal.Cursor, error) {
		return s.Log.Follow(ctx, topic, partition, from)
	})
	if err != nil {
		return err
	}
	defer f.order.Close()
	return f.run(ctx)
}

// thaw takes over what was frozen, if it fits.
func (f *follower) thaw() {
	state, ok := f.keeper.Load()
	if !ok {
		return
	}
	queues, err := f.order.Thaw(state)
	if err != nil {
		f.keeper.Drop(err)
		return
	}
	f.floor.change(func() {
		for _, name := range slices.Sorted(maps.Keys(queues)) {
			f.floor.queues[name] = queues[name]
			f.floor.names = append(f.floor.names, name)
		}
	})
}

func (f *follower) run(ctx context.Context) error {
	timer := time.NewTimer(quiet)
	defer timer.Stop()
	decisions, changes, builds := f.order.Ready()
	silent := false
	for {
		did, err := f.order.Step(silent)
		if err != nil {
			return err
		}
		if did {
			silent = false
			f.keep(1)
			continue
		}
		if !f.live && (silent || f.order.CaughtUp()) {
			f.begin(ctx)
			f.keeper.CaughtUp()
			f.keep(0)
		}
		silent = false
		var patience <-chan time.Time
		if !f.live || f.order.Waits() {
			timer.Reset(quiet)
			patience = timer.C
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-decisions:
		case <-changes:
		case <-builds:
		case <-patience:
			silent = true
		}
	}
}

// keep counts records, and saves a snapshot when that is due and nothing that was read waits for what was not.
func (f *follower) keep(records int) {
	if !f.keeper.Took(records) || !f.live || !f.order.Settled() {
		return
	}
	state, ok := f.keeper.Freeze(func() (state []byte, err error) {
		f.floor.look(func() { state, err = f.order.Freeze(f.ofPartition()) })
		return state, err
	})
	if ok {
		f.keeper.Save(state)
	}
}

// Fold implements order.Into.
func (f *follower) Fold(e journal.Entry) {
	f.floor.look(func() {
		if f.floor.queue(e.Queue).Apply(e.Message, work.Origin{Offset: e.Offset, Trace: e.Trace}) {
			f.floor.wakeLocked()
		}
	})
}

// ReadBuilds implements order.Into: workers wait to read back what they wrote.
func (f *follower) ReadBuilds(next int64) {
	f.floor.change(func() { f.floor.builds[f.partition] = next })
}

// HasEarly implements order.Into.
func (f *follower) HasEarly() (has bool) {
	f.eachQueue(func(_ string, q *work.Queue) { has = has || q.Early() > 0 })
	return has
}

// ForgetEarly implements order.Into.
func (f *follower) ForgetEarly() {
	f.eachQueue(func(_ string, q *work.Queue) { q.ForgetEarly() })
}

// ofPartition are the queues of the follower's partition. The floor's lock must be held.
func (f *follower) ofPartition() map[string]*work.Queue {
	queues := map[string]*work.Queue{}
	for _, name := range f.floor.names {
		if events.PartitionOf(name, f.Log.Partitions()) == f.partition {
			queues[name] = f.floor.queues[name]
		}
	}
	return queues
}

func (f *follower) eachQueue(do func(name string, q *work.Queue)) {
	f.floor.look(func() {
		for _, name := range f.floor.names {
			if events.PartitionOf(name, f.Log.Partitions()) == f.partition {
				do(name, f.floor.queues[name])
			}
		}
	})
}

// begin lets the workers act on this partition. First it ends what a former process of this instance left
// leased: its steps died with it.
func (f *follower) begin(ctx context.Context) {
	f.live = true
	f.order.Begin()
	type orphan struct {
		queue string
		work.Lease
	}
	var orphans []orphan
	f.eachQueue(func(name string, q *work.Queue) {
		for _, l := range q.Leases() {
			if strings.HasPrefix(l.Worker, f.Instance+"/") {
				orphans = append(orphans, orphan{name, l})
			}
		}
	})
	now := time.Now().UnixMicro()
	for _, o := range orphans {
		err := f.publish(ctx, o.queue, "", "", &eventsv1.StepFinished{
			Target: o.Target, Hash: o.Hash, Attempt: o.Attempt, Outcome: eventsv1.StepOutcome_STEP_OUTCOME_ABORTED,
			Reason: "The worker was started again while it ran the step.", Worker: o.Worker, Build: o.Build, StartedUs: now, FinishedUs: now,
		})
		if err != nil {
			f.Logger.Warn("a step of a former run stays leased until its lease lapses", "queue", o.queue, "target", o.Target, "err", err)
		}
	}
	f.Logger.Debug(stage.SaysLive, "service", events.ServiceBuilder, "partition", f.partition, "orphans", len(orphans))
	f.floor.change(func() { f.floor.live[f.partition] = true })
}
