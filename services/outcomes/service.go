// Package outcomes writes landfall.outcomes: what became of each change and request, for programs of others.
//
// An outcome is a function of the record that it comes of, and so are its id, its sequence and its bytes. Two owners of a
// partition write the same, and a reader that skips what is not above the highest sequence of a subject needs to know nothing of
// terms.
package outcomes

import (
	"context"

	"landfall.build/events"
	"landfall.build/platform/runner"
)

// Options of the service.
type Options struct {
	runner.Options
	// Gateway is the address of the gateway, which the links to logs begin with; "" for paths alone.
	Gateway string
	// JSON has outcomes written as JSON, else they are Protobuf.
	JSON bool
}

// batch is how many records of a topic are folded before what they make is written.
const batch = 1024

// Run owns one partition until the context ends, the ownership is lost, or a write fails.
func Run(ctx context.Context, o Options, partition int32) error {
	return runner.Run(ctx, o.Options, Service(o), partition)
}

// Service returns the service as the runner takes it.
func Service(o Options) runner.Service {
	f := form{links: links(o.Gateway), json: o.JSON, logID: o.Log.ID()}
	return runner.Service{
		Name: events.ServiceOutcomes, Output: events.TopicOutcomes, Sources: []string{events.TopicChanges, events.TopicBuilds}, Batch: batch,
		New:     func() runner.Core { return newCore(f) },
		Restore: func(state []byte, _ int64) (runner.Core, error) { return restore(f, state) },
	}
}
