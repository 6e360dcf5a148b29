package lander

import (
	"context"
	"time"

	"landfall.build/events"
	"landfall.build/services/stage"
)

// Run owns one partition until the context ends, the ownership is lost, or a write fails. It looks at each
// mainline every poll.
func Run(ctx context.Context, o Options, partition int32, poll time.Duration) error {
	p, err := Take(ctx, o, partition)
	if err != nil {
		return err
	}
	defer p.Close()
	var names []string
	for name := range o.Mainlines {
		if events.PartitionOf(name, o.Log.Partitions()) == partition {
			names = append(names, name)
		}
	}
	followAll := func() error {
		for _, name := range names {
			if err := p.Follow(ctx, name); err != nil {
				return err
			}
		}
		return nil
	}
	// Open intentions come first: a head that holds one of ours must not be taken for a direct push.
	if _, err := p.Fold(); err != nil {
		return err
	}
	if _, err := p.Step(ctx); err != nil {
		return err
	}
	if err := followAll(); err != nil {
		return err
	}
	ticker := time.NewTicker(poll)
	defer ticker.Stop()
	live := false
	changes, decisions, builds := p.Ready()
	for {
		read, err := p.Fold()
		if err != nil {
			return err
		}
		did, err := p.Step(ctx)
		if err != nil {
			return err
		}
		if !live && p.decisionsRead >= p.ends.decisions && p.buildsRead >= p.ends.builds {
			live = true
			p.keeper.CaughtUp()
			p.logger.Debug(stage.SaysLive, "service", events.ServiceLander, "partition", partition, "term", p.term)
		}
		p.Keep()
		if read || did {
			continue
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-changes:
		case <-decisions:
		case <-builds:
		case <-ticker.C:
			if err := followAll(); err != nil {
				return err
			}
		}
	}
}
