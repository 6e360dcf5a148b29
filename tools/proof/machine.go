package proof

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"time"

	"google.golang.org/protobuf/proto"

	"landfall.build/engine/lineup"
	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/journal"
	"landfall.build/platform/journal/memory"
	"landfall.build/services/prioritizer"
	"landfall.build/services/profiler"
	"landfall.build/services/selector"
)

// actor is an instance of a service, or a bystander, that does a little at a time.
type actor interface {
	// step does something; it says whether there was anything to do.
	step() bool
	// crash takes the memory away.
	crash()
}

// machine is all services on one log, each doing a little when the schedule says so.
type machine struct {
	// r draws the order of events, what goes wrong with the log and who crashes.
	r     *rand.Rand
	log   *memory.Log
	clock int64
	quiet *slog.Logger
	tally *Tally

	sites       []*site
	enumerators []*enumeratorActor
	stages      []*stageActor
	landers     []*landerActor
	actors      []actor
	tellers     []*teller
	sabotage    Sabotage
	// leaves is the rule that is left out.
	leaves Rule
	// quarantines: the lander quarantines targets by their flakes.
	quarantines bool
	// beforeIntention is what somebody else does just before an intention is in the log.
	beforeIntention func(queue string, i *eventsv1.LandIntended)
	troubles
	wireState
	// patient: nobody has anything to do, so time passes and the lander looks at the mainline.
	patient bool
	// healed: all troubles are over.
	healed  bool
	lastNow int64
}

// troubles are what may go wrong in a schedule; see troubleNames.
type troubles struct {
	crashes bool
	// zombies: an instance that is replaced goes on for a while.
	zombies bool
	// faults: appends fail, or arrive late.
	faults bool
	// stalls: an instance stops for long and wakes with an old view.
	stalls bool
	// repeats: records of services that need no claim are written twice.
	repeats bool
	// clocks: every look at the clock is wrong, back and forth.
	clocks bool
	// large: records are so large that they are written in parts, and cut.
	large bool
	// snapshots: instances start from what they have frozen, lately or long ago.
	snapshots bool
	// versions: instances of two versions of the code with different weights.
	versions bool
	// forgets: what is proven is forgotten, also of what is pending.
	forgets bool
}

func newMachine(r *rand.Rand, tally *Tally, partitions int32, shared bool) *machine {
	m := &machine{r: r, clock: 10_000_000_000, quiet: slog.New(slog.NewTextHandler(io.Discard, nil)), tally: tally}
	m.wireState = newWireState()
	m.log = memory.New(memory.Options{ID: "proving", Partitions: partitions, Shared: shared, Fault: m.fault})
	return m
}

// own starts who owns a partition that sites are on.
func (m *machine) own(partition int32, sites []*site) {
	e, l := newEnumeratorActor(m, partition, sites), &landerActor{m: m, partition: partition, sites: sites}
	m.enumerators, m.landers = append(m.enumerators, e), append(m.landers, l)
	m.actors = append(m.actors, e, l)
	for _, x := range sites {
		x.main.owner = l
	}
	for _, s := range []*stageActor{
		newStageActor(m, partition, profiler.Stage()), newStageActor(m, partition, prioritizer.Stage()),
		newStageActor(m, partition, selector.Stage(m.log.ID())),
	} {
		m.stages = append(m.stages, s)
		m.actors = append(m.actors, s)
	}
}

// time is what somebody who looks at a clock sees.
func (m *machine) time() int64 {
	now := m.clock
	if m.clocks {
		now += m.r.Int64N(2*maxSkewUs) - maxSkewUs
	}
	if now < m.lastNow {
		m.tally[ClockJumps]++
	}
	m.lastNow = now
	return now
}

// maxSkewUs is by how much a clock is wrong.
const maxSkewUs = 1_200_000_000

func (m *machine) now() time.Time { return time.UnixMicro(m.time()).UTC() }

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// follow reads the log as it is; read is what services do.
func (m *machine) follow(topic string, partition int32, from int64) journal.Cursor {
	return must(m.log.Follow(context.Background(), topic, partition, from))
}

func (m *machine) end(topic string, partition int32) int64 {
	return must(m.log.End(context.Background(), topic, partition))
}

func next(c journal.Cursor) (journal.Entry, bool) {
	e, ok, err := c.TryNext()
	if err != nil {
		panic(err)
	}
	return e, ok
}

// append writes one record. An error ends the ownership of a service that claims.
func (m *machine) append(queue, topic string, partition int32, service, instance string, term int64, id string, msg proto.Message) (int64, error) {
	return m.send(topic, partition, events.Envelope{
		ID: id, Source: service, Instance: instance, Queue: queue, Time: m.now(), Term: term, Message: msg,
	})
}

// resume is where an effect's service begins to read: the beginning, for it keeps no position.
func (m *machine) resume(starts int, topic string, partition int32) int64 {
	if m.leaves == AskedNotRead && starts > 0 {
		return m.end(topic, partition)
	}
	return 0
}

// died is what a process ends with in the middle of something.
type died struct{}

// appendEffect writes a record that needs no claim, again until it is known to be there. The process may die
// before it or behind it.
func (m *machine) appendEffect(x *site, topic, service, instance, id string, msg proto.Message) int64 {
	dies := m.crashPoint()
	if dies && m.r.IntN(2) == 0 {
		panic(died{})
	}
	for {
		offset, err := m.append(x.queue, topic, x.partition, service, instance, -1, id, msg)
		switch {
		case dies:
			panic(died{})
		case err == nil:
			return offset
		case !errors.Is(err, journal.ErrAppend):
			panic(err)
		}
	}
}

// crashPoint draws whether a process dies at a write.
func (m *machine) crashPoint() bool {
	if !m.crashes || m.tally[Crashes] >= maxCrashes || m.r.IntN(250) != 0 {
		return false
	}
	m.tally[Crashes]++
	return true
}

// maxCrashes bounds the crashes of one schedule.
const maxCrashes = 40

// step lets an actor do something; it may die of it.
func (m *machine) step(a actor) (did bool) {
	defer func() {
		if v := recover(); v != nil {
			if _, is := v.(died); !is {
				panic(v)
			}
			a.crash()
			did = true
		}
	}()
	return a.step()
}

// crash takes an instance's memory away.
func (m *machine) crash() {
	m.tally[Crashes]++
	m.actors[m.r.IntN(len(m.actors))].crash()
}

// lineupFold is a fold of a queue's facts in landfall.changes.
type lineupFold struct {
	x      *site
	cursor journal.Cursor
	terms  *journal.Terms
	queue  *lineup.Queue
	each   func(e journal.Entry, counts bool, consequence lineup.Consequence)
}

// newLineupFold reads the log as it is.
func (m *machine) newLineupFold(x *site) *lineupFold {
	return &lineupFold{
		x: x, cursor: m.follow(events.TopicChanges, x.partition, 0), terms: journal.NewTerms(events.TopicChanges), queue: lineup.New(),
	}
}

func (f *lineupFold) read() {
	for e, ok := next(f.cursor); ok; e, ok = next(f.cursor) {
		counts := f.terms.Counts(e)
		if e.Queue != f.x.queue {
			continue
		}
		var consequence lineup.Consequence
		if counts {
			consequence = f.queue.Apply(e.Message, e.Offset)
		}
		if f.each != nil {
			f.each(e, counts, consequence)
		}
	}
}

func refString(c *eventsv1.ChangeRef) string {
	return fmt.Sprintf("%s@%d", c.GetChange(), c.GetRevision())
}
