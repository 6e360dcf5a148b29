package outcomes

import (
	"fmt"
	"net/url"

	eventsv1 "landfall.build/events/v1"
)

// links is the address of the gateway, "" if none is configured.
type links string

// log returns where the output of a step is that a reason names, "" if the reason names no run.
func (l links) log(queue string, of ref, p *eventsv1.Proof) string {
	if p.GetAttempt() == 0 {
		return ""
	}
	query := url.Values{
		"revision": {fmt.Sprint(of.revision)}, "target": {p.GetVersion().GetTarget()}, "hash": {p.GetVersion().GetHash()}, "attempt": {fmt.Sprint(p.GetAttempt())},
	}
	return string(l) + "/v1/queues/" + url.PathEscape(queue) + "/changes/" + url.PathEscape(of.change) + "/logs?" + query.Encode()
}
