package client

import (
	"strings"
	"testing"
	"time"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/health"
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
	f.SetServices(health.Report{
		Instances:  []health.Instance{{Service: "lander", Instance: "core-1", Alive: true}},
		Partitions: []health.Ownership{{Service: "lander", Queues: []string{"main"}, Instance: "core-1", Term: 7, Since: apitest.Start, State: health.StateWorking, BehindRecords: 4}},
	})
	for _, c := range [][]string{{then, "lander 0 main core-1 7 1 s claimed -"}, {apitest.Start.Add(-time.Second).Format(time.RFC3339), "lander 0 main - - - unowned 0"}} {
		past, problem, code := f.run("status", "--services", "--at", c[0])
		if code != 0 || !strings.HasPrefix(past, "as of 2026-01-05 ") || !strings.Contains(strings.Join(strings.Fields(past), " "), c[1]) || strings.Contains(past, "alive") {
			t.Errorf("status --services --at %s: %d %s\n%s", c[0], code, problem, past)
		}
	}
	if past, problem, code := f.run("analytics", "--at", then); code != 0 || !strings.HasPrefix(past, "as of 2026-01-05 ") {
		t.Errorf("analytics --at: %d %s\n%s", code, problem, past)
	}
	if _, problem, code := f.run("queue", "--at", "soon"); code == 0 || !strings.Contains(problem, "-10m") {
		t.Errorf("queue --at soon: %d %s", code, problem)
	}
}
