package lander

import (
	"context"
	"maps"
	"slices"
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
	if err := p.Begin(ctx); err != nil {
		return err
	}
	ticker := time.NewTicker(poll)
	defer ticker.Stop()
	changes, decisions, builds := p.Ready()
	for {
		did, err := p.Turn(ctx)
		if err != nil {
			return err
		}
		if did {
			continue
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-changes:
		case <-decisions:
		case <-builds:
		case <-ticker.C:
			if err := p.FollowAll(ctx); err != nil {
				return err
			}
		}
	}
}

// Begin is done once, before the first turn. Open intentions come first: a head that holds one of ours must not be taken
// for a direct push.
func (p *Partition) Begin(ctx context.Context) error {
	if _, err := p.Fold(); err != nil {
		return err
	}
	if _, err := p.Step(ctx); err != nil {
		return err
	}
	return p.FollowAll(ctx)
}

// Turn folds what has arrived, acts on it, and keeps a snapshot when that is due; did is false if there was nothing.
func (p *Partition) Turn(ctx context.Context) (did bool, err error) {
	read, err := p.Fold()
	if err != nil {
		return read, err
	}
	acted, err := p.Step(ctx)
	if err != nil {
		return true, err
	}
	if !p.live && p.decisionsRead >= p.ends.decisions && p.buildsRead >= p.ends.builds {
		p.live = true
		p.keeper.CaughtUp()
		p.logger.Debug(stage.SaysLive, "service", events.ServiceLander, "partition", p.partition, "term", p.term)
	}
	p.keep()
	return read || acted, nil
}

// FollowAll looks at all mainlines of the partition.
func (p *Partition) FollowAll(ctx context.Context) error {
	for _, name := range slices.Sorted(maps.Keys(p.o.Mainlines)) {
		if events.PartitionOf(name, p.o.Log.Partitions()) == p.partition {
			if err := p.Follow(ctx, name); err != nil {
				return err
			}
		}
	}
	return nil
}
