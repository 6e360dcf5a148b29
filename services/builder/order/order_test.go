package order

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"landfall.build/engine/snapshotv1"
	"landfall.build/engine/steps"
	"landfall.build/events"
	"landfall.build/events/seedtest"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/journal"
	"landfall.build/platform/journal/memory"
)

// lazyLog gives records late, in an order among topics that chance decides.
type lazyLog struct {
	journal.Log
	r *rand.Rand
	// begun: the ends at the start were asked for. They are said to be 0, so that everything is live.
	begun int
}

func (l *lazyLog) End(ctx context.Context, topic string, partition int32) (int64, error) {
	if l.begun++; l.begun <= 3 {
		return 0, nil
	}
	return l.Log.End(ctx, topic, partition)
}

func (l *lazyLog) Follow(ctx context.Context, topic string, partition int32, from int64) (journal.Cursor, error) {
	c, err := l.Log.Follow(ctx, topic, partition, from)
	return &lazyCursor{Cursor: c, log: l, patience: 1 + l.r.IntN(20)}, err
}

type lazyCursor struct {
	journal.Cursor
	log      *lazyLog
	patience int
}

func (c *lazyCursor) TryNext() (journal.Entry, bool, error) {
	if c.log.r.IntN(c.patience) > 0 {
		return journal.Entry{}, false, nil
	}
	return c.Cursor.TryNext()
}

// writer writes a random history of one queue, and folds it in the order of writing.
type writer struct {
	t        *testing.T
	r        *rand.Rand
	log      *memory.Log
	selector int64
	lander   int64
	queue    *steps.Queue
	clock    int64
	ids      int
	// withdrawn targets: what failed after that would be withdrawn too by an instance that reads the
	// failure first. It then runs the version once more, which is no harm, but another state.
	withdrawn map[string]bool
}

func (w *writer) write(topic, source string, term int64, m proto.Message) {
	w.t.Helper()
	_, err := w.log.Append(w.t.Context(), topic, 0, events.Envelope{ID: fmt.Sprint(w.clock), Source: source, Queue: "main", Time: time.UnixMicro(w.clock), Term: term, Message: m})
	if err != nil {
		w.t.Fatal(err)
	}
	w.queue.Apply(m, steps.Origin{})
}

func (w *writer) claim(topic, source string) int64 {
	w.t.Helper()
	offsets, err := w.log.Append(w.t.Context(), topic, 0, events.Envelope{ID: source, Source: source, Term: -1, Message: &eventsv1.Claim{Service: source}})
	if err != nil {
		w.t.Fatal(err)
	}
	return offsets[0]
}

func (w *writer) end(topic string) int64 {
	end, err := w.log.End(w.t.Context(), topic, 0)
	if err != nil {
		w.t.Fatal(err)
	}
	return end
}

func (w *writer) step() {
	w.clock += 5
	version := &eventsv1.TargetVersion{Target: fmt.Sprintf("//t%d", w.r.IntN(4)), Hash: "h"}
	build := fmt.Sprintf("b%d", max(1, w.ids-w.r.IntN(4)))
	switch w.r.IntN(8) {
	case 0, 1:
		d := &eventsv1.Decision{StampUs: w.clock, Positions: &eventsv1.Positions{Changes: w.end(events.TopicChanges), Builds: w.end(events.TopicBuilds)}}
		w.ids++
		fresh := fmt.Sprintf("b%d", w.ids)
		d.Items = append(d.Items, &eventsv1.DecisionItem{Item: &eventsv1.DecisionItem_BuildScheduled{BuildScheduled: &eventsv1.BuildScheduled{
			Build: fresh, Value: 1, Steps: &eventsv1.StepPolicy{}}}})
		if w.r.IntN(3) == 0 {
			// Without an heir: how long a step lingers may differ when a preparation meets its build's end.
			d.Items = append(d.Items, &eventsv1.DecisionItem{Item: &eventsv1.DecisionItem_BuildAborted{BuildAborted: &eventsv1.BuildAborted{Build: build}}})
		}
		w.write(events.TopicDecisions, events.ServiceSelector, w.selector, d)
	case 2, 3:
		if w.ids == 0 {
			return
		}
		f := &eventsv1.BuildPrepared{Build: build, Outcome: eventsv1.PreparationOutcome_PREPARATION_OUTCOME_PREPARED}
		for range 1 + w.r.IntN(3) {
			f.Versions = append(f.Versions, &eventsv1.TargetVersion{Target: fmt.Sprintf("//t%d", w.r.IntN(4)), Hash: "h"})
		}
		w.write(events.TopicBuilds, events.ServiceBuilder, -1, f)
	case 4:
		for _, s := range w.queue.Next(w.clock, 1, nil, nil) {
			w.write(events.TopicBuilds, events.ServiceBuilder, -1, &eventsv1.StepLeased{Target: s.Target, Hash: s.Hash, Attempt: s.Attempt,
				// None lapses: how long a lapsed one is remembered may differ, and changes nothing.
				Lease: fmt.Sprint(w.clock), StampUs: w.clock, UntilUs: w.clock + 1_000_000})
		}
	case 5, 6:
		for _, l := range w.queue.Leases() {
			if w.r.IntN(2) == 0 {
				outcome := eventsv1.StepOutcome(1 + w.r.IntN(5))
				if w.withdrawn[l.Target] && outcome != eventsv1.StepOutcome_STEP_OUTCOME_ABORTED {
					outcome = eventsv1.StepOutcome_STEP_OUTCOME_PASSED
				}
				w.write(events.TopicBuilds, events.ServiceBuilder, -1, &eventsv1.StepFinished{Target: l.Target, Hash: l.Hash, Attempt: l.Attempt, Outcome: outcome})
			}
		}
	case 7:
		w.withdrawn[version.Target] = true
		w.write(events.TopicChanges, events.ServiceLander, w.lander, &eventsv1.ChangeRejected{Change: &eventsv1.ChangeRef{Change: "C", Revision: 1}, Reason: &eventsv1.Reason{Failed: []*eventsv1.Proof{{Version: version, Attempt: 9}}}})
	}
}

// shown is all that the dispatcher sees of a queue, in an order that durations do not decide. They decide which of the builds that
// want a step offers it, and instances may have read other ones when a build began; so all of these builds are named.
func shown(q *steps.Queue, clock int64) []string {
	var list []string
	for _, p := range q.Preparations(clock) {
		list = append(list, "prepare "+p.Build.Build)
	}
	for _, s := range q.Next(clock, 1000, nil, nil) {
		var of []string
		for _, share := range q.Shares(s.Version, clock) {
			of = append(of, share.Build)
		}
		slices.Sort(of)
		list = append(list, fmt.Sprintf("run %s#%d of %s", s.Target, s.Attempt, of))
	}
	for i := range 4 {
		v := steps.Version{Target: fmt.Sprintf("//t%d", i), Hash: "h"}
		list = append(list, fmt.Sprintf("%s wanted %v", v.Target, q.Wants(v)))
	}
	for _, l := range q.Leases() {
		list = append(list, fmt.Sprintf("lease %s#%d %s until %d", l.Target, l.Attempt, l.ID, l.UntilUs))
	}
	slices.Sort(list)
	return list
}

// oneQueue is all that there is.
type oneQueue struct{ *steps.Queue }

func (q *oneQueue) Fold(e journal.Entry) { q.Apply(e.Message, steps.Origin{}) }
func (q *oneQueue) ReadBuilds(int64)     {}
func (q *oneQueue) HasEarly() bool       { return q.Early() > 0 }

// instance folds the topics in the order in which chance hands them out.
type instance struct {
	*Order
	t    *testing.T
	log  *lazyLog
	into *oneQueue
}

// start begins from a snapshot, or at the beginning of the log.
func (i *instance) start(from []byte) {
	i.t.Helper()
	i.into = &oneQueue{steps.New()}
	var err error
	i.Order, err = New(i.into, func() (Ends, error) {
		return Ask(func(topic string) (int64, error) { return i.log.End(i.t.Context(), topic, 0) })
	})
	if err != nil {
		i.t.Fatal(err)
	}
	if from != nil {
		m := &snapshotv1.Builder{}
		if err := proto.Unmarshal(from, m); err != nil {
			i.t.Fatal(err)
		}
		queues, err := i.Restore(m)
		if err != nil {
			i.t.Fatal(err)
		}
		i.into.Queue = queues["main"]
	}
	err = i.Open(func(topic string, from int64) (journal.Cursor, error) {
		return i.log.Follow(i.t.Context(), topic, 0, from)
	})
	if err != nil {
		i.t.Fatal(err)
	}
}

func (i *instance) read() Ends { return Ends{i.decisions.next, i.changes.next, i.builds.next} }

// TestEveryInstanceFoldsTheSameWhateverArrivesFirst, also one that is started again from a snapshot.
func TestEveryInstanceFoldsTheSameWhateverArrivesFirst(t *testing.T) {
	seed := seedtest.Of(t)
	early, open, restarts := 0, 0, 0
	for run := range uint64(400) {
		r := rand.New(rand.NewPCG(seed, run))
		w := &writer{t: t, r: r, log: memory.New(memory.Options{Partitions: 1}), queue: steps.New(), clock: 1000, withdrawn: map[string]bool{}}
		w.selector, w.lander = w.claim(events.TopicDecisions, events.ServiceSelector), w.claim(events.TopicChanges, events.ServiceLander)
		for range 60 {
			w.step()
		}
		i := &instance{t: t, log: &lazyLog{Log: w.log, r: r}}
		i.start(nil)
		want := Ends{w.end(events.TopicDecisions), w.end(events.TopicChanges), w.end(events.TopicBuilds)}
		for turn := 0; i.Waits() || i.read() != want; turn++ {
			if turn > 1_000_000 {
				t.Fatalf("run %d: stuck at %+v of %+v; waiting: %v, %v", run, i.read(), want, i.decision, i.change)
			}
			if _, err := i.Step(false); err != nil {
				t.Fatal(err)
			}
			if i.into.HasEarly() {
				early++
			}
			if run%2 == 0 && i.Settled() && r.IntN(30) == 0 {
				state, err := proto.Marshal(i.Snapshot(map[string]*steps.Queue{"main": i.into.Queue}))
				if err != nil {
					t.Fatal(err)
				}
				i.Close()
				i.start(state)
				restarts++
			}
		}
		i.Close()
		got, expected := shown(i.into.Queue, w.clock), shown(w.queue, w.clock)
		if !slices.Equal(got, expected) {
			t.Fatalf("run %d:\n got %v\nwant %v", run, got, expected)
		}
		if i.into.HasEarly() {
			t.Errorf("run %d: preparations of builds that are over are kept", run)
		}
		open += len(got) - 4
	}
	t.Logf("%d turns with early preparations, %d things left to do, %d restarts", early, open, restarts)
	if early == 0 || open == 0 || restarts == 0 {
		t.Error("the histories reach too little")
	}
}

// TestASnapshotOfMoreThanTheLogHoldsIsRefused, and leaves the order at the beginning; so does one that makes no sense.
func TestASnapshotOfMoreThanTheLogHoldsIsRefused(t *testing.T) {
	for _, m := range []*snapshotv1.Builder{
		{Decisions: &snapshotv1.BuilderTopic{Next: 2}}, {Changes: &snapshotv1.BuilderTopic{Next: 2}}, {Builds: &snapshotv1.BuilderTopic{Next: 2}},
		{Builds: &snapshotv1.BuilderTopic{Next: 1}, Queues: map[string]*snapshotv1.Steps{"main": {Mainline: []uint32{7}}}},
	} {
		o, err := New(&oneQueue{steps.New()}, func() (Ends, error) { return Ends{1, 1, 1}, nil })
		if err != nil {
			t.Fatal(err)
		}
		if _, err := o.Restore(m); err == nil || o.builds.next != 0 {
			t.Errorf("%v: %v, and builds are read up to %d", m, err, o.builds.next)
		}
	}
}
