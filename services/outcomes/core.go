package outcomes

import (
	"maps"
	"slices"
	"time"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/journal"
	"landfall.build/platform/runner"
)

// Core is the state of the service on one partition: a fold of landfall.changes and landfall.builds, and how far the outcomes
// are in the log. It implements runner.Core.
//
// Outcomes of landfall.changes are written in the order of that topic, and every owner goes on behind all that it finds written. So
// the place of the last one says which are left to write.
type Core struct {
	form   form `snapshot:"-"`
	queues map[string]*queue
	terms  *journal.Terms
	// changes and builds are the next offsets of the sources to read.
	changes, builds int64
	// written is the place of the last outcome that comes of a record of landfall.changes.
	written place
	// tested has, by queue and change, the sequence of the last outcome that says that a change is tested, as the own topic held it
	// at the claim.
	tested map[string]map[string]int64 `snapshot:"-"`
	// passed is set once landfall.changes is read as far as it was written of.
	passed bool `snapshot:"-"`
	// open are outcomes that are to be written, in order.
	open []runner.Append `snapshot:"-"`
	live bool            `snapshot:"-"`
}

// place orders outcomes: by the record of landfall.changes that made the outcome, then by its number among those of that record,
// from 1.
type place struct {
	offset int64
	count  int
}

func (p place) before(o place) bool {
	return p.offset < o.offset || p.offset == o.offset && p.count < o.count
}

// form holds how outcomes are written.
type form struct {
	links links
	json  bool
	logID string
}

// newCore returns the core of a partition that knows nothing yet.
func newCore(f form) *Core {
	return &Core{form: f, queues: map[string]*queue{}, terms: journal.NewTerms(events.TopicChanges), written: place{offset: -1}, tested: map[string]map[string]int64{}}
}

func (c *Core) queue(name string) *queue {
	q := c.queues[name]
	if q == nil {
		q = newQueue(name, c.form.links)
		c.queues[name] = q
	}
	return q
}

// NeedsOwn implements runner.Core: what is written is read up to the claim before anything else.
func (c *Core) NeedsOwn() bool { return !c.live }

// GoLive implements runner.Core.
func (c *Core) GoLive(time.Time) { c.live = true }

// Stale implements runner.Core: every outcome in the log counts.
func (c *Core) Stale() bool { return false }

// Next implements runner.Core.
func (c *Core) Next(topic string) int64 {
	if topic == events.TopicBuilds {
		return c.builds
	}
	return c.changes
}

// CanBatch implements runner.Core.
func (c *Core) CanBatch(journal.Entry) bool { return true }

// Apply implements runner.Core.
func (c *Core) Apply(in runner.Input) {
	e := in.Record
	if e == nil {
		return
	}
	if e.Topic == events.TopicBuilds {
		c.builds = e.Offset + 1
		if e.Err == nil && e.Message != nil && e.Queue != "" {
			c.queue(e.Queue).foldBuild(e.Message, e.Time)
		}
	} else {
		c.changes = e.Offset + 1
		if c.terms.Counts(*e) && e.Queue != "" {
			for i, m := range c.queue(e.Queue).foldChange(e.Message, e.Offset, e.Time) {
				if at := (place{e.Offset, i + 1}); c.written.before(at) {
					c.written = at
					c.write(m, i, e.Trace)
				}
				c.ended(m)
			}
		}
	}
	c.testing(e.Queue)
}

// testing writes the outcomes testing of a queue. It waits until landfall.changes is read as far as outcomes of it are written, since
// a later outcome of the change may be among these. Then it looks at all queues once.
func (c *Core) testing(name string) {
	if c.changes <= c.written.offset {
		return
	}
	names := []string{name}
	if !c.passed {
		c.passed, names = true, slices.Sorted(maps.Keys(c.queues))
	}
	for _, name := range names {
		q := c.queues[name]
		if q == nil || len(q.due) == 0 {
			continue
		}
		for _, m := range q.takeDue(func(change string, sequence int64) bool { return c.tested[name][change] >= sequence }) {
			c.write(m, 0, "")
		}
	}
}

func (c *Core) write(m *eventsv1.ChangeOutcome, n int, trace string) {
	at, err := time.Parse(time.RFC3339Nano, m.Time)
	if err != nil {
		at = time.Time{}
	}
	c.open = append(c.open, runner.Append{Queue: m.Queue, Subject: m.Subject, Message: m, Envelope: &events.Envelope{
		ID: idOf(m, n), Source: events.ServiceOutcomes, Instance: c.form.logID, Queue: m.Queue, Subject: m.Subject, Time: at,
		Term: -1, Trace: trace, Message: m, JSON: c.form.json,
	}})
}

// Decide implements runner.Core.
func (c *Core) Decide() []runner.Effect {
	effects := make([]runner.Effect, len(c.open))
	for i, a := range c.open {
		effects[i] = a
	}
	return effects
}

// Fold implements runner.Core.
func (c *Core) Fold(done runner.Effect) {
	a, is := done.(runner.Append)
	switch {
	case !is:
	case a.Own == nil:
		if c.open = c.open[1:]; len(c.open) == 0 {
			c.open = nil
		}
	default:
		c.found(*a.Own)
	}
}

// found takes an outcome that was written before.
func (c *Core) found(e journal.Entry) {
	m, is := e.Message.(*eventsv1.ChangeOutcome)
	if !is || e.Err != nil {
		return
	}
	if m.State == StateTesting {
		if c.tested[m.Queue] == nil {
			c.tested[m.Queue] = map[string]int64{}
		}
		c.tested[m.Queue][m.Change] = m.Sequence
		return
	}
	if at := (place{m.Sequence / 2, numberOf(e.ID, m) + 1}); c.written.before(at) {
		c.written = at
	}
	c.ended(m)
}

// ended forgets that a change was tested once it has left the queue.
func (c *Core) ended(m *eventsv1.ChangeOutcome) {
	switch m.State {
	case StateLanded, StateRejected, StateEjected, StateCancelled:
		delete(c.tested[m.Queue], m.Change)
	}
}
