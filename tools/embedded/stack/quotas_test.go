package stack_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/services/gateway/view"
	"landfall.build/tools/client"
)

// TestAnAuthorWhoFloodsThePoolLeavesWorkersToOthers: Ada has more changes than the queue ranks, whose steps end only once the gate opens.
// It opens after Bob's changes, which come last, have landed.
func TestAnAuthorWhoFloodsThePoolLeavesWorkersToOthers(t *testing.T) {
	together(t)
	const workers, limit, floods, steps, others = 3, 2, 8, 3, 3
	r, gate := newRepository(t), newGate(t)
	for i := range floods {
		var manifest strings.Builder
		manifest.WriteString("targets:\n")
		for j := range steps {
			fmt.Fprintf(&manifest, "  - {name: t%d, kind: test, sources: [\"*.txt\"], steps: [{name: step, run: [sh, -c, %q]}]}\n", j, gate.await())
		}
		r.write(fmt.Sprintf("flood%d/landfall.yaml", i), manifest.String())
	}
	r.commit("large folders")
	r.git("push", "-q", "origin", "main")
	for i := range others {
		r.step(fmt.Sprint("small", i), "true")
	}
	for i := range floods {
		r.branch(fmt.Sprint("flood", i), fmt.Sprintf("flood%d/a.txt", i), "a\n")
	}
	for i := range others {
		r.branch(fmt.Sprint("small", i), fmt.Sprintf("small%d/a.txt", i), "a\n")
	}
	config := configured(t, r, t.TempDir())
	config.Builder.Workers = workers
	q := config.Queues[queue]
	q.PoolWorkers, q.Speculation.Candidates, q.Quotas.Author = workers, 4, new(limit)
	q.Base.Prove = "when_needed" // else workers that are idle would run her steps for the mainline
	config.Queues[queue] = q
	s, _ := start(t, config)
	t.Cleanup(func() { s.Close() })
	t.Cleanup(func() { gate.open(t) })
	as := func(who string) *client.Client {
		c, err := client.New(s.URL(), who)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	ada, bob := as("ada"), as("bob")
	for i := range floods {
		land(t, ada, fmt.Sprint("flood", i), fmt.Sprint("flood", i))
	}
	last := fmt.Sprint("flood", floods-1)
	waits := "It waits: ada has 2 of 2 steps running (quotas.author)."
	until(t, ada, last, func(v view.Change) bool { return v.Why == waits })
	for i := range others {
		land(t, bob, fmt.Sprint("small", i), fmt.Sprint("small", i))
		expect(t, bob, fmt.Sprint("small", i), "landed")
	}
	e, err := ada.Explain(t.Context(), queue, "flood1", false)
	if err != nil || e.Why != waits && (e.WaitingStep == nil || e.WaitingStep.Quota == nil || *e.WaitingStep.Quota != view.Quota{Of: "author", Name: "ada", Steps: limit, Running: limit}) {
		t.Errorf("explained: %v %+v %+v", err, e.Reasons, e.WaitingStep)
	}
	gate.open(t)
	for i := range floods {
		expect(t, ada, fmt.Sprint("flood", i), "landed")
	}

	type moment struct {
		us int64
		by int
	}
	var moments []moment
	for _, f := range records[*eventsv1.StepFinished](t, s, events.TopicBuilds) {
		if strings.HasPrefix(f.Target, "//flood") {
			moments = append(moments, moment{f.StartedUs, 1}, moment{f.FinishedUs, -1})
		}
	}
	slices.SortFunc(moments, func(a, b moment) int { return cmp.Or(cmp.Compare(a.us, b.us), cmp.Compare(a.by, b.by)) })
	running, most := 0, 0
	for _, m := range moments {
		running += m.by
		most = max(most, running)
	}
	if most != limit || len(moments) < 2*floods*steps {
		t.Errorf("at most %d of Ada's steps ran at the same time, %d ended", most, len(moments)/2)
	}
}
