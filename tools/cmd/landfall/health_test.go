package main

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"landfall.build/events"
	"landfall.build/platform/health"
	"landfall.build/tools/pipeline"
)

// missing is what people read of a service that was killed.
var missing = map[string]string{
	events.ServiceAnalyzer:    "No analyzer has been alive for ",
	events.ServiceEnumerator:  "No enumerator has owned partition 0 (queue shop) for ",
	events.ServiceProfiler:    "No profiler has owned partition 0 (queue shop) for ",
	events.ServicePrioritizer: "No prioritizer has owned partition 0 (queue shop) for ",
	events.ServiceSelector:    "No selector has owned partition 0 (queue shop) for ",
	events.ServiceBuilder:     "No builder has been alive for ",
	events.ServiceLander:      "No lander has owned partition 0 (queue shop) for ",
}

// TestAServiceThatWasKilledIsMissed: with real processes, the sentence stands in queue, status and explain, no estimate is given, and
// it is gone once the service is back.
func TestAServiceThatWasKilledIsMissed(t *testing.T) {
	d := deploy(t)
	d.land("first")
	out, code := d.command("status", "--services")
	if code != 0 || strings.Contains(out, "MISSING") {
		t.Errorf("all are alive: exit code %d\n%s", code, out)
	}
	for _, name := range killable() {
		if !strings.Contains(out, name) {
			t.Errorf("no %s in\n%s", name, out)
		}
	}

	// The lander alone, while a change waits for it.
	d.kill(events.ServiceLander)
	if out, code := d.command("land", "second"); code != 0 {
		t.Fatal(out)
	}
	sentence := missing[events.ServiceLander]
	d.says([]string{"queue"}, "MISSING: "+sentence, "unknown", "; nothing lands until one does.")
	d.says([]string{"status"}, sentence)
	d.says([]string{"status", "second"}, sentence)
	d.says([]string{"explain", "second"}, sentence, "no estimate: no lander has owned")

	// Then all others but the gateway.
	var sentences []string
	for _, name := range killable() {
		if name != events.ServiceLander {
			d.kill(name)
		}
		sentences = append(sentences, missing[name])
	}
	d.says([]string{"status", "--services"}, sentences...)
	out, code = d.command("status", "--services", "--json")
	var r health.Report
	if err := json.Unmarshal([]byte(out), &r); err != nil || code != 1 || len(r.Missing) != len(sentences) {
		t.Errorf("exit code %d, %v: %s", code, err, out)
	}

	for _, name := range killable() {
		d.start(name)
	}
	d.await("nothing is missing", func() (bool, string) {
		out, code := d.command("status", "--services")
		return code == 0, out
	})
	if out, code := d.command("watch", "second"); code != 0 {
		t.Errorf("the change does not land afterwards (%d): %s", code, out)
	}
	if out, _ := d.command("queue"); strings.Contains(out, "MISSING") {
		t.Error(out)
	}
}

// TestABrokerThatIsAwayMakesEveryServiceUnready, with one line in each log each time; the gateway goes on showing what it has read.
func TestABrokerThatIsAwayMakesEveryServiceUnready(t *testing.T) {
	d := deploy(t)
	d.land("first")
	// One that hangs is as good as away.
	if err := d.fleet.Stop("broker"); err != nil {
		t.Fatal(err)
	}
	for _, name := range pipeline.Services() {
		d.awaitReady(name, false)
	}
	if err := d.fleet.Resume("broker"); err != nil {
		t.Fatal(err)
	}
	for _, name := range pipeline.Services() {
		d.awaitReady(name, true)
	}
	d.kill("broker")
	for _, name := range pipeline.Services() {
		if body := d.awaitReady(name, false); !strings.Contains(body, "the broker has not answered for ") {
			t.Errorf("%s: %s", name, body)
		}
		if status, _ := d.get(name, "/livez"); status != 200 {
			t.Errorf("%s: livez is %d", name, status)
		}
	}
	d.says([]string{"queue"}, "The log's broker has not answered the gateway for ")
	if out, _ := d.command("queue", "--state", "landed"); !strings.Contains(out, "first") {
		t.Errorf("what was read is not shown: %s", out)
	}
	d.launch("broker", "broker", "--config", d.config(), "--log-level", "info")
	for _, name := range pipeline.Services() {
		d.awaitReady(name, true)
		log, err := os.ReadFile(d.fleet.LogFile(name))
		if err != nil {
			t.Fatal(err)
		}
		// It was away twice; of the second time the log may say no more than that it is over, a warning of one kind being written once a minute.
		away, back := strings.Count(string(log), "the broker does not answer"), strings.Count(string(log), "the broker answers again")
		if away < 1 || away > 2 || back != 2 {
			t.Errorf("%s logged %d times that the broker is away, and %d times that it is back", name, away, back)
		}
	}
	d.land("second")
}
