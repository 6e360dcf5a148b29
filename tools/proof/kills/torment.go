package kills

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"landfall.build/events"
	"landfall.build/tools/pipeline"
	"landfall.build/tools/proof/kills/fleet"
	"landfall.build/tools/proof/kills/plan"
)

// instances of each service run all the time: one works, the other takes over.
var instances = []string{"one", "two"}

// member is the name of a service's instance in the fleet.
func member(service, instance string) string { return service + "-" + instance }

// counts is what was done to the processes.
type counts struct{ kills, stops, intrusions, replacements atomic.Int64 }

func (c *counts) String() string {
	text := fmt.Sprintf("%d kills, %d stops, %d intruders", c.kills.Load(), c.stops.Load(), c.intrusions.Load())
	if n := c.replacements.Load(); n > 0 {
		text += fmt.Sprintf(", %d replaced by another release", n)
	}
	return text
}

// torment carries out a plan.
type torment struct {
	fleet   *fleet.Fleet
	plan    *plan.Plan
	counts  *counts
	logger  *slog.Logger
	brokers *brokers
	// binaries are what intruders run.
	binaries []string
	// configFile is what an intruder is started with.
	configFile string

	wg sync.WaitGroup
	mu sync.Mutex
	// busy has what is stopped, or intruded upon, at this moment: of a service only one instance stalls at a
	// time, and of brokers one is away at a time.
	busy map[string]bool
	errs []error
}

// targets are all processes of a round.
func targets(b *brokers) plan.Targets {
	t := plan.Targets{Brokers: b.names, Replicated: b.replicated, Intrudable: pipeline.Services()}
	for _, service := range pipeline.Services() {
		for _, instance := range instances {
			t.Services = append(t.Services, member(service, instance))
		}
	}
	for _, instance := range instances {
		t.Builders = append(t.Builders, member(events.ServiceBuilder, instance))
	}
	return t
}

// run goes on until ctx ends or enough processes were killed, then waits until everything that is still stopped
// has been woken.
func (t *torment) run(ctx context.Context, enough int64) error {
	t.busy = map[string]bool{}
	for t.counts.kills.Load() < enough {
		a := t.plan.Next()
		if !sleep(ctx, a.Wait) {
			break
		}
		t.carryOut(ctx, a)
	}
	t.wg.Wait()
	return errors.Join(t.errs...)
}

// sleep says false if the context ended before.
func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}

func (t *torment) carryOut(ctx context.Context, a plan.Action) {
	t.logger.Info(a.Kind.String(), "target", a.Target, "hold", a.Hold)
	switch a.Kind {
	case plan.Kill:
		if at := slices.Index(t.brokers.names, a.Target); at >= 0 {
			t.during(a.Target, func() { t.killBroker(ctx, a, t.brokers.addresses[at]) })
		} else {
			t.kill(ctx, a)
		}
	case plan.KillChild:
		killed, err := t.fleet.KillChild(a.Target, a.Pick)
		t.check(err)
		if killed {
			t.counts.kills.Add(1)
		}
	case plan.Stop:
		t.during(a.Target, func() { t.stop(ctx, a) })
	case plan.Intrude:
		t.during("intruder", func() { t.intrude(ctx, a) })
	}
}

// during does something in the background, unless the like is being done already.
func (t *torment) during(name string, do func()) {
	if slices.Contains(t.brokers.names, name) {
		name = "brokers"
	}
	for _, service := range pipeline.Services() {
		for _, instance := range instances {
			if name == member(service, instance) {
				name = service
			}
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.busy[name] {
		return
	}
	t.busy[name] = true
	t.wg.Go(func() {
		do()
		t.mu.Lock()
		defer t.mu.Unlock()
		delete(t.busy, name)
	})
}

func (t *torment) check(err error) {
	if err == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.errs = append(t.errs, err)
}

// countKill counts a kill that found somebody alive.
func (t *torment) countKill(killed bool, err error) {
	if killed {
		t.counts.kills.Add(1)
	}
	t.check(err)
}

// kill waits here, so that the next action finds the process back.
func (t *torment) kill(ctx context.Context, a plan.Action) {
	t.countKill(t.fleet.Kill(a.Target))
	sleep(ctx, a.Hold)
	t.check(t.fleet.Revive(a.Target))
}

// killBroker does not give up the brokers' turn before this one listens again: of three, two have to be there.
// One that takes longer than that is no fault: it is late because the machine is busy, and the run waits for it.
func (t *torment) killBroker(ctx context.Context, a plan.Action, address string) {
	t.kill(ctx, a)
	if err := awaitAddress(ctx, address); err != nil && ctx.Err() == nil {
		t.logger.Warn("a broker takes long to come back", "error", err)
	}
}

func (t *torment) stop(ctx context.Context, a plan.Action) {
	t.check(t.fleet.Stop(a.Target))
	t.counts.stops.Add(1)
	sleep(ctx, a.Hold)
	t.check(t.fleet.Resume(a.Target))
}

// works is how long an intruder writes before it stalls, and again after it.
const works = 2 * time.Second

func (t *torment) intrude(ctx context.Context, a plan.Action) {
	name := fmt.Sprintf("intruder-%s", a.Target)
	if err := t.fleet.Launch(name, t.binaries[a.Pick%len(t.binaries)], "kills", "intruder", a.Target, "--config", t.configFile); err != nil {
		t.check(err)
		return
	}
	t.counts.intrusions.Add(1)
	if sleep(ctx, works) {
		t.check(t.fleet.Stop(name))
		sleep(ctx, a.Hold)
		t.check(t.fleet.Resume(name))
		sleep(ctx, works)
	}
	t.countKill(t.fleet.Remove(name))
}
