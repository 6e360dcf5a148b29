package builder

import (
	"context"
	"strings"
	"time"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/services/builder/work"
	"landfall.build/services/journal"
	"landfall.build/services/snapshot"
	"landfall.build/services/stage"
)

// quiet is how long nothing has to arrive before a record that others were to precede is taken all the
// same, and before a partition counts as read although its end was not seen: what is missing then was torn
// and never comes. Nothing unsafe can follow, only work that is done twice.
const quiet = time.Second

// follower folds the three topics of one partition in an order that every instance agrees on where it
// matters: a decision comes after the records that it rests on, a withdrawal after the schedules and
// results before it, or a build that is over would look open again.
type follower struct {
	*session
	partition                  int32
	decisions, changes, builds source
	// decision and change are read and wait for others.
	decision, change *waiting
	// start is where the topics ended at the start; until they are read that far, nothing is done.
	start ends
	// last caches the log's ends for look-ups: what was written before one record of a topic is read is
	// before the ends of the others that were taken after its own.
	last ends
	// early is the offset in decisions that makes preparations without a schedule forgettable.
	early  int64
	live   bool
	keeper *snapshot.Keeper
}

type source struct {
	cursor journal.Cursor
	terms  *journal.Terms
	next   int64
}

// waiting is a record that is folded once the other topics have been, up to these offsets.
type waiting struct {
	entry journal.Entry
	after ends
}

type ends struct{ decisions, changes, builds int64 }

func (s *session) follow(ctx context.Context, partition int32) error {
	f, err := s.newFollower(ctx, partition)
	if err != nil {
		return err
	}
	defer f.close()
	return f.run(ctx)
}

func (s *session) newFollower(ctx context.Context, partition int32) (*follower, error) {
	f := &follower{session: s, partition: partition}
	if err := f.readEnds(ctx, &f.start); err != nil {
		return nil, err
	}
	f.last = f.start
	f.keeper = snapshot.NewKeeper(s.Snapshots, snapshot.Key{Log: s.Log.ID(), Service: events.ServiceBuilder, Partition: partition}, s.Logger)
	for _, t := range f.sources() {
		t.into.terms = journal.NewTerms(t.topic)
	}
	if state, ok := f.keeper.Load(); ok {
		if err := f.thaw(state); err != nil {
			f.keeper.Drop(err)
		}
	}
	for _, t := range f.sources() {
		cursor, err := s.Log.Follow(ctx, t.topic, partition, t.into.next)
		if err != nil {
			f.close()
			return nil, err
		}
		t.into.cursor = cursor
	}
	return f, nil
}

type sourceOf struct {
	topic string
	into  *source
}

func (f *follower) sources() []sourceOf {
	return []sourceOf{{events.TopicDecisions, &f.decisions}, {events.TopicChanges, &f.changes}, {events.TopicBuilds, &f.builds}}
}

func (f *follower) close() {
	for _, s := range []source{f.decisions, f.changes, f.builds} {
		if s.cursor != nil {
			s.cursor.Close()
		}
	}
}

// readEnds takes the ends in this order: results before withdrawals rest on them, schedules after the
// preparations that answer them.
func (f *follower) readEnds(ctx context.Context, into *ends) (err error) {
	if into.changes, err = f.Log.End(ctx, events.TopicChanges, f.partition); err != nil {
		return err
	}
	if into.builds, err = f.Log.End(ctx, events.TopicBuilds, f.partition); err != nil {
		return err
	}
	into.decisions, err = f.Log.End(ctx, events.TopicDecisions, f.partition)
	return err
}

func (f *follower) run(ctx context.Context) error {
	timer := time.NewTimer(quiet)
	defer timer.Stop()
	silent := false
	for {
		did, err := f.step(ctx, silent)
		if err != nil {
			return err
		}
		if did {
			silent = false
			f.keep(1)
			continue
		}
		if !f.live && (silent || f.caughtUp()) {
			f.begin(ctx)
			f.keeper.CaughtUp()
			f.keep(0)
		}
		silent = false
		var patience <-chan time.Time
		if !f.live || f.decision != nil || f.change != nil {
			timer.Reset(quiet)
			patience = timer.C
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-f.decisions.cursor.Ready():
		case <-f.changes.cursor.Ready():
		case <-f.builds.cursor.Ready():
		case <-patience:
			silent = true
		}
	}
}

func (f *follower) caughtUp() bool {
	return f.decision == nil && f.change == nil && f.decisions.next >= f.start.decisions &&
		f.changes.next >= f.start.changes && f.builds.next >= f.start.builds
}

// step takes one record, if there is one that may be taken now.
func (f *follower) step(ctx context.Context, silent bool) (did bool, err error) {
	if f.decision == nil {
		if did, err = f.readDecision(ctx); did || err != nil {
			return did, err
		}
	}
	if d := f.decision; d != nil && (silent || f.reached(d)) {
		f.decision = nil
		f.fold(d.entry)
		return true, nil
	}
	if c := f.change; c != nil && (silent || f.reached(c) || f.restsOn(c)) {
		f.change = nil
		f.fold(c.entry)
		f.changes.next = c.entry.Offset + 1
		return true, nil
	}
	// At the start neither changes nor builds run ahead of the decisions: preparations would pile up, of changes that
	// have left, whose results are forgotten by the end.
	reading := !f.live && !silent && f.decisions.next < f.start.decisions
	if reading && f.decision == nil {
		return false, nil
	}
	if f.change == nil && !(reading && f.changes.next >= f.decision.after.changes) {
		if did, err = f.readChange(ctx); did || err != nil {
			return did, err
		}
	}
	if reading && f.builds.next >= f.decision.after.builds {
		return false, nil
	}
	return f.readBuild(ctx)
}

func (f *follower) reached(w *waiting) bool {
	decided := f.decisions.next >= w.after.decisions && (f.decision == nil || f.decision == w)
	return decided && f.changes.next >= w.after.changes && f.builds.next >= w.after.builds
}

// restsOn says that the next decision waits for a change, and for nothing else: the decisions before it were folded,
// and the results that it was taken with. Results that are newer need not be: whoever took it had not read them.
func (f *follower) restsOn(c *waiting) bool {
	return f.decision != nil && f.decision.after.changes > c.entry.Offset && f.builds.next >= min(c.after.builds, f.decision.after.builds)
}

func (f *follower) readDecision(ctx context.Context) (bool, error) {
	e, ok, err := f.decisions.cursor.TryNext()
	if err != nil || !ok {
		return false, err
	}
	f.decisions.next = e.Offset + 1
	d, isDecision := e.Message.(*eventsv1.Decision)
	if f.decisions.terms.Counts(e) && isDecision {
		f.decision = &waiting{entry: e, after: ends{changes: d.GetPositions().GetChanges(), builds: d.GetPositions().GetBuilds()}}
	} else if f.early > 0 {
		f.forgetEarly()
	}
	return true, nil
}

func (f *follower) readChange(ctx context.Context) (bool, error) {
	e, ok, err := f.changes.cursor.TryNext()
	if err != nil || !ok {
		return false, err
	}
	counts := f.changes.terms.Counts(e)
	if !counts || !work.Withdraws(e.Message) {
		if counts {
			f.fold(e)
		}
		f.changes.next = e.Offset + 1
		return true, nil
	}
	if e.Offset >= f.last.changes {
		if err := f.readEnds(ctx, &f.last); err != nil {
			return false, err
		}
	}
	f.change = &waiting{entry: e, after: ends{decisions: f.last.decisions, builds: f.last.builds}}
	return true, nil
}

func (f *follower) readBuild(ctx context.Context) (bool, error) {
	e, ok, err := f.builds.cursor.TryNext()
	if err != nil || !ok {
		return false, err
	}
	if f.builds.terms.Counts(e) {
		f.fold(e)
	}
	f.floor.change(func() {
		f.builds.next = e.Offset + 1
		f.floor.builds[f.partition] = f.builds.next
	})
	if _, prepared := e.Message.(*eventsv1.BuildPrepared); !prepared || !f.hasEarly() {
		return true, nil
	}
	if e.Offset >= f.last.builds {
		if err := f.readEnds(ctx, &f.last); err != nil {
			return false, err
		}
	}
	f.early = f.last.decisions
	f.forgetEarly()
	return true, nil
}

// fold takes a counted record into the state of its queue.
func (f *follower) fold(e journal.Entry) {
	if e.Queue == "" || e.Message == nil {
		return
	}
	f.floor.look(func() {
		if f.floor.queue(e.Queue).Apply(e.Message, work.Origin{Offset: e.Offset, Trace: e.Trace}) {
			f.floor.wakeLocked()
		}
	})
	if f.early > 0 {
		f.forgetEarly()
	}
}

func (f *follower) hasEarly() (has bool) {
	f.eachQueue(func(_ string, q *work.Queue) { has = has || q.Early() > 0 })
	return has
}

// forgetEarly drops preparations of builds that are over, once no unread decision can be theirs.
func (f *follower) forgetEarly() {
	if f.decision != nil || f.decisions.next < f.early {
		return
	}
	f.early = 0
	f.eachQueue(func(_ string, q *work.Queue) { q.ForgetEarly() })
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
