package webhooks

import (
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	"landfall.build/engine/snapshotv1"
	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/journal"
	"landfall.build/platform/runner"
)

// Core is the outbox of a partition: a fold of landfall.deliveries, and the outcomes whose delivery has not ended. It implements
// runner.Core, and reads back what it writes.
//
// Attempts run beside it. Those under way are no part of the state: the next owner makes them again.
type Core struct {
	// wants has the configured endpoints.
	wants map[string]Wants `snapshot:"-"`
	terms *journal.Terms
	// next and outcomes are the next offsets of landfall.deliveries and landfall.outcomes to read. An owner begins landfall.outcomes
	// with the first open delivery.
	next     int64
	outcomes int64 `snapshot:"-"`
	ledgers  map[string]*ledger

	live bool  `snapshot:"-"`
	now  int64 `snapshot:"-"`
	// end is where landfall.outcomes ended when that was asked, -1 before.
	end int64 `snapshot:"-"`
	// flying are the attempts that are under way.
	flying map[key]bool `snapshot:"-"`
	// look is set when it is time to see which attempts have ended.
	look bool `snapshot:"-"`
	// ended are attempts whose end is not in the log.
	ended []Result        `snapshot:"-"`
	notes []runner.Effect `snapshot:"-"`
}

// Wants says which outcomes an endpoint is told of; of a nil list all.
type Wants struct{ Queues, States []string }

func (w Wants) holds(m *eventsv1.ChangeOutcome) bool {
	return (len(w.Queues) == 0 || slices.Contains(w.Queues, m.Queue)) && (len(w.States) == 0 || slices.Contains(w.States, m.State))
}

// key names a delivery: an outcome's offset in landfall.outcomes, or the offset of who asked for it.
type key struct {
	endpoint string
	position int64
	asked    bool
}

// Send has a delivery attempted. Its Result comes by Collect.
type Send struct {
	Key     key
	ID      string
	Outcome *eventsv1.ChangeOutcome
	Attempt uint32
	// FirstUS is when the first attempt began.
	FirstUS int64
	Trace   string
}

// Result is how an attempt ended.
type Result struct {
	Send Send
	// Status is the HTTP status, 0 without an answer. Message says why the attempt failed, "" if it did not.
	Status  int
	Message string
	// Final is set if the delivery is not tried again.
	Final bool
}

// Collect asks which attempts have ended, FindEnd where landfall.outcomes ends. The outcomes are Results and End.
type (
	Collect struct{}
	Results []Result
	FindEnd struct{}
	End     int64
)

func newCore(wants map[string]Wants) *Core {
	return &Core{wants: wants, terms: journal.NewTerms(events.TopicDeliveries), ledgers: map[string]*ledger{}, end: -1, flying: map[key]bool{}}
}

// NeedsOwn implements runner.Core: landfall.deliveries is folded up to the claim before anything else.
func (c *Core) NeedsOwn() bool { return !c.live }

// Stale implements runner.Core: the state is a fold of what counts.
func (c *Core) Stale() bool { return false }

// CanBatch implements runner.Core.
func (c *Core) CanBatch(journal.Entry) bool { return true }

// Next implements runner.Core.
func (c *Core) Next(topic string) int64 {
	if topic == events.TopicDeliveries {
		return c.next
	}
	return c.outcomes
}

// GoLive implements runner.Core: landfall.outcomes is read from the first one that may be open.
func (c *Core) GoLive(now time.Time) {
	c.live, c.now = true, now.UnixMicro()
	first := int64(-1)
	for name, l := range c.ledgers {
		if _, configured := c.wants[name]; configured && (first < 0 || l.below < first) {
			first = l.below
		}
	}
	c.outcomes = max(first, 0)
}

// Apply implements runner.Core.
func (c *Core) Apply(in runner.Input) {
	c.now = in.Now.UnixMicro()
	switch {
	case in.Tick != nil:
		c.look = len(c.flying) > 0
	case in.Record != nil && in.Record.Topic == events.TopicDeliveries:
		c.next = in.Record.Offset + 1
		if c.terms.Counts(*in.Record) {
			c.fold(*in.Record)
		}
	case in.Record != nil:
		c.outcomes = in.Record.Offset + 1
		if m, is := in.Record.Message.(*eventsv1.ChangeOutcome); is && in.Record.Err == nil {
			c.outcome(*in.Record, m)
		}
	default:
		switch o := in.Outcome.(type) {
		case Results:
			c.look = false
			c.ended = append(c.ended, o...)
		case End:
			c.end = int64(o)
		}
	}
}

// fold takes a counted record of landfall.deliveries.
func (c *Core) fold(e journal.Entry) {
	switch f := e.Message.(type) {
	case *eventsv1.WebhookFollowed:
		c.ledgers[f.Endpoint] = newLedger(f.From, f.StampUs)
	case *eventsv1.WebhookLeft:
		delete(c.ledgers, f.Endpoint)
	case *eventsv1.WebhookDelivery:
		if l := c.ledgers[f.Endpoint]; l != nil {
			l.fold(f)
		}
		delete(c.flying, key{f.Endpoint, f.Position, f.Asked})
	case *eventsv1.WebhookAsked:
		if l := c.ledgers[f.Endpoint]; l != nil && f.Outcome != nil {
			if len(l.asked) >= maxAsked {
				c.log(slog.LevelWarn, "too much is asked to be sent again; this is not", "endpoint", f.Endpoint, "id", f.Id)
				return
			}
			l.asked[e.Offset] = f
		}
	}
}

// margin is by how much older than an endpoint an outcome may be that it is told of: clocks differ. The outcomes of a log that had
// none are written long after they happened.
const margin = time.Minute

// outcome takes an outcome, whoever wrote it.
func (c *Core) outcome(e journal.Entry, m *eventsv1.ChangeOutcome) {
	for _, name := range slices.Sorted(maps.Keys(c.wants)) {
		l := c.ledgers[name]
		if l == nil {
			continue
		}
		wanted := c.wants[name].holds(m) && e.Time.UnixMicro() >= l.since-margin.Microseconds()
		if l.add(e.Offset, delivery{id: e.ID, outcome: m, trace: e.Trace}, wanted) {
			k := key{name, e.Offset, false}
			c.flying[k] = true // nothing else begins with it
			c.ended = append(c.ended, Result{Send: Send{Key: k, ID: e.ID, Outcome: m}, Final: true,
				Message: fmt.Sprintf("more than %d deliveries wait for the endpoint; send it again once it answers", maxOpen)})
		}
	}
}

// Decide implements runner.Core.
func (c *Core) Decide() []runner.Effect {
	effects := slices.Clone(c.notes)
	if len(c.ended) > 0 {
		return append(effects, c.record(c.ended[0]))
	}
	for _, name := range slices.Sorted(maps.Keys(c.ledgers)) {
		if _, configured := c.wants[name]; !configured {
			return append(effects, runner.Append{Identity: []string{name, fmt.Sprint(c.next)}, Message: &eventsv1.WebhookLeft{Endpoint: name, StampUs: c.now}})
		}
	}
	names := slices.Sorted(maps.Keys(c.wants))
	for _, name := range names {
		switch {
		case c.ledgers[name] != nil:
		case c.end < 0:
			return append(effects, FindEnd{})
		default:
			return append(effects, runner.Append{Identity: []string{name, fmt.Sprint(c.next)}, Message: &eventsv1.WebhookFollowed{Endpoint: name, From: max(c.end, c.outcomes), StampUs: c.now}})
		}
	}
	if c.look {
		effects = append(effects, Collect{})
	}
	for _, name := range names {
		effects = append(effects, c.sends(name)...)
	}
	return effects
}

// sends returns the attempts at an endpoint that can begin now.
func (c *Core) sends(name string) (effects []runner.Effect) {
	room := maxFlying
	for k := range c.flying {
		if k.endpoint == name {
			room--
		}
	}
	if room <= 0 {
		return nil
	}
	tasks := c.ledgers[name].due(name, c.now, c.flying)
	for _, t := range tasks[:min(room, len(tasks))] {
		s := Send{Key: t.key, ID: t.delivery.id, Outcome: t.delivery.outcome, Attempt: t.last.GetAttempt() + 1, FirstUS: c.now, Trace: t.delivery.trace}
		if t.last != nil {
			s.FirstUS = t.last.FirstUs
		}
		effects = append(effects, s)
	}
	return effects
}

// record returns the record of an attempt that has ended.
func (c *Core) record(r Result) runner.Append {
	s := r.Send
	d := &eventsv1.WebhookDelivery{
		Endpoint: s.Key.endpoint, Id: s.ID, Queue: s.Outcome.Queue, Subject: s.Outcome.Subject, Sequence: s.Outcome.Sequence,
		Position: s.Key.position, Asked: s.Key.asked, State: eventsv1.DeliveryState_DELIVERY_STATE_DELIVERED, Attempt: s.Attempt,
		Status: int32(r.Status), Message: r.Message, FirstUs: s.FirstUS, StampUs: c.now,
	}
	if r.Message != "" {
		d.State, d.NextUs = eventsv1.DeliveryState_DELIVERY_STATE_FAILED, c.now+pauseAfter(max(s.Attempt, 1)).Microseconds()
		if r.Final || d.NextUs > s.FirstUS+tryFor.Microseconds() {
			d.State, d.NextUs = eventsv1.DeliveryState_DELIVERY_STATE_GIVEN_UP, 0
		}
	}
	if l := c.ledgers[s.Key.endpoint]; l != nil {
		settling := int64(-1)
		if !s.Key.asked && d.State != eventsv1.DeliveryState_DELIVERY_STATE_FAILED {
			settling = s.Key.position
		}
		d.SettledBelow = l.settledBelow(c.outcomes, settling)
	}
	return runner.Append{Queue: s.Outcome.Queue, Subject: s.Outcome.Subject, Trace: s.Trace, Message: d,
		Identity: []string{d.Endpoint, d.Id, fmt.Sprint(d.Position, d.Asked, d.Attempt, d.State)}}
}

// Fold implements runner.Core.
func (c *Core) Fold(done runner.Effect) {
	switch e := done.(type) {
	case Send:
		c.flying[e.Key] = true
	case Collect:
		c.look = false
	case runner.Log:
		c.notes = c.notes[1:]
	case runner.Append:
		d, is := e.Message.(*eventsv1.WebhookDelivery)
		if !is {
			return
		}
		c.ended = c.ended[1:]
		switch d.State {
		case eventsv1.DeliveryState_DELIVERY_STATE_GIVEN_UP:
			c.log(slog.LevelError, "a delivery is given up; landfall webhooks lists it, and sends it again", "endpoint", d.Endpoint, "id", d.Id, "attempts", d.Attempt, "reason", d.Message)
		case eventsv1.DeliveryState_DELIVERY_STATE_FAILED:
			c.log(slog.LevelWarn, "a delivery failed; it is tried again", "endpoint", d.Endpoint, "id", d.Id, "attempt", d.Attempt, "reason", d.Message)
		}
	}
}

func (c *Core) log(level slog.Level, text string, args ...any) {
	c.notes = append(c.notes, runner.Log{Level: level, Text: text, Args: args})
}

// Snapshot implements runner.Core.
func (c *Core) Snapshot() proto.Message {
	m := &snapshotv1.Webhooks{Terms: c.terms.Snapshot(), Next: c.next}
	for _, name := range slices.Sorted(maps.Keys(c.ledgers)) {
		m.Endpoints = append(m.Endpoints, c.ledgers[name].snapshot(name))
	}
	return m
}

func restore(wants map[string]Wants, state []byte) (*Core, error) {
	m := &snapshotv1.Webhooks{}
	if err := proto.Unmarshal(state, m); err != nil {
		return nil, err
	}
	c := newCore(wants)
	c.terms, c.next = journal.RestoreTerms(events.TopicDeliveries, m.Terms), m.Next
	for _, e := range m.Endpoints {
		c.ledgers[e.Endpoint] = restoreLedger(e)
	}
	return c, nil
}
