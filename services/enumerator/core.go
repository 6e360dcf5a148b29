// Package enumerator is the one place where topics merge: it reads landfall.changes, landfall.builds and
// landfall.models, puts every fact of a queue into one order, stamps it, and writes it to
// landfall.speculations with the speculation graph's delta. The graph is package engine/speculation.
package enumerator

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"landfall.build/engine/evidence"
	"landfall.build/engine/snapshotv1"
	"landfall.build/engine/speculation"
	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/journal"
	"landfall.build/platform/runner"
)

// Bounds of the facts of one record: what arrives together is planned once. A larger fact has a record of its own.
const (
	maxFacts     = 128
	maxFactBytes = 4 << 20
)

// Core is the enumerator on one partition. It implements runner.Core.
type Core struct {
	configured `snapshot:"-"`
	queues     map[string]*speculation.Queue
	changes    *journal.Terms
	own        *journal.Terms
	// positions are the offsets behind what is applied of the sources, stamp the highest time that was written, count the
	// number of the last fact.
	positions *eventsv1.Positions
	stamp     int64
	count     int64
	live      bool `snapshot:"-"`
	// restored from a snapshot, the core is stale once it finds an own record for less than it has taken.
	restored, stale bool `snapshot:"-"`

	// gathered are facts that are applied and not written yet. Those of a source are of one queue: the positions of a record
	// cover all that was read before it.
	gathered []gathered          `snapshot:"-"`
	letters  []runner.DeadLetter `snapshot:"-"`
	// written counts this owner's records, now is its clock.
	written int64             `snapshot:"-"`
	now     time.Time         `snapshot:"-"`
	quiet   map[string]*quiet `snapshot:"-"`
}

// configured is what the enumerator is started with.
type configured struct {
	// settings are those of the partition's queues, by queue. They reach the engine as facts only.
	settings map[string]*eventsv1.QueueSettings
	// tickEvery is the least time between two ticks of a queue.
	tickEvery time.Duration
}

// gathered are the facts of the next record of a queue.
type gathered struct {
	queue string
	facts []*eventsv1.Fact
	bytes int
	// trace is that of the first record among them that has one.
	trace string
}

// quiet is how long nothing but time has passed in a queue.
type quiet struct {
	since time.Time
	ticks int
}

// due reports whether a tick is worth its records: each stage behind the enumerator writes one for it, and all are kept.
func (q *quiet) due(now time.Time, every time.Duration) bool {
	return now.Sub(q.since) >= min(every<<min(q.ticks, 10), time.Minute)
}

// NewCore returns the core of a partition that knows nothing yet. The settings are those of its queues.
func NewCore(settings map[string]*eventsv1.QueueSettings, tickEvery time.Duration) *Core {
	return &Core{
		configured: configured{settings, tickEvery}, queues: map[string]*speculation.Queue{},
		changes: journal.NewTerms(events.TopicChanges), own: journal.NewTerms(events.TopicSpeculations),
		positions: &eventsv1.Positions{LanderTerm: -1}, quiet: map[string]*quiet{},
	}
}

// Queue returns a queue's state, made if there is none.
func (c *Core) Queue(name string) *speculation.Queue {
	q := c.queues[name]
	if q == nil {
		q = speculation.New()
		c.queues[name] = q
	}
	return q
}

// NeedsOwn implements runner.Core: what was written comes first.
func (c *Core) NeedsOwn() bool { return !c.live }

// Stale implements runner.Core.
func (c *Core) Stale() bool { return c.stale }

// GoLive implements runner.Core. Settings that the log does not have are written first.
func (c *Core) GoLive(now time.Time) {
	c.live, c.now = true, now
	c.changes.Restore(events.ServiceLander, c.positions.LanderTerm)
	for _, name := range slices.Sorted(maps.Keys(c.settings)) {
		if s := c.settings[name]; c.Queue(name).Settings().GetHash() != s.Hash {
			c.gather(name, &eventsv1.Fact{Fact: &eventsv1.Fact_Settings{Settings: s}}, "")
		}
	}
}

// Next implements runner.Core.
func (c *Core) Next(topic string) int64 {
	switch topic {
	case events.TopicChanges:
		return c.positions.Changes
	case events.TopicBuilds:
		return c.positions.Builds
	}
	return c.positions.Models
}

// CanBatch implements runner.Core: the facts of a record are of one queue, and a model, which is large, has a record of its own.
func (c *Core) CanBatch(e journal.Entry) bool {
	f := factOf(e)
	if f == nil || len(c.gathered) == 0 {
		return true
	}
	g := c.gathered[0]
	return len(c.gathered) == 1 && g.queue == e.Queue && len(g.facts) < maxFacts && g.bytes+proto.Size(f) <= maxFactBytes && !speculation.IsModel(f) && !speculation.IsModel(g.facts[0])
}

// Apply implements runner.Core.
func (c *Core) Apply(in runner.Input) {
	c.now = in.Now
	switch {
	case in.Tick != nil:
		c.tick(in.Tick.Queue)
	case in.Record != nil:
		c.record(*in.Record)
	}
}

func (c *Core) record(e journal.Entry) {
	counts := e.Topic != events.TopicChanges || c.changes.Counts(e)
	next := proto.CloneOf(c.positions)
	switch e.Topic {
	case events.TopicChanges:
		next.Changes, next.LanderTerm = e.Offset+1, c.changes.Last(events.ServiceLander)
	case events.TopicBuilds:
		next.Builds = e.Offset + 1
	case events.TopicModels:
		next.Models = e.Offset + 1
	}
	c.positions = next
	if why := unfit(e); why != "" {
		c.letters = append(c.letters, runner.DeadLetter{Entry: e, Reason: why})
	}
	if f := factOf(e); f != nil && counts {
		c.gather(e.Queue, f, e.Trace)
	}
}

// gather applies a fact, which the queue's next record holds: the delta of that record has all that was applied, so facts of a
// queue that wait together have one record, whatever other queues have between them.
func (c *Core) gather(queue string, f *eventsv1.Fact, trace string) {
	c.count++
	c.Queue(queue).Apply(f, c.count)
	at := slices.IndexFunc(c.gathered, func(g gathered) bool { return g.queue == queue })
	if at < 0 {
		c.gathered = append(c.gathered, gathered{queue: queue})
		at = len(c.gathered) - 1
	}
	g := &c.gathered[at]
	g.facts, g.bytes, g.trace = append(g.facts, f), g.bytes+proto.Size(f), cmp.Or(g.trace, trace)
}

// tick lets time pass in a queue, or in every queue in which it can change something, as long as that is worth its records.
// While nothing but time passes, ticks grow rarer, up to a minute.
func (c *Core) tick(queue string) {
	for _, name := range slices.Sorted(maps.Keys(c.queues)) {
		if c.quiet[name] == nil {
			c.quiet[name] = &quiet{since: c.now}
		}
		q := c.quiet[name]
		if c.queues[name].Idle() || name != queue && (queue != "" || !q.due(c.now, c.tickEvery)) {
			continue
		}
		q.since, q.ticks = c.now, q.ticks+1
		c.gather(name, &eventsv1.Fact{Fact: &eventsv1.Fact_Tick{Tick: &eventsv1.Tick{}}}, "")
	}
}

// Decide implements runner.Core. Stamps never run backwards.
func (c *Core) Decide() []runner.Effect {
	if len(c.letters) > 0 {
		return []runner.Effect{c.letters[0]}
	}
	if len(c.gathered) == 0 {
		return nil
	}
	g := c.gathered[0]
	return []runner.Effect{runner.Append{Queue: g.queue, Identity: []string{strconv.FormatInt(c.written+1, 10)}, Trace: g.trace, Message: &eventsv1.Speculation{
		Positions: proto.CloneOf(c.positions), StampUs: max(c.stamp, c.now.UnixMicro()), Facts: g.facts, Delta: c.queues[g.queue].Decide(),
	}}}
}

// Fold implements runner.Core.
func (c *Core) Fold(done runner.Effect) {
	out, is := done.(runner.Append)
	if !is {
		c.letters = c.letters[1:]
		return
	}
	if out.Own == nil {
		s := out.Message.(*eventsv1.Speculation)
		c.queues[out.Queue].Fold(s.Delta)
		c.stamp = s.StampUs
		c.written++
		if _, ticked := s.Facts[0].Fact.(*eventsv1.Fact_Tick); !ticked {
			c.quiet[out.Queue] = &quiet{since: c.now}
		}
		if c.gathered = c.gathered[1:]; s.Delta.GetMore() {
			c.gather(out.Queue, &eventsv1.Fact{Fact: &eventsv1.Fact_Tick{Tick: &eventsv1.Tick{}}}, "")
		}
		return
	}
	s, is := out.Message.(*eventsv1.Speculation)
	if !c.own.Counts(*out.Own) || !is {
		return
	}
	c.FoldWritten(out.Queue, s)
}

// FoldWritten takes a record that was written before: what was written is the state.
func (c *Core) FoldWritten(queue string, s *eventsv1.Speculation) {
	c.stale = c.stale || c.restored && before(s.Positions, c.positions)
	q := c.Queue(queue)
	for _, f := range s.Facts {
		c.count++
		q.Apply(f, c.count)
	}
	q.Fold(s.Delta)
	c.positions, c.stamp = s.Positions, s.StampUs
}

func before(a, b *eventsv1.Positions) bool {
	return a.GetChanges() < b.GetChanges() || a.GetBuilds() < b.GetBuilds() || a.GetModels() < b.GetModels()
}

// factOf returns nil for a record that is no fact of a queue.
func factOf(e journal.Entry) *eventsv1.Fact {
	if e.Message == nil || e.Queue == "" {
		return nil
	}
	return FactOf(e)
}

// FactOf returns the fact of a queue that a record of a source is, nil for one that is none: of another kind, of another
// topic than its own, or a model that is too large to be handed on.
func FactOf(e journal.Entry) *eventsv1.Fact {
	f, ok := speculation.FactOf(e.Message)
	if !ok || speculation.IsModel(f) != (e.Topic == events.TopicModels) || unfit(e) != "" {
		return nil
	}
	if s := f.GetStepFinished(); s != nil {
		f.Fact = &eventsv1.Fact_StepFinished{StepFinished: evidence.WithoutOutput(s)}
	}
	if p := f.GetBuildPrepared(); p != nil {
		f.Fact = &eventsv1.Fact_BuildPrepared{BuildPrepared: withoutLists(p)}
	}
	return f
}

// withoutLists returns a preparation without what its versions depend on, who owns them and which run together, which the graph has no use for. It
// can be most of it.
func withoutLists(p *eventsv1.BuildPrepared) *eventsv1.BuildPrepared {
	if len(p.Needs)+len(p.Owned)+len(p.Groups) == 0 {
		return p
	}
	out := &eventsv1.BuildPrepared{}
	to := out.ProtoReflect()
	p.ProtoReflect().Range(func(field protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		if field.Name() != "needs" && field.Name() != "owned" && field.Name() != "groups" {
			to.Set(field, v)
		}
		return true
	})
	return out
}

// unfit returns why a record that could be decoded is no fact though it should be, "" if it is one or need not be.
func unfit(e journal.Entry) string {
	if e.Topic != events.TopicModels || e.Message == nil {
		return ""
	}
	if n := proto.Size(e.Message); n > events.MaxModelBytes {
		return fmt.Sprintf("a model of %d bytes, at most %d; the one before it stays in use", n, events.MaxModelBytes)
	}
	return ""
}

// Snapshot implements runner.Core.
func (c *Core) Snapshot() proto.Message {
	m := &snapshotv1.Enumerator{Terms: c.changes.Snapshot(), Positions: c.positions, StampUs: c.stamp, Count: c.count}
	for _, name := range slices.Sorted(maps.Keys(c.queues)) {
		m.Queues = append(m.Queues, &snapshotv1.EnumeratorQueue{Queue: name, Graph: c.queues[name].Snapshot()})
	}
	return m
}

// restore returns the core that a snapshot was taken of by the owner of a term.
func restore(o configured, state []byte, term int64) (*Core, error) {
	m := &snapshotv1.Enumerator{}
	if err := proto.Unmarshal(state, m); err != nil {
		return nil, err
	}
	c := NewCore(o.settings, o.tickEvery)
	for _, q := range m.Queues {
		graph, err := speculation.Restore(q.Graph)
		if err != nil {
			return nil, fmt.Errorf("queue %s: %w", q.Queue, err)
		}
		c.queues[q.Queue] = graph
	}
	if m.Positions != nil {
		c.positions = m.Positions
	}
	c.changes, c.stamp, c.count, c.restored = journal.RestoreTerms(events.TopicChanges, m.Terms), m.StampUs, m.Count, true
	c.own.Restore(events.ServiceEnumerator, term)
	return c, nil
}
