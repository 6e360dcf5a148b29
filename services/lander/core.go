package lander

import (
	"log/slog"
	"slices"
	"time"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/journal"
	"landfall.build/platform/runner"
)

// Core is the lander's state on one partition: a fold of landfall.changes, landfall.decisions and landfall.builds, and for
// each queue an attempt, which is a state machine (see attempt). It implements runner.Core.
//
// It does one thing at a time. A crash between any two of them loses nothing and lands nothing twice: an attempt is no part of
// the fold, and the next owner begins it again.
type Core struct {
	// configured are the queues whose mainlines are known, in order.
	configured []string `snapshot:"-"`
	// flaky has the policies of those that have one.
	flaky  map[string]FlakyPolicy `snapshot:"-"`
	queues map[string]*queue
	terms  map[string]*journal.Terms
	// next are the offsets behind what is folded, by topic.
	next map[string]int64
	live bool      `snapshot:"-"`
	now  time.Time `snapshot:"-"`
	// current is the queue of the last effect: its attempt is finished before another queue has its turn.
	current string `snapshot:"-"`
	// notes are logs and measurements that are to be carried out before anything else.
	notes []runner.Effect `snapshot:"-"`
}

// topics are the lander's sources; it writes the first.
var topics = []string{events.TopicChanges, events.TopicDecisions, events.TopicBuilds}

// NewCore returns the core of a partition that knows nothing yet.
func NewCore(configured []string, flaky map[string]FlakyPolicy) *Core {
	c := &Core{configured: slices.Sorted(slices.Values(configured)), flaky: flaky, queues: map[string]*queue{}, terms: map[string]*journal.Terms{}, next: map[string]int64{}}
	for _, topic := range topics {
		c.terms[topic] = journal.NewTerms(topic)
	}
	return c
}

func (c *Core) queue(name string) *queue {
	q := c.queues[name]
	if q == nil {
		q = newQueue()
		c.queues[name] = q
	}
	return q
}

// NeedsOwn implements runner.Core: landfall.changes is folded up to the claim before anything else.
func (c *Core) NeedsOwn() bool { return !c.live }

// Stale implements runner.Core: the state is a fold of what counts, of nothing that was not read back.
func (c *Core) Stale() bool { return false }

// Next implements runner.Core.
func (c *Core) Next(topic string) int64 { return c.next[topic] }

// CanBatch implements runner.Core.
func (c *Core) CanBatch(journal.Entry) bool { return true }

// GoLive implements runner.Core. Every mainline is looked at; a queue with an open intention settles it first, or a head that
// holds one of ours would be taken for a direct push.
func (c *Core) GoLive(now time.Time) {
	c.live, c.now = true, now
	c.readAllHeads()
	for _, name := range c.configured {
		if c.queue(name).lineup.RefusedByRemote != nil {
			c.notes = append(c.notes, MeasurePause{name, true})
		}
	}
}

func (c *Core) readAllHeads() {
	for _, name := range c.configured {
		q := c.queue(name)
		q.attempt.mustReadHead, q.attempt.waiting = true, false
	}
}

// Apply implements runner.Core.
func (c *Core) Apply(in runner.Input) {
	c.now = in.Now
	switch {
	case in.Tick != nil:
		c.readAllHeads()
	case in.Record != nil:
		c.record(*in.Record)
	default:
		o := in.Outcome.(Outcome)
		c.current = o.Queue
		c.outcome(o.Queue, c.queue(o.Queue), o)
	}
}

// record folds a record of a source.
func (c *Core) record(e journal.Entry) {
	c.next[e.Topic] = e.Offset + 1
	if !c.terms[e.Topic].Counts(e) || e.Queue == "" {
		return
	}
	q := c.queue(e.Queue)
	switch e.Topic {
	case events.TopicChanges:
		q.foldChange(e.Message, e.Offset)
		if _, is := e.Message.(*eventsv1.ChangeAdmitted); is && c.live {
			q.letPast()
		}
	case events.TopicDecisions:
		if d, is := e.Message.(*eventsv1.Decision); is {
			q.foldDecision(d)
		}
	case events.TopicBuilds:
		q.foldBuild(e.Message)
	}
	q.abandonObsolete()
}

// Decide implements runner.Core.
func (c *Core) Decide() []runner.Effect {
	effects := slices.Clone(c.notes)
	for _, name := range c.inTurn() {
		if e := c.queues[name].effect(name, c.flaky[name], c.now, c.next[events.TopicBuilds]); e != nil {
			return append(effects, e)
		}
	}
	return effects
}

// inTurn returns the configured queues: the one with an attempt under way, or those after the one that acted last.
func (c *Core) inTurn() []string {
	at, found := slices.BinarySearch(c.configured, c.current)
	if found && c.queues[c.current] != nil && c.queues[c.current].attempt.state != idle {
		return c.configured[at : at+1]
	}
	if found {
		at++
	}
	turn := slices.Concat(c.configured[at:], c.configured[:at])
	return slices.DeleteFunc(turn, func(name string) bool { return c.queues[name] == nil })
}

// Fold implements runner.Core: a record is in the log, and everything up to it is applied.
func (c *Core) Fold(done runner.Effect) {
	a, is := done.(runner.Append)
	if !is {
		c.notes = c.notes[1:]
		return
	}
	c.current = a.Queue
	c.written(a.Queue, c.queue(a.Queue), a.Message)
}

// log notes what people should read.
func (c *Core) log(level slog.Level, text, queue string, args ...any) {
	c.notes = append(c.notes, runner.Log{Level: level, Text: text, Args: append([]any{"queue", queue}, args...)})
}
