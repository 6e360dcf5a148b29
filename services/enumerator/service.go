package enumerator

import (
	"context"
	"time"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/runner"
)

// Options of the enumerator.
type Options struct {
	runner.Options
	// Settings are the configured queues, by name.
	Settings map[string]*eventsv1.QueueSettings
	// TickEvery is the least time between two ticks of a queue that has something pending; at least a second.
	TickEvery time.Duration
}

// Run owns one partition until the context ends, the ownership is lost, or a write fails.
func Run(ctx context.Context, o Options, partition int32) error {
	return runner.Run(ctx, o.Options, Service(o, partition), partition)
}

// Service returns the enumerator of a partition as the runner takes it.
func Service(o Options, partition int32) runner.Service {
	c := configured{settings: map[string]*eventsv1.QueueSettings{}, tickEvery: max(o.TickEvery, time.Second)}
	for name, s := range o.Settings {
		if events.PartitionOf(name, o.Log.Partitions()) == partition {
			c.settings[name] = s
		}
	}
	return runner.Service{
		Name: events.ServiceEnumerator, Output: events.TopicSpeculations,
		Sources: []string{events.TopicChanges, events.TopicBuilds, events.TopicModels}, Batch: maxFacts, TickEvery: c.tickEvery,
		New:     func() runner.Core { return NewCore(c.settings, c.tickEvery) },
		Restore: func(state []byte, term int64) (runner.Core, error) { return restore(c, state, term) },
	}
}
