package proving

import (
	"context"
	"fmt"
	"strconv"

	"google.golang.org/protobuf/proto"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/services/enumerator"
	"landfall.build/services/journal"
	"landfall.build/services/stage"
)

// stageActor is profiler, prioritizer or selector: the instance in office, and one that does not know yet
// that it no longer is.
type stageActor struct {
	m         *machine
	partition int32
	stage     stage.Stage
	live      *stageInstance
	zombie    *stageInstance
	instances int
	dir       keptSnapshots
}

type stageInstance struct {
	name    string
	p       *stage.Partition
	in, own journal.Cursor
	term    int64
	// end is the offset behind its last output.
	end int64
	// plain says that it runs the code of today, so that it opens and keeps snapshots.
	plain bool
}

func (a *stageActor) start() {
	a.instances++
	code := a.m.leaving(a.m.version(a.stage))
	i := &stageInstance{name: strconv.Itoa(a.instances), p: stage.NewPartition(code), plain: sameCores(code, a.stage)}
	var err error
	if i.term, err = stage.Claim(context.Background(), a.m.wire(a.stage.Service), a.stage.Service, i.name, "test", a.stage.Output, a.partition, a.m.now()); err != nil {
		return
	}
	until := a.m.readTo(i.term)
	i.end = i.term + 1
	if a.live = a.thaw(i, until); a.live != nil {
		return
	}
	i.in, i.own = a.read(a.stage.Input, 0), a.read(a.stage.Output, 0)
	if err := a.fold(i, until); err != nil {
		panic(err)
	}
	a.live = i
}

// fold reads what the stage has written, and what it has answered with it.
func (a *stageActor) fold(i *stageInstance, until int64) error {
	for i.p.NeedsOwn() || i.p.Behind() {
		if i.p.NeedsOwn() {
			e, ok := next(i.own)
			if !ok {
				panic(fmt.Sprintf("the %s does not find its own claim at %d", a.stage.Service, i.term))
			}
			if i.p.Own(e); i.p.Stale() {
				return errStale
			}
			if e.Offset >= until {
				i.p.Live()
			}
			continue
		}
		e, ok := next(i.in)
		if !ok {
			panic(fmt.Sprintf("the %s has written an answer to what %s does not have", a.stage.Service, a.stage.Input))
		}
		i.p.Input(e)
	}
	return nil
}

func (a *stageActor) read(topic string, from int64) journal.Cursor {
	return a.m.read(a.stage.Service, topic, a.partition, from)
}

func (i *stageInstance) close() {
	if i != nil {
		i.in.Close()
		i.own.Close()
	}
}

func (a *stageActor) crash() {
	if a.live == nil {
		return
	}
	if a.m.zombies && a.m.r.IntN(2) == 0 {
		a.zombie.close()
		a.zombie = a.live
	} else {
		a.live.close()
	}
	a.live = nil
}

func (a *stageActor) step() bool {
	if a.zombie != nil && a.m.r.IntN(2) == 0 {
		if a.m.r.IntN(4) != 0 && a.take(a.zombie) {
			return true
		}
		a.zombie.close()
		a.zombie = nil
		return true
	}
	if a.live != nil && isSuperseded(a.live.own, a.stage.Service) {
		a.live.close()
		a.live = nil
	}
	if a.live == nil {
		a.start()
		return true
	}
	return a.take(a.live)
}

// take gives an instance its next input.
func (a *stageActor) take(i *stageInstance) bool {
	e, ok := next(i.in)
	if !ok {
		return false
	}
	ended := false
	if queue, out := i.p.Input(e); out != nil {
		offset, err := a.m.append(queue, a.stage.Output, a.partition, a.stage.Service, i.name, i.term, "", out)
		i.end, ended = offset+1, err != nil
	}
	if !ended && i.plain {
		ended = a.m.keeps(&a.dir, a.stage.Service, i.term, i.end, i.own, i.p.Freeze)
	}
	if ended {
		i.close()
		if a.live == i {
			a.live = nil
		} else {
			a.zombie = nil
		}
	}
	return true
}

// enumeratorActor merges the topics.
type enumeratorActor struct {
	m         *machine
	partition int32
	sites     []*site
	live      *enumeratorInstance
	zombie    *enumeratorInstance
	instances int
	dir       keptSnapshots
}

type enumeratorInstance struct {
	name                 string
	p                    *enumerator.Partition
	own, changes, builds journal.Cursor
	// end is the offset behind its last output.
	term, end int64
}

func (i *enumeratorInstance) close() {
	if i != nil {
		i.own.Close()
		i.changes.Close()
		i.builds.Close()
	}
}

func (a *enumeratorActor) start() {
	a.instances++
	i := &enumeratorInstance{name: strconv.Itoa(a.instances), p: enumerator.NewPartition()}
	var err error
	if i.term, err = stage.Claim(context.Background(), a.m.wire(events.ServiceEnumerator), events.ServiceEnumerator, i.name, "test", events.TopicSpeculations, a.partition, a.m.now()); err != nil {
		return
	}
	until := a.m.readTo(i.term)
	i.end = i.term + 1
	if p, own := a.thaw(until); p != nil {
		i.p, i.own = p, own
	} else {
		i.own = must(a.fold(i.p, 0, until))
	}
	from := i.p.Positions()
	if a.m.leaves == Positions {
		from = &eventsv1.Positions{Changes: max(0, from.Changes-a.m.r.Int64N(4)), Builds: max(0, from.Builds-a.m.r.Int64N(4))}
	}
	i.changes, i.builds = a.read(events.TopicChanges, from.Changes), a.read(events.TopicBuilds, from.Builds)
	a.live = i
}

// fold reads what the enumerator has written, from an offset on.
func (a *enumeratorActor) fold(p *enumerator.Partition, from, until int64) (journal.Cursor, error) {
	own := a.read(events.TopicSpeculations, from)
	for e, ok := next(own); ok; e, ok = next(own) {
		if p.Own(e); p.Stale() {
			own.Close()
			return nil, errStale
		}
		if e.Offset >= until {
			break
		}
	}
	return own, nil
}

func (a *enumeratorActor) crash() {
	if a.live == nil {
		return
	}
	if a.m.zombies && a.m.r.IntN(2) == 0 {
		a.zombie.close()
		a.zombie = a.live
	} else {
		a.live.close()
	}
	a.live = nil
}

func (a *enumeratorActor) read(topic string, from int64) journal.Cursor {
	return a.m.read(events.ServiceEnumerator, topic, a.partition, from)
}

// write appends a record; a failure ends the instance.
func (a *enumeratorActor) write(i *enumeratorInstance, queue string, s *eventsv1.Speculation) bool {
	if a.m.sabotage == SabotageProposals {
		s = a.m.nonsense(s)
	}
	s = a.m.writing(s)
	offset, err := a.m.append(queue, events.TopicSpeculations, a.partition, events.ServiceEnumerator, i.name, i.term, "", s)
	if err != nil {
		a.end(i)
		return false
	}
	i.end = offset + 1
	return true
}

// end lets go of an instance that has lost its ownership.
func (a *enumeratorActor) end(i *enumeratorInstance) {
	i.close()
	if a.live == i {
		a.live = nil
	} else {
		a.zombie = nil
	}
}

func (a *enumeratorActor) step() bool {
	if a.zombie != nil && a.m.r.IntN(2) == 0 {
		if a.m.r.IntN(4) != 0 && a.take(a.zombie) {
			return true
		}
		a.zombie.close()
		a.zombie = nil
		return true
	}
	if a.live != nil && isSuperseded(a.live.own, events.ServiceEnumerator) {
		a.live.close()
		a.live = nil
	}
	if a.live == nil {
		a.start()
		return true
	}
	for _, x := range a.sites {
		if a.live.p.Queue(x.queue).Settings().GetHash() != x.settings.Hash {
			a.say(x, &eventsv1.Fact{Fact: &eventsv1.Fact_Settings{Settings: a.m.telling(x.settings)}})
			return true
		}
	}
	return a.take(a.live)
}

// readTo is up to where an owner reads its own topic before it writes.
func (m *machine) readTo(term int64) int64 {
	if m.leaves == ReadToTheClaim {
		return max(0, term-m.r.Int64N(16))
	}
	return term
}

// telling is the configuration as the enumerator puts it into the log.
func (m *machine) telling(s *eventsv1.QueueSettings) *eventsv1.QueueSettings {
	if m.leaves == M19aRetries {
		s = proto.CloneOf(s)
		s.Steps.FailedRetries, s.Steps.TimedOutRetries, s.Steps.InfrastructureRetries = 0, 0, 0
	}
	return s
}

// writing is a record as the enumerator writes it.
func (m *machine) writing(s *eventsv1.Speculation) *eventsv1.Speculation {
	switch m.leaves {
	case StampsRise:
		s = proto.CloneOf(s)
		s.StampUs = m.time()
	case M19Holds, GuardFirst:
		if s.Delta == nil {
			return s
		}
		s = proto.CloneOf(s)
		for _, n := range s.Delta.Nodes {
			if m.leaves == GuardFirst {
				n.Guard = nil
			} else {
				n.Holds = nil
			}
		}
		if s.Delta.Mainline != nil && m.leaves == M19Holds {
			s.Delta.Mainline.Paused = false
		}
	}
	return s
}

func (a *enumeratorActor) say(x *site, f *eventsv1.Fact) {
	a.write(a.live, x.queue, a.live.p.Say(x.queue, f, a.m.time()))
}

// tick lets the cores know the time.
func (a *enumeratorActor) tick(x *site) {
	if a.live != nil && !a.live.p.Queue(x.queue).Idle() {
		a.say(x, &eventsv1.Fact{Fact: &eventsv1.Fact_Tick{Tick: &eventsv1.Tick{}}})
	}
}

// take reads some of both topics, in any order, and writes what comes of it.
func (a *enumeratorActor) take(i *enumeratorInstance) (took bool) {
	cursors := [2]journal.Cursor{i.changes, i.builds}
	if a.m.r.IntN(2) == 0 {
		cursors[0], cursors[1] = cursors[1], cursors[0]
	}
	for _, c := range cursors {
		for range 1 + a.m.r.IntN(3) {
			e, ok := next(c)
			if !ok {
				break
			}
			took = true
			for !i.p.Take(e) {
				if queue, s := i.p.Flush(a.m.time()); !a.write(i, queue, s) {
					return true
				}
			}
		}
	}
	if i.p.Gathered() {
		if queue, s := i.p.Flush(a.m.time()); !a.write(i, queue, s) {
			return true
		}
	}
	if took && a.m.keeps(&a.dir, events.ServiceEnumerator, i.term, i.end, i.own, i.p.Freeze) {
		a.end(i)
	}
	return took
}
