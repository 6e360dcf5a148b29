package journal

import (
	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
)

// ClaimedWriter is a service whose records on a topic count only under its term.
type ClaimedWriter struct {
	Topic, Service string
}

// ClaimedWriters returns the services whose failed append on a topic ends their ownership of the partition:
// from the first failure on, every append of that service to that partition fails, so that nothing
// overtakes what may be missing, until the service appends a Claim, which begins a new term. The
// records of all other services may overtake one another (effects: the first of an id stands).
func ClaimedWriters() map[ClaimedWriter]bool {
	claimed := map[ClaimedWriter]bool{}
	for _, row := range events.Topics() {
		for _, service := range row.Claimed {
			claimed[ClaimedWriter{row.Name, service}] = true
		}
	}
	return claimed
}

// BeginsTerm reports whether an event is a claim.
func BeginsTerm(e events.Envelope) bool {
	_, is := e.Message.(*eventsv1.Claim)
	return is
}
