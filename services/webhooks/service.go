// Package webhooks delivers the outcomes to webhooks: signed, in order for each change, again after failures, and recorded in
// landfall.deliveries.
package webhooks

import (
	"context"
	"time"

	"landfall.build/events"
	"landfall.build/platform/runner"
)

// Options of the service.
type Options struct {
	runner.Options
	// Endpoints by name.
	Endpoints map[string]Endpoint
	// TickEvery is the time between two looks at what has ended and what is due; 100 ms if 0.
	TickEvery time.Duration
}

// batch is how many records of a topic are folded between two effects.
const batch = 1024

// findPause is the time between two questions where landfall.outcomes ends.
const findPause = time.Second

// Run owns one partition until the context ends, the ownership is lost, or a write fails.
func Run(ctx context.Context, o Options, partition int32) error {
	return runner.Run(ctx, o.Options, Service(o, partition), partition)
}

// Service returns the service of a partition as the runner takes it.
func Service(o Options, partition int32) runner.Service {
	wants := map[string]Wants{}
	for name, e := range o.Endpoints {
		wants[name] = e.Wants
	}
	s := newSender(o.Endpoints, o.Version)
	if o.TickEvery == 0 {
		o.TickEvery = 100 * time.Millisecond
	}
	return runner.Service{
		Name: events.ServiceWebhooks, Output: events.TopicDeliveries, Sources: []string{events.TopicDeliveries, events.TopicOutcomes}, ReadsBack: true,
		Batch: batch, TickEvery: o.TickEvery,
		New:     func() runner.Core { return newCore(wants) },
		Restore: func(state []byte, _ int64) (runner.Core, error) { return restore(wants, state) },
		Perform: func(ctx context.Context, e runner.Effect) any {
			switch e := e.(type) {
			case Send:
				s.begin(e)
			case Collect:
				if done := s.collect(); done != nil {
					return done
				}
			case FindEnd:
				end, err := o.Log.End(ctx, events.TopicOutcomes, partition)
				if err == nil {
					return End(end)
				}
				select {
				case <-ctx.Done():
				case <-time.After(findPause):
				}
			}
			return nil
		},
		Close: s.close,
	}
}
