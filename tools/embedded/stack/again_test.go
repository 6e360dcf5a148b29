package stack_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/services/gateway/view"
)

// TestNobodyIsRejectedForWhatHasChangedOutsideOfTheTree: M23c. //f0 has passed on the mainline, and then what its steps find elsewhere
// breaks: a change that fails is not rejected, and lands once that works again. One that fails by itself is rejected, after its target has
// passed on the mainline once more.
func TestNobodyIsRejectedForWhatHasChangedOutsideOfTheTree(t *testing.T) {
	together(t)
	r := newRepository(t)
	breaks, works := newGate(t), newGate(t)
	step := func(folder string) {
		r.write(folder+"/landfall.yaml", fmt.Sprintf(`targets: [{name: %s, kind: test, sources: ["*.txt"], steps: [{name: check, run: ["sh", "-c", "if %s && ! %s; then echo the service is away; exit 1; fi; ! grep -rn bug %s --include=*.txt"]}]}]`, folder, breaks.isOpen(), works.isOpen(), folder))
	}
	step("f0")
	r.commit("a step that needs a service")
	r.git("push", "-q", "origin", "main")
	s, c := start(t, configured(t, r, t.TempDir()))
	t.Cleanup(func() { s.Close() })
	await(t, "all targets of the mainline have passed", func() bool { return len(records[*eventsv1.StepFinished](t, s, events.TopicBuilds)) == folders })
	r.branch("guilty", "f0/guilty.txt", "a bug\n")
	land(t, c, "guilty", "guilty")
	expect(t, c, "guilty", "rejected")
	var order []string
	for _, f := range records[*eventsv1.StepFinished](t, s, events.TopicBuilds) {
		if f.Target == "//f0" {
			order = append(order, f.Outcome.String())
		}
	}
	if last := len(order) - 1; order[0] != eventsv1.StepOutcome_STEP_OUTCOME_PASSED.String() || order[last] != order[0] || order[last-1] != eventsv1.StepOutcome_STEP_OUTCOME_FAILED.String() {
		t.Errorf("the runs of //f0 are %v: it should have passed on the mainline before and after it failed with the change", order)
	}

	breaks.open(t)
	r.branch("red", "f0/c.txt", "a bug\n")
	land(t, c, "red", "red")
	r.branch("innocent", "f0/b.txt", "fine\n")
	land(t, c, "innocent", "innocent")
	v := until(t, c, "innocent", func(v view.Change) bool {
		if v.State == "rejected" {
			t.Fatalf("innocent is rejected: %s", v.Why)
		}
		return strings.Contains(v.Why, "//f0, which fails on the mainline too by now, without this change; it passed there at ") &&
			strings.HasSuffix(v.Why, "Once that is back, `landfall retry innocent` runs it there again; a commit to its own files does so by itself.")
	})
	if v.Failure == nil || !strings.Contains(v.Failure.Sentence, "fails there now: not your change: ended with exit code 1: the service is away") {
		t.Errorf("its failure reads %+v", v.Failure)
	}
	if q, err := c.Queues(t.Context()); err != nil || !slices.Equal(q[0].MainlineRed, []string{"//f0"}) || len(q[0].RedBeforeQueue) > 0 {
		t.Errorf("the mainline is not red in //f0, or has been since before the queue: %+v (%v)", q, err)
	}
	until(t, c, "red", func(v view.Change) bool { return strings.Contains(v.Why, "which fails on the mainline too by now") })
	works.open(t)
	prints(t, s.URL(), "retry", "red") // what failed in innocent meanwhile is not held against it
	expect(t, c, "red", "rejected")
	expect(t, c, "innocent", "landed")
}

// TestWhatLandedRedUnseenIsNotHeldAgainstTheNext: the steps of //f0 read a file that no target covers and that is ignored. A change of it
// lands and breaks //f0, which nothing notices; the next change of //f0 is not rejected for it.
func TestWhatLandedRedUnseenIsNotHeldAgainstTheNext(t *testing.T) {
	together(t)
	r := newRepository(t)
	r.write("f0/landfall.yaml", `targets: [{name: f0, kind: test, sources: ["*.txt"], steps: [{name: check, run: ["sh", "-c", "grep -n ok NOTES"]}]}]`)
	r.write("NOTES", "ok\n")
	r.commit("a step that reads more than it says")
	r.git("push", "-q", "origin", "main")
	config := configured(t, r, t.TempDir())
	q := config.Queues[queue]
	q.Analysis.Uncovered.Ignore = []string{"NOTES"}
	config.Queues[queue] = q
	s, c := start(t, config)
	t.Cleanup(func() { s.Close() })
	await(t, "all targets of the mainline have passed", func() bool { return len(records[*eventsv1.StepFinished](t, s, events.TopicBuilds)) == folders })
	r.branch("unseen", "NOTES", "no more\n")
	land(t, c, "unseen", "unseen")
	expect(t, c, "unseen", "landed")
	r.git("fetch", "-q")
	r.git("reset", "-q", "--hard", "origin/main")
	r.branch("next", "f0/b.txt", "fine\n")
	land(t, c, "next", "next")
	until(t, c, "next", func(v view.Change) bool {
		if v.State == "rejected" {
			t.Fatalf("next is rejected: %s", v.Why)
		}
		return strings.Contains(v.Why, "fails on the mainline too by now, without this change")
	})
	// What is repaired in the same unseen way is found by a retry, which runs on the present head.
	r.git("checkout", "-q", "-B", "repair", "origin/main")
	r.write("NOTES", "ok\n")
	r.commit("repair")
	r.git("push", "-q", "origin", "repair")
	land(t, c, "repair", "repair")
	expect(t, c, "repair", "landed")
	prints(t, s.URL(), "retry", "next")
	expect(t, c, "next", "landed")
}
