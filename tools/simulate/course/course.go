// Package course runs a trace through a queue in virtual time, under one policy. The enumerator, the
// profiler, the decision rule, the selector and the land guard are the production cores; building, git
// and the clock are simulated. The policy stands in the prioritizer's place.
package course

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"landfall.build/engine/decision"
	"landfall.build/engine/directpush"
	"landfall.build/engine/evidence"
	"landfall.build/engine/profile"
	"landfall.build/engine/speculation"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/tools/simulate/forecast"
	"landfall.build/tools/simulate/policy"
	"landfall.build/tools/simulate/trace"
)

// Options of a simulation.
type Options struct {
	Trace    trace.Trace
	Forecast forecast.Forecast
	Kind     policy.Kind
	// Workers is the number of builds that can run at a time.
	// On a pool it is the number of steps.
	Workers int
	// Pool has the workers run steps; nil: each build has a worker of its own.
	Pool *Pool
	// Threshold is τ of M16, Bypass θ of M13 (above 1: no bypass).
	Threshold, Bypass float64
	// Round is how long the queue collects events before it plans: the latency of a real one.
	Round time.Duration
	// Disturbed holds failures of the machines; the trace has its cancellations already.
	Disturbed trace.Disturbances
	// Record, if set, is given what the enumerator would write to landfall.speculations.
	Record func(*eventsv1.Speculation)
	// Left, if set, is called for each change that stops being pending.
	Left func()

	// keep is the number of idle versions whose results are kept; tests lower it.
	keep int
}

// slots is how many builds may be scheduled at a time, 0 for as many as there are workers.
func (o Options) slots() int {
	if o.Pool == nil {
		return 0
	}
	return o.Pool.Slots
}

// tickEvery is the most virtual time between two plans while something is pending.
const tickEvery = int64(time.Minute / time.Microsecond)

// maxRounds bounds the plans at one moment: a policy that never comes to rest is an error.
const maxRounds = 10_000

// course is one simulation.
type course struct {
	o     Options
	clock int64
	// next is the change that arrives next, nil after the last.
	next  *trace.Change
	ended bool
	truth trace.Truth

	// facts are folded at the next plan.
	facts  []*eventsv1.Fact
	offset int64
	plans  int64

	enumerator *speculation.Queue
	profiler   *profile.Profile
	policy     policy.Policy
	selection  *decision.Selection
	best       *eventsv1.Ranking
	forecast   forecast.Forecast

	pending map[string]*pending
	order   []*pending
	// cancels are the pending changes that will be cancelled, the next one first.
	cancels []*pending
	// mainline holds, for each shared target, the landed changes that affect it.
	mainline map[int]sum
	// landedNear are the landed changes that arrived recently enough to break with one that arrives now.
	landedNear []*trace.Change
	// head is the mainline's; landings counts its moves.
	head     string
	landings int
	ledger   *evidence.Ledger
	foreign  *directpush.Pushes
	machines *machines
	// pool is nil if each build has a worker of its own.
	pool     *pool
	memory   memory
	settings *eventsv1.QueueSettings
	timeline timeline
	// nextEstimate is when estimates are made next.
	nextEstimate int64

	result Result
	// differs is nil while the changes that landed are those of the trace.
	differs *Difference
}

// Run simulates the whole trace. An error is a fault of the trace or of the policy: a change that is never decided, or a
// landed set that differs from the truth. With the latter, a Difference, there is a result all the same.
func Run(ctx context.Context, o Options) (*Result, error) {
	c := &course{
		o: o, enumerator: speculation.New().Unbounded(), pending: map[string]*pending{}, mainline: map[int]sum{},
		ledger: evidence.NewLedger(), foreign: directpush.New(), machines: newMachines(), memory: newMemory(o.keep), forecast: o.Forecast,
	}
	c.policy = o.Kind.Make(policy.Settings{
		Workers: cmp.Or(o.slots(), o.Workers), Threshold: o.Threshold, Bypass: o.Bypass, Truth: &c.truth,
		Lookup: func(id string) *trace.Change {
			if p := c.pending[id]; p != nil {
				return p.Change
			}
			return nil
		},
	})
	if o.Pool != nil {
		c.pool = newPool(c)
	}
	if see := o.Kind.Traits.Sees; see != nil {
		c.forecast = see(o.Forecast)
	}
	c.profiler = profile.NewWithPredictor(foreseen{c})
	c.selection = decision.New(queueName, identify)
	c.result.Policy = o.Kind.Name
	if err := c.advance(); err != nil {
		return nil, err
	}
	c.open()
	for len(c.pending) > 0 || c.next != nil {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if err := c.step(); err != nil {
			return nil, fmt.Errorf("%s: %w", o.Kind.Name, err)
		}
		c.timeline.look(c)
		c.estimate()
	}
	c.result.finish(c)
	result := c.result // a copy, so that the rest of the simulation is freed
	if c.differs != nil {
		c.differs.RedCommits = result.RedCommits
		return &result, fmt.Errorf("%s: %w", o.Kind.Name, c.differs)
	}
	return &result, nil
}

// builds are those that run, or wait for workers of a pool.
func (c *course) builds() []*build {
	if c.pool != nil {
		return c.pool.builds
	}
	return c.machines.builds
}

// advance reads the change that arrives next.
func (c *course) advance() error {
	if c.ended {
		return nil
	}
	next, err := c.o.Trace.Next()
	switch {
	case errors.Is(err, io.EOF):
		c.next, c.ended = nil, true
		return nil
	case err != nil:
		return err
	}
	c.next = next
	return nil
}

// awaitCancel notes when a change will be cancelled, if it will.
func (c *course) awaitCancel(p *pending) {
	if p.Cancelled > 0 {
		at, _ := slices.BinarySearchFunc(c.cancels, p, func(a, b *pending) int {
			return cmp.Or(cmp.Compare(a.Cancelled, b.Cancelled), cmp.Compare(a.Number, b.Number))
		})
		c.cancels = slices.Insert(c.cancels, at, p)
	}
}

// nextOutside is when the next change arrives or is cancelled, if one will.
func (c *course) nextOutside() (at int64, any bool) {
	if c.next != nil {
		at, any = c.next.Arrival, true
	}
	if len(c.cancels) > 0 && (!any || c.cancels[0].Cancelled < at) {
		at, any = c.cancels[0].Cancelled, true
	}
	return at, any
}

// nextEnd is when the next step ends, if one runs.
func (c *course) nextEnd() (int64, bool) {
	if c.pool != nil {
		return c.pool.nextEnd()
	}
	return c.machines.nextEnd()
}

// step moves to the next event, and has the queue plan.
func (c *course) step() error {
	at, any := c.nextOutside()
	end, runs := c.nextEnd()
	if !any && !runs {
		return fmt.Errorf("nothing runs and nothing arrives, but %d changes are pending: the policy leaves them undecided", len(c.pending))
	}
	switch {
	case c.pool != nil:
		if last := c.clock + tickEvery + 1; !any || len(c.pending) > 0 && at > last {
			at = last
		}
		at = c.pool.advance(at, true)
	case runs && (!any || end < at):
		at = end
	}
	if at > c.clock+tickEvery && len(c.pending) > 0 {
		c.clock += tickEvery
		c.tick()
	} else {
		c.clock = max(c.clock, at) + c.o.Round.Microseconds()
		if c.pool != nil {
			if c.next != nil && c.next.Arrival <= c.clock {
				c.pool.advance(c.next.Arrival, false)
				c.pool.arrived()
			}
			c.pool.advance(c.clock, false)
		}
		for c.next != nil && c.next.Arrival <= c.clock {
			c.arrive(c.next)
			if err := c.advance(); err != nil {
				return err
			}
		}
		for len(c.cancels) > 0 && c.cancels[0].Cancelled <= c.clock {
			c.cancel(c.cancels[0])
			c.cancels = c.cancels[1:]
		}
		if c.pool == nil {
			c.endSteps()
		}
	}
	c.forget()
	for round := 0; ; round++ {
		if round == maxRounds {
			return fmt.Errorf("the policy does not come to rest at %v", time.Duration(c.clock)*time.Microsecond)
		}
		again, err := c.plan()
		if err != nil {
			return err
		}
		if !again {
			break
		}
	}
	if c.pool != nil {
		c.pool.settle()
		c.pool.look()
	}
	return nil
}
