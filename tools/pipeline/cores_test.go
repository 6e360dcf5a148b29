package pipeline_test

import (
	"context"
	"crypto/sha256"
	"hash"
	"slices"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/journal"
	"landfall.build/platform/runner"
	"landfall.build/services/enumerator"
	"landfall.build/services/prioritizer"
	"landfall.build/services/profiler"
	"landfall.build/services/selector"
)

// eventsPerOperation is how many events from outside one operation of BenchmarkCores is.
const eventsPerOperation = 500

// BenchmarkCores is the time that each core takes for one record, without a broker: every event of the same
// load goes through all cores before the next. The codec is what a record costs to be encoded and decoded
// by its one reader.
func BenchmarkCores(b *testing.B) {
	for _, s := range append(shapes(), fewWorkers()) {
		b.Run(s.name, func(b *testing.B) {
			c := newCores(b, s)
			for outs := c.load.next(false); outs != nil; outs = c.load.next(false) {
				c.take(outs)
			}
			c.took, c.bytes = map[string][]time.Duration{}, 0
			for b.Loop() {
				for range eventsPerOperation {
					outs := c.load.next(true)
					if outs == nil {
						b.Fatal("the pipeline stands still: nobody has anything to do")
					}
					c.take(outs)
				}
			}
			if c.load.refused > 0 {
				b.Errorf("the guard refused %d decisions, and nobody pushes past this queue", c.load.refused)
			}
			for _, name := range c.names {
				took := c.took[name]
				slices.Sort(took)
				sum := time.Duration(0)
				for _, d := range took {
					sum += d
				}
				b.ReportMetric(float64(sum.Microseconds())/float64(len(took)), name+"-µs")
				b.ReportMetric(float64(took[quantile(len(took), 99)].Microseconds()), name+"-p99-µs")
			}
			b.Logf("the records of %d operations have hash %x", b.N, c.transcript.Sum(nil)[:8])
			b.ReportMetric(float64(c.bytes)/float64(len(c.took["codec"])), "bytes/record")
		})
	}
}

// quantile returns the place of the q-th hundredth among n sorted values: the smallest that is not below that many.
func quantile(n, q int) int { return (n*q+99)/100 - 1 }

// cores are the production cores, fed by hand.
type cores struct {
	b          *testing.B
	load       *load
	clock      time.Time // virtual: the same load gives the same records
	enumerator *enumerator.Core
	stages     []*handStage
	offsets    map[string]int64
	names      []string
	took       map[string][]time.Duration
	bytes      int
	transcript hash.Hash // of every record, to see whether a faster core says the same
}

type handStage struct {
	runner.Stage
	core runner.Core
}

func newCores(b *testing.B, s shape) *cores {
	c := &cores{
		b: b, clock: time.UnixMicro(1_700_000_000_000_000), offsets: map[string]int64{}, took: map[string][]time.Duration{},
		transcript: sha256.New(),
		names:      []string{events.ServiceEnumerator, events.ServiceProfiler, events.ServicePrioritizer, events.ServiceSelector, "codec"},
	}
	c.load = newLoad(queueName, s, 1, func() time.Time { return c.clock })
	for _, of := range []runner.Stage{profiler.Stage(), prioritizer.Stage(), selector.Stage("benchmark")} {
		h := &handStage{Stage: of, core: of.Service().New()}
		claim := c.entry(of.Output, of.Name, -1, &eventsv1.Claim{Service: of.Name})
		h.core.Fold(runner.Append{Message: claim.Message, Own: &claim})
		h.core.GoLive(c.clock)
		c.stages = append(c.stages, h)
	}
	apply(c.stages[0].core, c.entry(events.TopicSpeculations, events.ServiceEnumerator, -1, &eventsv1.Claim{Service: events.ServiceEnumerator}), c.clock)
	for i, h := range c.stages[1:] {
		apply(h.core, journal.Entry{Topic: h.Input, Envelope: events.Envelope{
			Source: c.stages[i].Name, Term: -1, Message: &eventsv1.Claim{Service: c.stages[i].Name}}}, c.clock)
	}
	settings := enumerator.SettingsOf(configurationOf(b, s).Queues[queueName])
	c.enumerator = enumerator.NewCore(map[string]*eventsv1.QueueSettings{queueName: settings}, time.Second)
	c.enumerator.GoLive(c.clock)
	c.pass(decide(c.enumerator).(*eventsv1.Speculation))
	c.take([]outgoing{{events.TopicChanges, "load", "", &eventsv1.MainlineMoved{To: "root", Initial: true}}})
	return c
}

// apply gives a core a record of its input.
func apply(core runner.Core, e journal.Entry, now time.Time) {
	core.Apply(runner.Input{Record: &e, Now: now})
}

// decide returns the record that a core writes now, nil for none.
func decide(core runner.Core) proto.Message {
	for _, effect := range core.Decide() {
		core.Fold(effect)
		if a, is := effect.(runner.Append); is {
			return a.Message
		}
	}
	return nil
}

// entry returns the next record of a topic. The claims of the stages are the first of theirs, so their term is 0.
func (c *cores) entry(topic, source string, term int64, m proto.Message) journal.Entry {
	e := journal.Entry{Topic: topic, Offset: c.offsets[topic], Envelope: events.Envelope{Source: source, Queue: queueName, Term: term, Message: m}}
	c.offsets[topic]++
	return e
}

func (c *cores) time(name string, f func()) {
	began := time.Now()
	f()
	c.took[name] = append(c.took[name], time.Since(began))
}

// take passes events from outside through all cores, and what the lander makes of the decisions, too.
func (c *cores) take(outs []outgoing) {
	for _, o := range outs {
		c.clock = c.clock.Add(time.Second / eventsPerSecond)
		var s proto.Message
		e := c.entry(o.topic, o.source, -1, o.message)
		c.time(events.ServiceEnumerator, func() {
			apply(c.enumerator, e, c.clock)
			s = decide(c.enumerator)
		})
		if s != nil {
			c.pass(s.(*eventsv1.Speculation))
		}
	}
}

func (c *cores) pass(s *eventsv1.Speculation) {
	e := c.recode(c.entry(events.TopicSpeculations, events.ServiceEnumerator, 0, s))
	for _, h := range c.stages {
		var out proto.Message
		c.time(h.Name, func() {
			apply(h.core, e, c.clock)
			out = decide(h.core)
		})
		if out == nil {
			return
		}
		e = c.recode(c.entry(h.Output, h.Name, 0, out))
	}
	d := e.Message.(*eventsv1.Decision)
	c.load.decision(d)
	for _, i := range d.Items {
		switch x := i.Item.(type) {
		case *eventsv1.DecisionItem_LandDecided:
			c.land(x.LandDecided, d.StampUs)
		case *eventsv1.DecisionItem_RejectDecided:
			c.lander(&eventsv1.ChangeRejected{Change: x.RejectDecided.Change, Decision: x.RejectDecided.Decision, Reason: x.RejectDecided.Reason})
		case *eventsv1.DecisionItem_EjectDecided:
			c.b.Errorf("%s is to be ejected, and every step here could run", x.EjectDecided.Change)
		}
	}
}

// land is the lander without its guard.
func (c *cores) land(d *eventsv1.LandDecided, stamp int64) {
	ctx := context.Background()
	base, _ := c.load.m.Head(ctx)
	made, err := c.load.m.Make(ctx, base, c.load.admissionOf(d.Change.Change), stamp, nil)
	if err != nil {
		c.b.Fatal(err)
	}
	if err := c.load.m.Push(ctx, base, made.Commits[0]); err != nil {
		c.b.Fatal(err)
	}
	c.lander(&eventsv1.LandIntended{Change: d.Change, Decision: d.Decision, Base: base, Commits: made.Commits, Tree: made.Tree, Bypasses: d.Bypasses})
	c.lander(&eventsv1.ChangeLanded{Change: d.Change, Decision: d.Decision, Base: base, Commits: made.Commits, Tree: made.Tree, Bypasses: d.Bypasses})
}

func (c *cores) lander(m proto.Message) {
	c.load.fact(m)
	c.take([]outgoing{{events.TopicChanges, "load", "", m}})
}

// recode returns the record as its reader gets it.
func (c *cores) recode(e journal.Entry) journal.Entry {
	c.time("codec", func() {
		values, _, err := events.Encode(e.Envelope)
		if err != nil {
			c.b.Fatal(err)
		}
		value := slices.Concat(values...)
		c.bytes += len(value)
		c.transcript.Write(value)
		if e.Message, err = events.DecodeMessage(events.TypeOf(e.Message), value); err != nil {
			c.b.Fatal(err)
		}
	})
	return e
}
