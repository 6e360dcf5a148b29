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

func TestARefusedPushIsNoMainlineThatIsAway(t *testing.T) {
	o := view.Overview{Queue: "main", Unreachable: &view.Trouble{Kind: view.ReasonPushRefused, Sentence: "“policy: no commits with WIP”: refused."}}
	if line := queueLine(o); strings.Contains(line, "NOTHING LANDS") || !strings.HasSuffix(line, "; PUSH REFUSED: “policy: no commits with WIP”: refused.") {
		t.Error(line)
	}
	o.Unreachable = &view.Trouble{Kind: "unreadable", Sentence: "No route."}
	if line := queueLine(o); !strings.HasSuffix(line, "; NOTHING LANDS: No route.") {
		t.Error(line)
	}
}

func TestASentenceWithinTheQueuesLineEndsWithoutAFullStop(t *testing.T) {
	o := view.Overview{Queue: "main", PausedByRemote: &view.RemotePause{Sentence: "“Frozen.”: the remote has refused every push, so landings are paused."}, RedBeforeQueue: []string{"//x"}}
	if line, want := queueLine(o), "; PAUSED by the remote: “Frozen.”: the remote has refused every push, so landings are paused; mainline RED since before the queue in //x"; !strings.HasSuffix(line, want) {
		t.Errorf("got  %s\nwant %s", line, want)
	}
}
