package lander

import (
	"context"
	"maps"
	"slices"
	"time"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/runner"
)

// Options of the lander.
type Options struct {
	runner.Options
	// Mainlines are the branches of the configured queues, by queue.
	Mainlines map[string]Mainline
	// Flaky has the policies for flaky targets, by queue.
	Flaky map[string]FlakyPolicy
	// Measured, if set, measures pushes, and mainlines that cannot be worked on.
	Measured *Metrics
}

// batch is how many records of a topic are folded between two effects.
const batch = 1024

// Run owns one partition until the context ends, the ownership is lost, or a write fails. It looks at each
// mainline every poll.
func Run(ctx context.Context, o Options, partition int32, poll time.Duration) error {
	return runner.Run(ctx, o.Options, Service(o, partition, poll), partition)
}

// Service returns the lander of a partition as the runner takes it.
func Service(o Options, partition int32, poll time.Duration) runner.Service {
	configured := slices.DeleteFunc(slices.Collect(maps.Keys(o.Mainlines)), func(name string) bool {
		return events.PartitionOf(name, o.Log.Partitions()) != partition
	})
	return runner.Service{
		Name: events.ServiceLander, Output: events.TopicChanges, Sources: topics, ReadsBack: true, Batch: batch, TickEvery: poll,
		New:     func() runner.Core { return NewCore(configured, o.Flaky) },
		Restore: func(state []byte, _ int64) (runner.Core, error) { return restore(configured, o.Flaky, state) },
		Perform: o.perform,
		Close: func() {
			// The next owner measures them.
			for _, name := range configured {
				o.Measured.setTrouble(name, eventsv1.MainlineTrouble_MAINLINE_TROUBLE_UNSPECIFIED)
				o.Measured.setPaused(name, false)
			}
		},
	}
}
