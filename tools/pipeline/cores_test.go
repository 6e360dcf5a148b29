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
	"landfall.build/services/enumerator"
	"landfall.build/services/journal"
	"landfall.build/services/prioritizer"
	"landfall.build/services/profiler"
	"landfall.build/services/selector"
	"landfall.build/services/stage"
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

// quantile is the place of the q-th hundredth among n sorted values: the smallest that is not below that many.
func quantile(n, q int) int { return (n*q+99)/100 - 1 }

// cores are the production cores, fed by hand.
type cores struct {
	b          *testing.B
	load       *load
	clock      time.Time // virtual: the same load gives the same records
	enumerator *enumerator.Partition
	stages     []*handStage
	offsets    map[string]int64
	names      []string
	took       map[string][]time.Duration
	bytes      int
	transcript hash.Hash // of every record, to see whether a faster core says the same
}

type handStage struct {
	stage.Stage
	p *stage.Partition
}

func newCores(b *testing.B, s shape) *cores {
	c := &cores{
		b: b, clock: time.UnixMicro(1_700_000_000_000_000), enumerator: enumerator.NewPartition(), offsets: map[string]int64{}, took: map[string][]time.Duration{},
		transcript: sha256.New(),
		names:      []string{events.ServiceEnumerator, events.ServiceProfiler, events.ServicePrioritizer, events.ServiceSelector, "codec"},
	}
	c.load = newLoad(queueName, s, 1, func() time.Time { return c.clock })
	for _, of := range []stage.Stage{profiler.Stage(), prioritizer.Stage(), selector.Stage("benchmark")} {
		h := &handStage{Stage: of, p: stage.NewPartition(of)}
		h.p.Own(c.entry(of.Output, of.Service, -1, &eventsv1.Claim{Service: of.Service}))
		h.p.Live()
		c.stages = append(c.stages, h)
	}
	c.stages[0].p.Input(c.entry(events.TopicSpeculations, events.ServiceEnumerator, -1, &eventsv1.Claim{Service: events.ServiceEnumerator}))
	for i, h := range c.stages[1:] {
		h.p.Input(journal.Entry{Topic: h.Input, Envelope: events.Envelope{
			Source: c.stages[i].Service, Term: -1, Message: &eventsv1.Claim{Service: c.stages[i].Service}}})
	}
	settings := enumerator.SettingsOf(configurationOf(b, s).Queues[queueName])
	c.pass(c.enumerator.Say(queueName, &eventsv1.Fact{Fact: &eventsv1.Fact_Settings{Settings: settings}}, c.clock.UnixMicro()))
	c.take([]outgoing{{events.TopicChanges, "load", "", &eventsv1.MainlineMoved{To: "root", Initial: true}}})
	return c
}

// entry is the next record of a topic. The claims of the stages are the first of theirs, so their term is 0.
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
		var s *eventsv1.Speculation
		e := c.entry(o.topic, o.source, -1, o.message)
		c.time(events.ServiceEnumerator, func() {
			c.enumerator.Take(e)
			_, s = c.enumerator.Flush(c.clock.UnixMicro())
		})
		if s != nil {
			c.pass(s)
		}
	}
}

func (c *cores) pass(s *eventsv1.Speculation) {
	e := c.recode(c.entry(events.TopicSpeculations, events.ServiceEnumerator, 0, s))
	for _, h := range c.stages {
		var out proto.Message
		c.time(h.Service, func() { _, out = h.p.Input(e) })
		if out == nil {
			return
		}
		e = c.recode(c.entry(h.Output, h.Service, 0, out))
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
	made, err := c.load.m.Make(ctx, base, c.load.admissionOf(d.Change.Change), stamp)
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

// recode gives the record as its reader gets it.
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
