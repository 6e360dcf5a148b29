package client

import (
	"strings"
	"testing"
	"time"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/services/gateway/api/apitest"
)

func TestCommandsShowWhatWasThen(t *testing.T) {
	t.Chdir(t.TempDir())
	f := serve(t)
	f.Fold("main", events.TopicChanges, &eventsv1.MainlineMoved{To: apitest.Commit("main"), Initial: true})
	f.run("land", "a") // at the first second
	f.run("pause", "--why", "incident 7")
	then := apitest.Start.Add(time.Second).Format(time.RFC3339)
	for _, args := range [][]string{{"queue"}, {"status"}, {"status", "a"}, {"explain", "a"}} {
		now, _, _ := f.run(args...)
		past, problem, code := f.run(append(args, "--at", then)...)
		if code != 0 || !strings.HasPrefix(past, "as of 2026-01-05 ") || !strings.Contains(now, "incident 7") || strings.Contains(past, "incident 7") {
			t.Errorf("%v --at: %d %s\n%s\nand now\n%s", args, code, problem, past, now)
		}
	}
	if _, problem, code := f.run("explain", "a", "--full", "--at", then); code == 0 || !strings.Contains(problem, "landfall replay") {
		t.Errorf("explain --full of the past: %d %s", code, problem)
	}
	if _, problem, code := f.run("queue", "--at", "soon"); code == 0 || !strings.Contains(problem, "-10m") {
		t.Errorf("queue --at soon: %d %s", code, problem)
	}
}
