package recompute_test

import (
	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/services/enumerator"
	"landfall.build/services/journal"
	"landfall.build/services/stage"
)

// settingsOf are the settings of every queue of a world.
func settingsOf() *eventsv1.QueueSettings {
	return &eventsv1.QueueSettings{
		Hash: "h", Repository: "r", Branch: "main", Workers: 3, Threshold: 0.05, Best: 8, Steps: &eventsv1.StepPolicy{},
		PriorSuccess: 0.9, PriorConflict: 0.05, PriorDurationMeanUs: 60_000_000, PriorDurationStdUs: 10_000_000,
	}
}

// stageWriter is a stage on a partition: the instance that holds the last claim, and the one before it.
type stageWriter struct {
	w           *world
	stage       stage.Stage
	partition   int32
	live, stale *stageInstance
}

type stageInstance struct {
	p    *stage.Partition
	in   journal.Cursor
	term int64
}

func (x *stageWriter) replace() {
	x.stale = x.live
	i := &stageInstance{p: stage.NewPartition(x.stage), in: x.w.follow(x.stage.Input, x.partition)}
	i.term = x.w.claim(x.stage.Output, x.partition, x.stage.Service)
	own := x.w.follow(x.stage.Output, x.partition)
	for e, ok := next(own); ok; e, ok = next(own) {
		i.p.Own(e)
	}
	i.p.Live()
	for i.p.Behind() {
		e, ok := next(i.in)
		if !ok {
			break
		}
		i.p.Fits(e)
		i.p.Input(e)
	}
	x.live = i
}

func (x *stageWriter) step() bool {
	if x.stale != nil && x.w.r.IntN(8) == 0 {
		x.stale = nil
	}
	stale := false
	// Whoever takes over reads its own records first, and the one before goes far ahead meanwhile.
	for x.stale != nil && x.take(x.stale) && x.w.r.IntN(5) != 0 {
		stale = true
	}
	return x.take(x.live) || stale
}

func (x *stageWriter) take(i *stageInstance) bool {
	e, ok := next(i.in)
	if !ok {
		return false
	}
	if queue, out := i.p.Input(e); out != nil {
		x.w.append(x.stage.Output, x.partition, x.stage.Service, queue, i.term, out)
	}
	return true
}

// enumeratorWriter is the enumerator on a partition.
type enumeratorWriter struct {
	w           *world
	partition   int32
	live, stale *enumeratorInstance
}

type enumeratorInstance struct {
	p       *enumerator.Partition
	sources [3]journal.Cursor
	term    int64
}

func (x *enumeratorWriter) replace() {
	x.stale = x.live
	i := &enumeratorInstance{p: enumerator.NewPartition(), term: x.w.claim(events.TopicSpeculations, x.partition, events.ServiceEnumerator)}
	own := x.w.follow(events.TopicSpeculations, x.partition)
	for e, ok := next(own); ok; e, ok = next(own) {
		i.p.Own(e)
	}
	from := i.p.Positions()
	for n, at := range []struct {
		topic  string
		offset int64
	}{{events.TopicChanges, from.Changes}, {events.TopicBuilds, from.Builds}, {events.TopicModels, from.Models}} {
		var err error
		if i.sources[n], err = x.w.log.Follow(x.w.t.Context(), at.topic, x.partition, at.offset); err != nil {
			x.w.t.Fatal(err)
		}
	}
	x.live = i
	for _, q := range x.w.queues {
		if events.PartitionOf(q, x.w.log.Partitions()) == x.partition && i.p.Queue(q).Settings() == nil {
			x.write(i, q, i.p.Say(q, &eventsv1.Fact{Fact: &eventsv1.Fact_Settings{Settings: settingsOf()}}, x.w.clock))
		}
	}
}

func (x *enumeratorWriter) write(i *enumeratorInstance, queue string, s *eventsv1.Speculation) {
	x.w.append(events.TopicSpeculations, x.partition, events.ServiceEnumerator, queue, i.term, s)
}

func (x *enumeratorWriter) step() bool {
	if x.stale != nil && x.w.r.IntN(8) == 0 {
		x.stale = nil
	}
	stale := x.stale != nil && x.take(x.stale)
	return x.take(x.live) || stale
}

// take reads some of both sources in any order, and lets the time pass now and then.
func (x *enumeratorWriter) take(i *enumeratorInstance) (took bool) {
	for range 1 + x.w.r.IntN(5) {
		e, ok := next(i.sources[x.w.r.IntN(3)])
		for ok && !i.p.Take(e) {
			x.flush(i)
		}
		took = took || ok
	}
	x.flush(i)
	if q := x.w.queues[x.w.r.IntN(len(x.w.queues))]; took && x.w.r.IntN(10) == 0 && events.PartitionOf(q, x.w.log.Partitions()) == x.partition {
		x.write(i, q, i.p.Say(q, &eventsv1.Fact{Fact: &eventsv1.Fact_Tick{Tick: &eventsv1.Tick{}}}, x.w.clock))
	}
	return took
}

func (x *enumeratorWriter) flush(i *enumeratorInstance) {
	if queue, s := i.p.Flush(x.w.clock); s != nil {
		x.write(i, queue, s)
	}
}
