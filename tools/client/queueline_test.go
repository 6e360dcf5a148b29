package client

import (
	"strings"
	"testing"
	"time"

	"landfall.build/platform/health"
	"landfall.build/services/gateway/view"
)

func TestTheQueueSaysThatServicesAreStarting(t *testing.T) {
	o := view.Overview{Queue: "main", ServiceTroubles: []view.ServiceTrouble{{Service: health.Starting, Sentence: "The services are starting: lander is not seen at work yet."}}}
	if line := queueLine(o, time.Time{}); strings.Contains(line, "MISSING") || !strings.HasSuffix(line, "; The services are starting: lander is not seen at work yet.") {
		t.Error(line)
	}
	o.ServiceTroubles[0] = view.ServiceTrouble{Service: "lander", Sentence: "No lander."}
	if line := queueLine(o, time.Time{}); !strings.HasSuffix(line, "; MISSING: No lander.") {
		t.Error(line)
	}
}

func TestARefusedPushIsNoMainlineThatIsAway(t *testing.T) {
	o := view.Overview{Queue: "main", Unreachable: &view.Trouble{Kind: view.ReasonPushRefused, Sentence: "“policy: no commits with WIP”: refused."}}
	if line := queueLine(o, time.Time{}); strings.Contains(line, "NOTHING LANDS") || !strings.HasSuffix(line, "; PUSH REFUSED: “policy: no commits with WIP”: refused.") {
		t.Error(line)
	}
	o.Unreachable = &view.Trouble{Kind: "unreadable", Sentence: "No route."}
	if line := queueLine(o, time.Time{}); !strings.HasSuffix(line, "; NOTHING LANDS: No route.") {
		t.Error(line)
	}
}

func TestASentenceWithinTheQueuesLineEndsWithoutAFullStop(t *testing.T) {
	o := view.Overview{Queue: "main", PausedByRemote: &view.RemotePause{Sentence: "“Frozen.”: the remote has refused every push, so landings are paused."}, RedBeforeQueue: []string{"//x"}}
	if line, want := queueLine(o, time.Time{}), "; PAUSED by the remote: “Frozen.”: the remote has refused every push, so landings are paused; mainline RED since before the queue in //x"; !strings.HasSuffix(line, want) {
		t.Errorf("got  %s\nwant %s", line, want)
	}
}

// TestTheLastPauseIsNamedForADay after it was over, from the moment that is shown: now, or one of the past.
func TestTheLastPauseIsNamedForADay(t *testing.T) {
	since := time.Date(2026, 1, 5, 10, 0, 0, 0, time.Local)
	until := since.Add(time.Hour)
	const named = "; last paused from 2026-01-05 10:00:00 to 2026-01-05 11:00:00 by grace: incident 7; resumed by bo: it is over"
	for _, c := range []struct {
		since, at time.Time
		want      string
	}{
		{since, until.Add(23 * time.Hour), named},
		{since, until.Add(25 * time.Hour), ""},
		{time.Time{}, until.Add(time.Hour), "; last paused until 2026-01-05 11:00:00 by grace: incident 7; resumed by bo: it is over"},
	} {
		o := view.Overview{Queue: "main", LastPause: &view.PauseOver{Pause: view.Pause{Who: "grace", Why: "incident 7", Since: c.since}, Until: until, ResumedBy: "bo", ResumedWhy: "it is over"}}
		if got, want := queueLine(o, c.at), queueLine(view.Overview{Queue: "main"}, c.at)+c.want; got != want {
			t.Errorf("at %v it says %q, want %q", c.at, got, want)
		}
	}
}
