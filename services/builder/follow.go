package builder

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	"landfall.build/engine/snapshotv1"
	"landfall.build/engine/steps"
	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/health"
	"landfall.build/platform/journal"
	"landfall.build/platform/runner"
	"landfall.build/platform/snapshot"
	"landfall.build/services/builder/order"
)

// quiet is how long nothing has to arrive before a record is taken although others were to precede it, and before a partition
// counts as read although its end was not seen. What is missing by then was torn apart and never comes.
const quiet = time.Second

// follower folds the three topics of one partition into what is shared.
type follower struct {
	*session
	partition int32
	order     *order.Order
	live      bool
	keeper    *snapshot.Keeper
	reading   *health.Partition
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
	f.restore()
	err = f.order.Open(func(topic string, from int64) (journal.Cursor, error) {
		return s.Log.Follow(ctx, topic, partition, from)
	})
	if err != nil {
		return err
	}
	defer f.order.Close()
	f.reading = s.Health.Begin(partition, health.NoTerm)
	defer f.reading.End()
	f.order.Read(f.reading.Read)
	return f.run(ctx)
}

// restore goes on from the last snapshot, if there is one that fits.
func (f *follower) restore() {
	state, ok := f.keeper.Load()
	if !ok {
		return
	}
	m := &snapshotv1.Builder{}
	err := proto.Unmarshal(state, m)
	var queues map[string]*steps.Queue
	if err == nil {
		queues, err = f.order.Restore(m)
	}
	if err != nil {
		f.keeper.Drop(err)
		return
	}
	f.shared.update(func() {
		for _, name := range slices.Sorted(maps.Keys(queues)) {
			f.shared.queues[name] = queues[name]
			f.shared.names = append(f.shared.names, name)
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
		f.order.Read(f.reading.Read)
		if did {
			silent = false
			f.keep(1)
			continue
		}
		if !f.live && (silent || f.order.CaughtUp()) {
			f.begin(ctx)
			f.reading.CaughtUp()
			f.keeper.MakeDue()
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

// keep counts records, and saves a snapshot when one is due and no record that was read waits for one that was not.
func (f *follower) keep(records int) {
	if !f.keeper.Count(records) || !f.live || !f.order.Settled() {
		return
	}
	state, ok := f.keeper.Freeze(func() ([]byte, error) {
		var m *snapshotv1.Builder
		f.shared.read(func() { m = f.order.Snapshot(f.ofPartition()) })
		return proto.Marshal(m)
	})
	if ok {
		f.keeper.Save(state)
	}
}

// Fold implements order.Into.
func (f *follower) Fold(e journal.Entry) {
	f.shared.read(func() {
		if f.shared.queue(e.Queue).Apply(e.Message, steps.Origin{Offset: e.Offset, Trace: e.Trace}) {
			f.shared.notifyLocked()
		}
	})
}

// ReadBuilds implements order.Into: workers wait to read back what they wrote.
func (f *follower) ReadBuilds(next int64) {
	f.shared.update(func() { f.shared.builds[f.partition] = next })
}

// HasEarly implements order.Into.
func (f *follower) HasEarly() (has bool) {
	f.eachQueue(func(_ string, q *steps.Queue) { has = has || q.Early() > 0 })
	return has
}

// ForgetEarly implements order.Into.
func (f *follower) ForgetEarly() {
	f.eachQueue(func(_ string, q *steps.Queue) { q.ForgetEarly() })
}

// ofPartition returns the queues of the follower's partition. shared.mu must be held.
func (f *follower) ofPartition() map[string]*steps.Queue {
	queues := map[string]*steps.Queue{}
	for _, name := range f.shared.names {
		if events.PartitionOf(name, f.Log.Partitions()) == f.partition {
			queues[name] = f.shared.queues[name]
		}
	}
	return queues
}

func (f *follower) eachQueue(do func(name string, q *steps.Queue)) {
	f.shared.read(func() {
		for _, name := range f.shared.names {
			if events.PartitionOf(name, f.Log.Partitions()) == f.partition {
				do(name, f.shared.queues[name])
			}
		}
	})
}

// begin lets the workers act on this partition. First it ends the attempts that a former process of this instance holds: its
// steps died with it.
func (f *follower) begin(ctx context.Context) {
	f.live = true
	f.order.Begin()
	type orphan struct {
		queue string
		steps.Lease
	}
	var orphans []orphan
	f.eachQueue(func(name string, q *steps.Queue) {
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
			f.Logger.Warn("a step of a former run stays leased until its lease lapses", "queue", o.queue, "target", o.Target, "error", err)
		}
	}
	f.Logger.Debug(runner.SaysLive, "service", events.ServiceBuilder, "partition", f.partition, "orphans", len(orphans))
	f.shared.update(func() { f.shared.live[f.partition] = true })
}
