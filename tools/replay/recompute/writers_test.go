package recompute_test

import (
	"time"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/journal"
	"landfall.build/platform/runner"
	"landfall.build/services/enumerator"
)

// settingsOf are the settings of every queue of a world.
func settingsOf() *eventsv1.QueueSettings {
	return &eventsv1.QueueSettings{
		Hash: "h", Repository: "r", Branch: "main", Workers: 3, Threshold: 0.05, Best: 8, Pool: "default", PoolWorkers: 2, Steps: &eventsv1.StepPolicy{},
		PriorSuccess: 0.9, PriorConflict: 0.05, PriorDurationMeanUs: 60_000_000, PriorDurationStdUs: 10_000_000, Quotas: &eventsv1.Quotas{Author: 1},
	}
}

// act lets a core say what it has to, and returns the records.
func act(c runner.Core) (list []runner.Append) {
	for effects := c.Decide(); len(effects) > 0; effects = c.Decide() {
		for _, e := range effects {
			c.Fold(e)
			if a, is := e.(runner.Append); is {
				list = append(list, a)
			}
		}
	}
	return list
}

// stageWriter is a stage on a partition: the instance that holds the last claim, and the one before it.
type stageWriter struct {
	w           *world
	stage       runner.Stage
	partition   int32
	live, stale *stageInstance
}

type stageInstance struct {
	core runner.Core
	in   journal.Cursor
	term int64
}

// fold gives a core the records of its own topic.
func fold(c runner.Core, own journal.Cursor) {
	for e, ok := next(own); ok; e, ok = next(own) {
		c.Fold(runner.Append{Queue: e.Queue, Message: e.Message, Own: &e})
	}
}

func (x *stageWriter) replace() {
	x.stale = x.live
	i := &stageInstance{core: x.stage.Service().New(), in: x.w.follow(x.stage.Input, x.partition)}
	i.term = x.w.claim(x.stage.Output, x.partition, x.stage.Name)
	own := x.w.follow(x.stage.Output, x.partition)
	for e, ok := next(own); ok; e, ok = next(own) {
		i.core.Fold(runner.Append{Queue: e.Queue, Message: e.Message, Own: &e})
		for !i.core.NeedsOwn() {
			e, ok := next(i.in)
			if !ok {
				x.w.t.Fatal("an own record answers no input")
			}
			i.core.Apply(runner.Input{Record: &e})
		}
	}
	i.core.GoLive(x.w.now())
	act(i.core)
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
	i.core.Apply(runner.Input{Record: &e})
	for _, a := range act(i.core) {
		x.w.append(x.stage.Output, x.partition, x.stage.Name, a.Queue, i.term, a.Message)
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
	core    *enumerator.Core
	sources [3]journal.Cursor
	term    int64
}

func (x *enumeratorWriter) replace() {
	x.stale = x.live
	settings := map[string]*eventsv1.QueueSettings{}
	for _, q := range x.w.queues {
		if events.PartitionOf(q, x.w.log.Partitions()) == x.partition {
			settings[q] = settingsOf()
		}
	}
	i := &enumeratorInstance{core: enumerator.NewCore(settings, time.Second), term: x.w.claim(events.TopicSpeculations, x.partition, events.ServiceEnumerator)}
	fold(i.core, x.w.follow(events.TopicSpeculations, x.partition))
	i.core.GoLive(x.w.now())
	for n, topic := range []string{events.TopicChanges, events.TopicBuilds, events.TopicModels} {
		var err error
		if i.sources[n], err = x.w.log.Follow(x.w.t.Context(), topic, x.partition, i.core.Next(topic)); err != nil {
			x.w.t.Fatal(err)
		}
	}
	x.live = i
	x.flush(i)
}

func (x *enumeratorWriter) flush(i *enumeratorInstance) {
	for _, a := range act(i.core) {
		x.w.append(events.TopicSpeculations, x.partition, events.ServiceEnumerator, a.Queue, i.term, a.Message)
	}
}

func (x *enumeratorWriter) step() bool {
	if x.stale != nil && x.w.r.IntN(8) == 0 {
		x.stale = nil
	}
	stale := x.stale != nil && x.take(x.stale)
	return x.take(x.live) || stale
}

// take reads some of the sources in any order, and lets the time pass now and then.
func (x *enumeratorWriter) take(i *enumeratorInstance) (took bool) {
	for range 1 + x.w.r.IntN(5) {
		e, ok := next(i.sources[x.w.r.IntN(3)])
		if !ok {
			continue
		}
		if !i.core.CanBatch(e) {
			x.flush(i)
		}
		i.core.Apply(runner.Input{Record: &e, Now: x.w.now()})
		took = true
	}
	x.flush(i)
	if q := x.w.queues[x.w.r.IntN(len(x.w.queues))]; took && x.w.r.IntN(10) == 0 && events.PartitionOf(q, x.w.log.Partitions()) == x.partition {
		i.core.Apply(runner.Input{Tick: &runner.Tick{Queue: q}, Now: x.w.now()})
		x.flush(i)
	}
	return took
}
