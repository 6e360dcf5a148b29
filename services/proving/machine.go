package proving

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"time"

	"google.golang.org/protobuf/proto"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/services/journal"
	"landfall.build/services/journal/memory"
	"landfall.build/services/lineup"
	"landfall.build/services/prioritizer"
	"landfall.build/services/profiler"
	"landfall.build/services/selector"
)

const queueName = "main"

// actor is an instance of a service, or a bystander, that does a little at a time.
type actor interface {
	// step does something; it says whether there was anything to do.
	step() bool
}

// crasher is an actor that can lose its memory.
type crasher interface {
	actor
	crash()
}

// machine is all services on one log, each doing a little when the schedule says so.
type machine struct {
	// r draws the order of events, what goes wrong with the log and who crashes.
	r     *rand.Rand
	main  *mainline
	log   *memory.Log
	clock int64
	quiet *slog.Logger
	tally *Tally

	enumerator *enumeratorActor
	stages     []*stageActor
	lander     *landerActor
	analyzers  []*analyzerActor
	builders   []*builderActor
	actors     []actor
	// zombies: an instance that is replaced goes on for a while.
	zombies bool
	// faults: appends fail, or arrive late.
	faults bool
	late   []string // topics with an append in flight
	// patient: nobody has anything to do, so time passes and the lander looks at the mainline.
	patient bool
}

func newMachine(r *rand.Rand, main *mainline, settings *eventsv1.QueueSettings, tally *Tally, shared bool) *machine {
	m := &machine{r: r, main: main, clock: 1_000_000, quiet: slog.New(slog.NewTextHandler(io.Discard, nil)), tally: tally}
	m.log = memory.New(memory.Options{ID: "proving", Partitions: 1, Shared: shared, Fault: m.fault})
	m.enumerator = &enumeratorActor{m: m, settings: settings}
	m.lander = &landerActor{m: m}
	m.actors = append(m.actors, m.enumerator, m.lander)
	for _, s := range []*stageActor{
		{m: m, stage: profiler.Stage()}, {m: m, stage: prioritizer.Stage()}, {m: m, stage: selector.Stage(m.log.ID())},
	} {
		m.stages = append(m.stages, s)
		m.actors = append(m.actors, s)
	}
	for i := range 2 {
		a, b := newAnalyzerActor(m, i), newBuilderActor(m, i)
		m.analyzers, m.builders = append(m.analyzers, a), append(m.builders, b)
		m.actors = append(m.actors, a, b)
	}
	return m
}

// fault decides what the broker does to an append.
func (m *machine) fault(topic string, _ int32, e events.Envelope) memory.Verdict {
	if !m.faults || m.r.IntN(60) != 0 {
		return memory.Deliver
	}
	m.tally[Faults]++
	switch m.r.IntN(3) {
	case 0:
		return memory.FailBefore
	case 1:
		return memory.FailAfter
	}
	m.late = append(m.late, topic)
	return memory.Late
}

// deliverLate lets an append arrive whose writer was told long ago that it failed.
func (m *machine) deliverLate() {
	if len(m.late) > 0 {
		m.log.DeliverLate(m.late[0], 0)
		m.late = m.late[1:]
	}
}

func (m *machine) now() time.Time { return time.UnixMicro(m.clock).UTC() }

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func (m *machine) follow(topic string, from int64) journal.Cursor {
	return must(m.log.Follow(context.Background(), topic, 0, from))
}

func next(c journal.Cursor) (journal.Entry, bool) {
	e, ok, err := c.TryNext()
	if err != nil {
		panic(err)
	}
	return e, ok
}

// append writes one record. An error ends the ownership of a service that claims.
func (m *machine) append(topic, service, instance string, term int64, id string, msg proto.Message) (int64, error) {
	offsets, err := m.log.Append(context.Background(), topic, 0, events.Envelope{
		ID: id, Source: service, Instance: instance, Queue: queueName, Time: m.now(), Term: term, Message: msg,
	})
	if err != nil {
		return 0, err
	}
	return offsets[0], nil
}

// appendEffect writes a record that needs no claim, again until it is known to be there.
func (m *machine) appendEffect(topic, service, instance, id string, msg proto.Message) int64 {
	for {
		offset, err := m.append(topic, service, instance, -1, id, msg)
		if err == nil {
			return offset
		}
		if !errors.Is(err, journal.ErrAppend) {
			panic(err)
		}
	}
}

// lineupFold is a fold of landfall.changes for who answers it.
type lineupFold struct {
	cursor journal.Cursor
	terms  *journal.Terms
	queue  *lineup.Queue
	each   func(e journal.Entry, counts bool, eff lineup.Effect)
	// entered is told of every admission that counts.
	entered func(*eventsv1.Admission)
}

func (m *machine) newLineupFold() *lineupFold {
	return &lineupFold{cursor: m.follow(events.TopicChanges, 0), terms: journal.NewTerms(events.TopicChanges), queue: lineup.New()}
}

func (f *lineupFold) read() {
	for e, ok := next(f.cursor); ok; e, ok = next(f.cursor) {
		counts := f.terms.Counts(e)
		var eff lineup.Effect
		if counts {
			eff = f.queue.Apply(e.Message, e.Offset)
		}
		if eff.Entered != nil && f.entered != nil {
			f.entered(eff.Entered.Admission)
		}
		if f.each != nil {
			f.each(e, counts, eff)
		}
	}
}

// crash takes an instance's memory away.
func (m *machine) crash() {
	crashers := []crasher{m.enumerator, m.lander, m.stages[0], m.stages[1], m.stages[2]}
	for i := range m.analyzers {
		crashers = append(crashers, m.analyzers[i], m.builders[i])
	}
	m.tally[Crashes]++
	crashers[m.r.IntN(len(crashers))].crash()
}

func refString(c *eventsv1.ChangeRef) string {
	return fmt.Sprintf("%s@%d", c.GetChange(), c.GetRevision())
}
