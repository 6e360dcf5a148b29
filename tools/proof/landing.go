package proof

import (
	"context"
	"strconv"

	"landfall.build/events"
	"landfall.build/platform/runner"
	"landfall.build/platform/snapshot"
	"landfall.build/services/lander"
)

// landerActor is the lander: the instance in office, and one that was replaced without knowing.
type landerActor struct {
	m         *machine
	partition int32
	sites     []*site
	live      *runner.Owner
	zombie    *runner.Owner
	instances int
	// nested: somebody has taken over while a push was under way.
	nested bool
	// dir is where it keeps its snapshots.
	dir *snapshot.Store
}

func (a *landerActor) start() {
	a.instances++
	ctx := context.Background()
	mainlines, flaky := map[string]lander.Mainline{}, map[string]lander.FlakyPolicy{}
	for _, x := range a.sites {
		mainlines[x.queue] = a.m.branch(x)
		if a.m.quarantines {
			flaky[x.queue] = flakyPolicy
		}
	}
	options := runner.Options{Log: a.m.wire(events.ServiceLander), Instance: strconv.Itoa(a.instances), Version: "test", Logger: a.m.quiet, Snapshots: a.opens(), Clock: a.m.now}
	service := lander.Service(lander.Options{Options: options, Mainlines: mainlines, Flaky: flaky}, a.partition, 0)
	o, err := runner.Take(ctx, options, service, a.partition)
	if err != nil {
		return
	}
	a.live = o
	for !o.Live() && err == nil {
		_, err = o.Step(ctx)
	}
	a.ended(o, err)
}

// ended lets go of an instance that lost its ownership.
func (a *landerActor) ended(p *runner.Owner, err error) {
	switch {
	case err == nil:
		return
	case a.live == p:
		a.live = nil
	case a.zombie == p:
		a.zombie = nil
	}
	p.Close()
}

func (a *landerActor) crash() {
	if a.live == nil {
		return
	}
	if a.zombie != nil {
		a.zombie.Close()
		a.zombie = nil
	}
	if a.m.zombies && a.m.r.IntN(2) == 0 {
		a.zombie = a.live
	} else {
		a.live.Close()
	}
	a.live = nil
}

// opens gives the directory in which an instance finds a snapshot, and keeps its own; none if it is lost.
func (a *landerActor) opens() *snapshot.Store {
	if !a.m.snapshots || a.m.r.IntN(5) == 0 {
		return nil
	}
	if a.dir == nil {
		a.dir = snapshot.InMemory(snapshot.Pace{After: 20})
	}
	return a.dir
}

// takeOver is called while a push of the instance in office is under way: another one does its work, and
// the push goes on.
func (a *landerActor) takeOver() {
	if a.nested || a.live == nil {
		return
	}
	a.nested = true
	a.m.tally[TakeOvers]++
	a.start()
	a.nested = false
}

func (a *landerActor) step() bool {
	ctx := context.Background()
	if z := a.zombie; z != nil && a.m.r.IntN(2) == 0 {
		// It acts on what it has read; it never reads on by itself.
		_, err := z.Act(ctx)
		a.ended(z, err)
		if a.zombie == z && a.m.r.IntN(4) == 0 {
			z.Close()
			a.zombie = nil
		}
		return true
	}
	if a.live == nil {
		a.start()
		return true
	}
	p, err := a.live, error(nil)
	did, before := false, a.m.end(events.TopicChanges, a.partition)
	looks := a.m.r.IntN(4) == 0 || a.m.patient
	if looks {
		err = p.Tick(ctx, "")
	}
	for acts := true; acts && err == nil; acts = looks && did {
		did, err = p.Step(ctx)
	}
	a.ended(p, err)
	if looks {
		// A look at a mainline on which nothing has happened is nothing to do.
		did = a.m.end(events.TopicChanges, a.partition) != before
	}
	return did || err != nil
}
