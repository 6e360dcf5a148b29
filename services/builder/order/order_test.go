package order

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/services/builder/work"
	"landfall.build/services/journal"
	"landfall.build/services/journal/memory"
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

// past writes a random past of one queue, and gives its fold in the order of writing.
type past struct {
	t        *testing.T
	r        *rand.Rand
	log      *memory.Log
	selector int64
	lander   int64
	queue    *work.Queue
	clock    int64
	ids      int
	// withdrawn targets: what failed after that would be withdrawn too by an instance that reads the
	// failure first. It then runs the version once more, which is no harm, but another state.
	withdrawn map[string]bool
}

func (p *past) write(topic, source string, term int64, m proto.Message) {
	p.t.Helper()
	_, err := p.log.Append(p.t.Context(), topic, 0, events.Envelope{ID: fmt.Sprint(p.clock), Source: source, Queue: "main", Time: time.UnixMicro(p.clock), Term: term, Message: m})
	if err != nil {
		p.t.Fatal(err)
	}
	p.queue.Apply(m, work.Origin{})
}

func (p *past) claim(topic, source string) int64 {
	p.t.Helper()
	offsets, err := p.log.Append(p.t.Context(), topic, 0, events.Envelope{ID: source, Source: source, Term: -1, Message: &eventsv1.Claim{Service: source}})
	if err != nil {
		p.t.Fatal(err)
	}
	return offsets[0]
}

func (p *past) end(topic string) int64 {
	end, err := p.log.End(p.t.Context(), topic, 0)
	if err != nil {
		p.t.Fatal(err)
	}
	return end
}

func (p *past) step() {
	p.clock += 5
	version := &eventsv1.TargetVersion{Target: fmt.Sprintf("//t%d", p.r.IntN(4)), Hash: "h"}
	build := fmt.Sprintf("b%d", max(1, p.ids-p.r.IntN(4)))
	switch p.r.IntN(8) {
	case 0, 1:
		d := &eventsv1.Decision{StampUs: p.clock, Positions: &eventsv1.Positions{Changes: p.end(events.TopicChanges), Builds: p.end(events.TopicBuilds)}}
		p.ids++
		fresh := fmt.Sprintf("b%d", p.ids)
		d.Items = append(d.Items, &eventsv1.DecisionItem{Item: &eventsv1.DecisionItem_BuildScheduled{BuildScheduled: &eventsv1.BuildScheduled{
			Build: fresh, Value: 1, Steps: &eventsv1.StepPolicy{}}}})
		if p.r.IntN(3) == 0 {
			// Without an heir: how long a step lingers may differ when a preparation meets its build's end.
			d.Items = append(d.Items, &eventsv1.DecisionItem{Item: &eventsv1.DecisionItem_BuildAborted{BuildAborted: &eventsv1.BuildAborted{Build: build}}})
		}
		p.write(events.TopicDecisions, events.ServiceSelector, p.selector, d)
	case 2, 3:
		if p.ids == 0 {
			return
		}
		f := &eventsv1.BuildPrepared{Build: build, Outcome: eventsv1.PreparationOutcome_PREPARATION_OUTCOME_PREPARED}
		for range 1 + p.r.IntN(3) {
			f.Versions = append(f.Versions, &eventsv1.TargetVersion{Target: fmt.Sprintf("//t%d", p.r.IntN(4)), Hash: "h"})
		}
		p.write(events.TopicBuilds, events.ServiceBuilder, -1, f)
	case 4:
		for _, s := range p.queue.Next(p.clock, 1, nil) {
			p.write(events.TopicBuilds, events.ServiceBuilder, -1, &eventsv1.StepLeased{Target: s.Target, Hash: s.Hash, Attempt: s.Attempt,
				// None lapses: how long a lapsed one is remembered may differ, and changes nothing.
				Lease: fmt.Sprint(p.clock), StampUs: p.clock, UntilUs: p.clock + 1_000_000})
		}
	case 5, 6:
		for _, l := range p.queue.Leases() {
			if p.r.IntN(2) == 0 {
				outcome := eventsv1.StepOutcome(1 + p.r.IntN(5))
				if p.withdrawn[l.Target] && outcome != eventsv1.StepOutcome_STEP_OUTCOME_ABORTED {
					outcome = eventsv1.StepOutcome_STEP_OUTCOME_PASSED
				}
				p.write(events.TopicBuilds, events.ServiceBuilder, -1, &eventsv1.StepFinished{Target: l.Target, Hash: l.Hash, Attempt: l.Attempt, Outcome: outcome})
			}
		}
	case 7:
		p.withdrawn[version.Target] = true
		p.write(events.TopicChanges, events.ServiceLander, p.lander, &eventsv1.ChangeRejected{Change: &eventsv1.ChangeRef{Change: "C", Revision: 1}, Reason: &eventsv1.Reason{Failed: []*eventsv1.Proof{{Version: version, Attempt: 9}}}})
	}
}

// shown is all that the dispatcher sees of a queue, in an order that durations do not decide.
func shown(q *work.Queue, clock int64) []string {
	var list []string
	for _, p := range q.Preparations() {
		list = append(list, "prepare "+p.Build.Build)
	}
	for _, s := range q.Next(clock, 1000, nil) {
		list = append(list, fmt.Sprintf("run %s#%d of %s", s.Target, s.Attempt, s.Build.Build))
	}
	for i := range 4 {
		v := work.Version{Target: fmt.Sprintf("//t%d", i), Hash: "h"}
		list = append(list, fmt.Sprintf("%s wanted %v", v.Target, q.Wants(v)))
	}
	for _, l := range q.Leases() {
		list = append(list, fmt.Sprintf("lease %s#%d %s until %d", l.Target, l.Attempt, l.ID, l.UntilUs))
	}
	slices.Sort(list)
	return list
}

// oneQueue is all that there is.
type oneQueue struct{ *work.Queue }

func (q *oneQueue) Fold(e journal.Entry) { q.Apply(e.Message, work.Origin{}) }
func (q *oneQueue) ReadBuilds(int64)     {}
func (q *oneQueue) HasEarly() bool       { return q.Early() > 0 }

func TestEveryInstanceFoldsTheSameWhateverArrivesFirst(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	early, open := 0, 0
	for run := range uint64(400) {
		r := rand.New(rand.NewPCG(seed, run))
		p := &past{t: t, r: r, log: memory.New(memory.Options{Partitions: 1}), queue: work.New(), clock: 1000, withdrawn: map[string]bool{}}
		p.selector, p.lander = p.claim(events.TopicDecisions, events.ServiceSelector), p.claim(events.TopicChanges, events.ServiceLander)
		for range 60 {
			p.step()
		}
		lazy, into := &lazyLog{Log: p.log, r: r}, &oneQueue{work.New()}
		o, err := New(into, func() (Ends, error) {
			return Ask(func(topic string) (int64, error) { return lazy.End(t.Context(), topic, 0) })
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := o.Open(func(topic string, from int64) (journal.Cursor, error) {
			return lazy.Follow(t.Context(), topic, 0, from)
		}); err != nil {
			t.Fatal(err)
		}
		want := Ends{p.end(events.TopicDecisions), p.end(events.TopicChanges), p.end(events.TopicBuilds)}
		for turn := 0; o.Waits() || (Ends{o.decisions.next, o.changes.next, o.builds.next}) != want; turn++ {
			if turn > 1_000_000 {
				t.Fatalf("seed %d, run %d: stuck at %+v of %+v; waiting: %v, %v", seed, run, Ends{o.decisions.next, o.changes.next, o.builds.next}, want, o.decision, o.change)
			}
			if _, err := o.Step(false); err != nil {
				t.Fatal(err)
			}
			if into.HasEarly() {
				early++
			}
		}
		o.Close()
		got, expected := shown(into.Queue, p.clock), shown(p.queue, p.clock)
		if !slices.Equal(got, expected) {
			t.Fatalf("seed %d, run %d:\n got %v\nwant %v", seed, run, got, expected)
		}
		if into.HasEarly() {
			t.Errorf("seed %d, run %d: preparations of builds that are over are kept", seed, run)
		}
		open += len(got) - 4
	}
	t.Logf("%d turns with early preparations, %d things left to do", early, open)
	if early == 0 || open == 0 {
		t.Error("the pasts reach too little")
	}
}
