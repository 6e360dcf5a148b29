// Package clienttest asks a gateway for what tests need.
package clienttest

import (
	"context"
	"time"

	"landfall.build/services/gateway/api"
	"landfall.build/tools/client"
)

// Land is Client.Land for a test that goes on once the request is answered. On a busy machine a reply can be pending: then it asks
// again, under the same request id. A request that was admitted in between is then answered as unchanged, and Land returns it as
// admitted.
func Land(ctx context.Context, c *client.Client, queue string, body api.LandBody) (api.LandReply, error) {
	for again := false; ; again = true {
		reply, err := c.Land(ctx, queue, body)
		if again && reply.Outcome == api.OutcomeUnchanged {
			reply.Outcome = api.OutcomeAdmitted
		}
		if err != nil || reply.Outcome != api.OutcomePending {
			return reply, err
		}
		body.RequestID = reply.RequestID
		select {
		case <-ctx.Done():
			return reply, ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
}
