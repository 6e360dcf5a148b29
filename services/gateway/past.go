package gateway

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"landfall.build/events"
	"landfall.build/platform/health"
	"landfall.build/platform/snapshot"
	"landfall.build/services/gateway/api"
	"landfall.build/services/gateway/past"
	"landfall.build/services/gateway/view"
)

const (
	// maxLooking is how many pasts are folded at a time, for those who ask.
	maxLooking = 2
	// checkpointEvery is after how many records of a partition the past of a queue has a checkpoint. checkpointBytes is how many bytes
	// the checkpoints of all queues may take on disk, and checkpointMemory in memory, where there is no disk for them.
	checkpointEvery  = 5_000
	checkpointBytes  = 2 << 30
	checkpointMemory = 128 << 20
	// checkpointRest is how long making checkpoints rests, as a multiple of the time that it worked.
	checkpointRest = 3
	// pastEvery is how often it is looked whether checkpoints are due.
	pastEvery = time.Minute
)

func (g *Gateway) newPast(queue string) *past.Past {
	o := past.Options{
		Log: g.Log, Queue: queue, Limits: g.View, Every: checkpointEvery, Bytes: checkpointMemory, Rest: checkpointRest,
		Logger: g.Logger.With("service", events.ServiceGateway),
	}
	if kept, err := g.checkpoints(queue); err != nil {
		o.Logger.Warn("checkpoints of the past are kept in memory", "queue", queue, "error", err)
	} else if kept.OnDisk() {
		o.Kept, o.Bytes = kept, checkpointBytes
	}
	o.Bytes /= int64(len(g.Config.QueueNames()))
	return past.New(o)
}

// checkpoints returns where the checkpoints of a queue are kept. Those of another binary are of no use: it may fold otherwise.
func (g *Gateway) checkpoints(queue string) (*snapshot.Series, error) {
	binary, err := snapshot.ThisBinary()
	if err != nil {
		return nil, err
	}
	return g.Snapshots.Series(snapshot.SeriesKey{
		Key:  snapshot.Key{Log: g.Log.ID(), Service: events.ServiceGateway, Partition: events.PartitionOf(queue, g.Log.Partitions())},
		Name: queue, Made: fmt.Sprintf("%s %+v", binary, g.View),
	})
}

// keepPast makes the checkpoints that are due, of one queue after the other.
func (g *Gateway) keepPast(ctx context.Context) error {
	for {
		for name, q := range g.queues {
			if err := q.past.CatchUp(ctx); err != nil && ctx.Err() == nil {
				g.Logger.Warn("checkpoints of the past are late", "service", events.ServiceGateway, "queue", name, "error", err)
			}
		}
		select {
		case <-time.After(pastEvery):
		case <-ctx.Done():
			return nil
		}
	}
}

// ReadAt implements api.Backend.
func (g *Gateway) ReadAt(ctx context.Context, name string, at time.Time, whole bool, f func(*view.Queue)) error {
	q := g.queues[name]
	if q == nil {
		return api.ErrUnknownQueue
	}
	select {
	case g.looking <- struct{}{}:
		defer func() { <-g.looking }()
	case <-ctx.Done():
		return fmt.Errorf("%w: others are answered: %w", past.ErrReading, context.Cause(ctx))
	}
	return q.past.Read(ctx, at, whole, f)
}

// OwnersAt implements api.Backend.
func (g *Gateway) OwnersAt(ctx context.Context, names []string, at time.Time) (owners []health.Ownership, err error) {
	select {
	case g.looking <- struct{}{}:
		defer func() { <-g.looking }()
	case <-ctx.Done():
		return nil, fmt.Errorf("%w: others are answered: %w", past.ErrReading, context.Cause(ctx))
	}
	queues := map[int32][]string{}
	for _, name := range slices.Sorted(slices.Values(names)) {
		partition := events.PartitionOf(name, g.Log.Partitions())
		queues[partition] = append(queues[partition], name)
	}
	for _, partition := range slices.Sorted(maps.Keys(queues)) {
		q := g.queues[queues[partition][0]]
		if q == nil {
			return nil, api.ErrUnknownQueue
		}
		list, err := q.past.Owners(ctx, at)
		if err != nil {
			return nil, err
		}
		for _, o := range list {
			o.Queues = queues[partition]
			owners = append(owners, o)
		}
	}
	return owners, nil
}
