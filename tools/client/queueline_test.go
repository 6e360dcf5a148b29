package client

import (
	"strings"
	"testing"

	"landfall.build/platform/health"
	"landfall.build/services/gateway/view"
)

func TestTheQueueSaysThatServicesAreStarting(t *testing.T) {
	o := view.Overview{Queue: "main", ServiceTroubles: []view.ServiceTrouble{{Service: health.Starting, Sentence: "The services are starting: lander is not seen at work yet."}}}
	if line := queueLine(o); strings.Contains(line, "MISSING") || !strings.HasSuffix(line, "; The services are starting: lander is not seen at work yet.") {
		t.Error(line)
	}
	o.ServiceTroubles[0] = view.ServiceTrouble{Service: "lander", Sentence: "No lander."}
	if line := queueLine(o); !strings.HasSuffix(line, "; MISSING: No lander.") {
		t.Error(line)
	}
}
