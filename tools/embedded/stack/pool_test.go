package stack_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/services/gateway/api"
	"landfall.build/services/gateway/view"
)

// TestSmallChangesPassALargeOneThatHasMoreStepsThanWorkers: four workers, a change of 41 steps, and then four others of one
// step each. Once a tree of theirs is made, no more steps of the large change start before theirs than there are workers.
// TestASmallChangeDoesNotWaitForAPlaceBehindLargeOnes: there are more large changes than builds that a queue once had places for.
func TestASmallChangeDoesNotWaitForAPlaceBehindLargeOnes(t *testing.T) {
	together(t)
	const workers, large, steps = 2, 6, 12
	r := newRepository(t)
	for i := range large {
		var manifest strings.Builder
		manifest.WriteString("targets:\n")
		for j := range steps {
			fmt.Fprintf(&manifest, "  - {name: large%d, kind: test, sources: [\"*.txt\"], steps: [{name: step, run: [sleep, \"0.3\"]}]}\n", j)
		}
		r.write(fmt.Sprintf("large%d/landfall.yaml", i), manifest.String())
	}
	r.commit("large folders")
	r.git("push", "-q", "origin", "main")
	r.step("small", "true")
	for i := range large {
		r.branch(fmt.Sprint("large", i), fmt.Sprintf("large%d/a.txt", i), "a\n")
	}
	r.branch("small", "small/a.txt", "a\n")
	config := configured(t, r, t.TempDir())
	config.Builder.Workers = workers
	q := config.Queues[queue]
	q.Workers, q.PoolWorkers = workers, workers
	config.Queues[queue] = q
	s, c := start(t, config)
	t.Cleanup(func() { s.Close() })
	for i := range large {
		land(t, c, fmt.Sprint("large", i), fmt.Sprint("large", i))
	}
	until(t, c, "large0", func(v view.Change) bool { return len(v.Builds) > 0 && v.Builds[0].StepsDone > 0 })
	land(t, c, "small", "small")
	expect(t, c, "small", "landed")
	landed := 0
	for i := range large {
		if until(t, c, fmt.Sprint("large", i), func(view.Change) bool { return true }).State == view.StateLanded {
			landed++
		}
	}
	if landed > 1 {
		t.Errorf("%d large changes landed before the small one", landed)
	}
	for i := range large {
		expect(t, c, fmt.Sprint("large", i), "landed")
	}
}

func TestSmallChangesPassALargeOneThatHasMoreStepsThanWorkers(t *testing.T) {
	together(t)
	const workers, many, others = 4, 41, 4
	r := newRepository(t)
	var manifest strings.Builder
	manifest.WriteString("targets:\n")
	for i := range many {
		fmt.Fprintf(&manifest, "  - {name: large%d, kind: test, sources: [\"*.txt\"], steps: [{name: step, run: [sleep, \"0.5\"]}]}\n", i)
	}
	r.write("large/landfall.yaml", manifest.String())
	r.commit("a large folder")
	r.git("push", "-q", "origin", "main")
	for i := range others {
		r.step(fmt.Sprint("small", i), "sleep 0.2")
	}
	r.branch("large", "large/a.txt", "a\n")
	for i := range others {
		r.branch(fmt.Sprint("small", i), fmt.Sprintf("small%d/a.txt", i), "a\n")
	}
	config := configured(t, r, t.TempDir())
	config.Builder.Workers = workers
	s, c := start(t, config)
	t.Cleanup(func() { s.Close() })

	land(t, c, "large", "large")
	until(t, c, "large", func(v view.Change) bool { return len(v.Builds) > 0 && v.Builds[0].StepsDone > 0 })
	for i := range others {
		land(t, c, fmt.Sprint("small", i), fmt.Sprint("small", i))
	}
	for i := range others {
		expect(t, c, fmt.Sprint("small", i), "landed")
	}
	expect(t, c, "large", "landed")

	prepared := map[string]int64{} // when the tree of each small change's first build was made
	for _, p := range records[*eventsv1.BuildPrepared](t, s, events.TopicBuilds) {
		if id := p.GetChange().GetChange(); strings.HasPrefix(id, "small") && prepared[id] == 0 {
			prepared[id] = p.FinishedUs
		}
	}
	ends := records[*eventsv1.StepFinished](t, s, events.TopicBuilds)
	for _, small := range ends {
		folder, _, _ := strings.Cut(strings.TrimPrefix(small.Target, "//"), ":")
		if prepared[folder] == 0 {
			continue
		}
		before := 0
		for _, f := range ends {
			if strings.HasPrefix(f.Target, "//large:") && f.StartedUs > prepared[folder] && f.StartedUs < small.StartedUs {
				before++
			}
		}
		if before > workers {
			t.Errorf("%d steps of the large change began after the tree of %s was made, and before its step", before, folder)
		}
	}
}

// TestAChangeThatIsMovedToTheFrontGetsAWorkerThoughAllAreBusy: the steps of the others would run until the gate opens, which it
// does only after the urgent change has landed. What was ended for it is run again, and blames nobody.
func TestAChangeThatIsMovedToTheFrontGetsAWorkerThoughAllAreBusy(t *testing.T) {
	together(t)
	const workers = 2
	r, gate := newRepository(t), newGate(t)
	for i := range workers {
		r.step(fmt.Sprint("long", i), gate.await())
	}
	r.step("hotfix", "true")
	for i := range workers {
		r.branch(fmt.Sprint("long", i), fmt.Sprintf("long%d/a.txt", i), "a\n")
	}
	r.branch("hotfix", "hotfix/a.txt", "a\n")
	config := configured(t, r, t.TempDir())
	config.Builder.Workers = workers
	s, c := start(t, config)
	t.Cleanup(func() { s.Close() })
	t.Cleanup(func() { gate.open(t) })
	for i := range workers {
		land(t, c, fmt.Sprint("long", i), fmt.Sprint("long", i))
	}
	for i := range workers {
		until(t, c, fmt.Sprint("long", i), func(v view.Change) bool {
			return len(v.Builds) > 0 && slices.ContainsFunc(v.Builds[0].Steps, func(s view.Step) bool { return s.State == view.StepRunning })
		})
	}
	land(t, c, "hotfix", "hotfix")
	if _, err := c.Steer(t.Context(), queue, "hotfix", "priority", api.SteerBody{Front: true}); err != nil {
		t.Fatal(err)
	}
	expect(t, c, "hotfix", "landed")
	gate.open(t)
	for i := range workers {
		expect(t, c, fmt.Sprint("long", i), "landed")
	}
	ended := 0
	for _, f := range records[*eventsv1.StepFinished](t, s, events.TopicBuilds) {
		if f.Outcome == eventsv1.StepOutcome_STEP_OUTCOME_ABORTED && strings.Contains(f.Reason, "moved to the front") {
			ended++
		}
	}
	if ended != 1 {
		t.Errorf("%d steps were ended for the urgent change, which has one", ended)
	}
}
