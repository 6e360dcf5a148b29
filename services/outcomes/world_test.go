package outcomes

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/journal"
	"landfall.build/platform/journal/memory"
	"landfall.build/platform/runner"
	"landfall.build/platform/snapshot"
)

// world is a log with the records of other services, and owners of its one partition.
type world struct {
	t       testing.TB
	log     *memory.Log
	fault   memory.Verdict
	term    int64
	records int
	owners  int
	store   *snapshot.Store
}

func newWorld(t testing.TB) *world {
	w := &world{t: t}
	w.log = memory.New(memory.Options{ID: "log", Partitions: 1, Fault: func(topic string, _ int32, _ events.Envelope) memory.Verdict {
		if topic != events.TopicOutcomes {
			return memory.Deliver
		}
		v := w.fault
		w.fault = memory.Deliver
		return v
	}})
	w.term = w.claim()
	return w
}

// claim begins a term of the lander.
func (w *world) claim() int64 {
	term, err := runner.Claim(w.t.Context(), w.log, events.ServiceLander, "l", "test", events.TopicChanges, 0, time.Unix(1, 0))
	if err != nil {
		w.t.Fatal(err)
	}
	return term
}

func (w *world) put(topic, service string, term int64, m proto.Message) int64 {
	w.t.Helper()
	w.records++
	offsets, err := w.log.Append(w.t.Context(), topic, 0, events.Envelope{
		ID: fmt.Sprint(w.records), Source: service, Queue: "main", Time: time.Unix(int64(1000+w.records), 0).UTC(), Term: term, Message: m})
	if err != nil {
		w.t.Fatal(err)
	}
	return offsets[0]
}

func (w *world) gateway(m proto.Message) int64 {
	return w.put(events.TopicChanges, events.ServiceGateway, -1, m)
}

func (w *world) lander(m proto.Message) int64 {
	return w.put(events.TopicChanges, events.ServiceLander, w.term, m)
}

func (w *world) builder(m proto.Message) int64 {
	return w.put(events.TopicBuilds, events.ServiceBuilder, -1, m)
}

func admission(change string, revision uint64) *eventsv1.Admission {
	return &eventsv1.Admission{Queue: "main", Change: change, Revision: revision, RequestId: fmt.Sprintf("%s-%d", change, revision),
		Entries: []*eventsv1.Entry{{Ref: change, Commit: fmt.Sprintf("head-%s-%d", change, revision)}}, Author: "Ada <ada@example.org>", Title: "a <title> & more",
		LandingCommits: []*eventsv1.LandingCommit{{Head: change}}}
}

func refTo(change string, revision uint64) *eventsv1.ChangeRef {
	return &eventsv1.ChangeRef{Change: change, Revision: revision}
}

// start has another owner claim the partition.
func (w *world) start() *runner.Owner {
	w.owners++
	o := Options{JSON: true, Gateway: "https://landfall.example.org", Options: runner.Options{Log: w.log, Instance: fmt.Sprint(w.owners), Version: "test",
		Logger: slog.New(slog.DiscardHandler), Snapshots: w.store, Clock: func() time.Time { return time.Unix(5000, 0) }}}
	owner, err := runner.Take(w.t.Context(), o.Options, Service(o), 0)
	if errors.Is(err, journal.ErrAppend) {
		return nil
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return owner
}

// work lets an owner do all that there is to do, and reports whether it goes on.
func (w *world) work(o *runner.Owner) bool {
	for {
		did, err := o.Step(context.Background())
		if err != nil {
			if !errors.Is(err, journal.ErrAppend) && !errors.Is(err, runner.ErrSuperseded) {
				w.t.Fatal(err)
			}
			return false
		}
		if !did {
			return true
		}
	}
}

// written returns the outcomes in the log.
func (w *world) written() (list []journal.Entry) {
	w.t.Helper()
	c, err := w.log.Follow(w.t.Context(), events.TopicOutcomes, 0, 0)
	if err != nil {
		w.t.Fatal(err)
	}
	defer c.Close()
	for {
		e, ok, err := c.TryNext()
		if err != nil {
			w.t.Fatal(err)
		}
		if !ok {
			return list
		}
		if e.Err != nil {
			w.t.Fatal(e.Err)
		}
		if _, is := e.Message.(*eventsv1.ChangeOutcome); is {
			list = append(list, e)
		}
	}
}

// handled is what a reader handles: of each subject what is above the highest sequence.
func handled(list []journal.Entry) (out []*eventsv1.ChangeOutcome) {
	highest := map[string]int64{}
	for _, e := range list {
		m := e.Message.(*eventsv1.ChangeOutcome)
		if before, known := highest[m.Subject]; known && m.Sequence <= before {
			continue
		}
		highest[m.Subject] = m.Sequence
		out = append(out, m)
	}
	return out
}

func timeOf(i int64) time.Time { return time.Unix(i, 0) }
