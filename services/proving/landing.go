package proving

import (
	"context"
	"strconv"

	"landfall.build/services/lander"
	"landfall.build/services/stage"
)

// landerActor is the lander: the instance in office, and one that was replaced without knowing.
type landerActor struct {
	m         *machine
	live      *lander.Partition
	zombie    *lander.Partition
	instances int
	// nested: somebody has taken over while a push was under way.
	nested bool
}

func (a *landerActor) start() {
	a.instances++
	ctx := context.Background()
	p, err := lander.Take(ctx, lander.Options{
		Options:   stage.Options{Log: a.m.log, Instance: strconv.Itoa(a.instances), Version: "test", Logger: a.m.quiet},
		Mainlines: map[string]lander.Mainline{queueName: remote{a.m.main}},
		Clock:     a.m.now,
	}, 0)
	if err != nil {
		return
	}
	a.live = p
	// Open intentions come first: a head that holds one of ours must not be taken for a direct push.
	if _, err = p.Fold(); err == nil {
		if _, err = p.Step(ctx); err == nil {
			err = p.Follow(ctx, queueName)
		}
	}
	a.ended(p, err)
}

// ended lets go of an instance that lost its ownership.
func (a *landerActor) ended(p *lander.Partition, err error) {
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
		_, err := z.Step(ctx)
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
	p := a.live
	read, err := p.Fold()
	if err == nil && (a.m.r.IntN(4) == 0 || a.m.patient) {
		err = p.Follow(ctx, queueName)
	}
	did := false
	if err == nil {
		did, err = p.Step(ctx)
	}
	a.ended(p, err)
	return read || did || err != nil
}
