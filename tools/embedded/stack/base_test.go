package stack_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/services/gateway/api"
	"landfall.build/services/gateway/view"
	"landfall.build/tools/embedded/stack"
)

// TestARunOnTheMainlineThatEndsByItsLimitSaysSo: //f0 has passed on the mainline, and then what its steps ask never answers. A change that
// fails in it is told what became of the run on the mainline: that it ran out of time, after how long, where, its last lines, and where
// the rest is.
func TestARunOnTheMainlineThatEndsByItsLimitSaysSo(t *testing.T) {
	together(t)
	r := newRepository(t)
	hangs := newGate(t)
	r.write("f0/landfall.yaml", fmt.Sprintf(`targets: [{name: f0, kind: test, sources: ["*.txt"], steps: [{name: check, run: ["sh", "-c", "! grep -rn bug f0 --include=*.txt || exit 1; if %s; then echo connecting to db.example; sleep 60; fi"]}]}]`, hangs.isOpen()))
	r.commit("a step that asks a service")
	r.git("push", "-q", "origin", "main")
	config := configured(t, r, t.TempDir())
	q := config.Queues[queue]
	q.Steps.Timeout = 5 * time.Second
	config.Queues[queue] = q
	s, c := start(t, config)
	t.Cleanup(func() { s.Close() })
	await(t, "all targets of the mainline have passed", func() bool { return len(records[*eventsv1.StepFinished](t, s, events.TopicBuilds)) == folders })
	hangs.open(t)
	r.branch("guilty", "f0/guilty.txt", "a bug\n")
	land(t, c, "guilty", "guilty")
	v := until(t, c, "guilty", func(v view.Change) bool { return strings.Contains(v.Why, "`landfall retry guilty`") })
	head := events.ShortID(r.run(r.bare, "git", "rev-parse", "main"))
	if want := "It fails in //f0, and whether without this change too is not known: //f0 ran out of time on the mainline at " + head + ": Command \"check\" ran longer than its limit of 5s: connecting to db.example. It passed there at "; !strings.HasPrefix(v.Why, want) ||
		!strings.HasSuffix(v.Why, " UTC. `landfall logs --target '//f0'` prints the output. Once what it needs is back, or its time limit is raised, `landfall retry guilty` runs it there again.") {
		t.Errorf("it waits for %q", v.Why)
	}
	if want := "//f0 fails; whether without your change too is not known, since //f0 ran out of time on the mainline at " + head + ", and `landfall retry guilty` tries again there: f0/guilty.txt:1:a bug"; v.Failure == nil || v.Failure.Sentence != want {
		t.Errorf("its failure reads %+v, not %q", v.Failure, want)
	}
	if text := prints(t, s.URL(), "status"); !strings.Contains(text, "  unproven  //f0, step check: Command \"check\" ran longer than its limit of 5s: connecting to db.example\n  more      landfall logs --target '//f0'\n") {
		t.Errorf("the queue reads %s", text)
	}
	if text := prints(t, s.URL(), "logs", "--target", "//f0"); !strings.HasPrefix(text, "==> //f0, attempt 4: timed_out\nconnecting to db.example\n") {
		t.Errorf("its output there reads %s", text)
	}
}

// TestWhatTheWorldMadeRedOnTheMainlineIsVerifiedAgainWithoutAChange: a service that a step needs is away while the base is proven. No
// change is pending when it is back.
func TestWhatTheWorldMadeRedOnTheMainlineIsVerifiedAgainWithoutAChange(t *testing.T) {
	together(t)
	r := newRepository(t)
	back := newGate(t)
	r.step("f0", back.isOpen()+" || { echo the service is away; exit 1; }")
	s, c := start(t, configured(t, r, t.TempDir()))
	t.Cleanup(func() { s.Close() })
	red := func() []string {
		all, err := c.Queues(t.Context())
		if err != nil || len(all) != 1 {
			t.Fatal(all, err)
		}
		return all[0].MainlineRed
	}
	await(t, "the mainline is red", func() bool { return slices.Equal(red(), []string{"//f0"}) })
	back.open(t)
	if text := prints(t, s.URL(), "retry", "--mainline"); text != "queue main: What failed on the mainline in //f0 no longer counts; it is verified again.\n" {
		t.Errorf("it says %q", text)
	}
	await(t, "it has passed", func() bool {
		return slices.ContainsFunc(records[*eventsv1.StepFinished](t, s, events.TopicBuilds), func(f *eventsv1.StepFinished) bool {
			return f.Target == "//f0" && f.Outcome == eventsv1.StepOutcome_STEP_OUTCOME_PASSED
		})
	})
	if list := red(); len(list) > 0 {
		t.Errorf("red are %v", list)
	}
	if _, err := c.Steer(t.Context(), queue, "", "retry", api.SteerBody{}); err == nil || !strings.Contains(err.Error(), "Nothing is known to fail on the mainline") {
		t.Errorf("once more: %v", err)
	}
}

// TestAKillChangesNothingOfWhatIsTold: of a change that waits because the mainline has become red, and of one that was rejected after the
// mainline had passed once more, the same is told after a kill, whether the gateway begins with a snapshot or with the log alone.
func TestAKillChangesNothingOfWhatIsTold(t *testing.T) {
	together(t)
	r := newRepository(t)
	breaks := newGate(t)
	r.write("f0/landfall.yaml", fmt.Sprintf(`targets: [{name: f0, kind: test, sources: ["*.txt"], steps: [{name: check, run: ["sh", "-c", "if %s; then echo the service is away; exit 1; fi; ! grep -rn bug f0 --include=*.txt"]}]}]`, breaks.isOpen()))
	r.commit("a step that needs a service")
	r.git("push", "-q", "origin", "main")
	config := configured(t, r, t.TempDir())
	config.Snapshots.After, config.Snapshots.Every = 10, time.Second
	s, c := start(t, config)
	t.Cleanup(func() { s.Close() })
	await(t, "all targets of the mainline have passed", func() bool { return len(records[*eventsv1.StepFinished](t, s, events.TopicBuilds)) == folders })
	r.branch("guilty", "f0/guilty.txt", "a bug\n")
	land(t, c, "guilty", "guilty")
	expect(t, c, "guilty", "rejected")
	breaks.open(t)
	r.branch("innocent", "f0/b.txt", "fine\n")
	land(t, c, "innocent", "innocent")
	until(t, c, "innocent", func(v view.Change) bool {
		return strings.Contains(v.Why, "it passed there at ") && strings.Contains(v.Failure.Sentence, "the service is away")
	})
	await(t, "the gateway has kept a snapshot", func() bool {
		found, err := filepath.Glob(filepath.Join(config.Data, "snapshots", "gateway-*.snapshot"))
		return err == nil && len(found) > 0
	})
	told := func(s *stack.Stack) string {
		text := ""
		for _, change := range []string{"innocent", "guilty"} {
			text += prints(t, s.URL(), "explain", change, "--json") + prints(t, s.URL(), "status", change, "--json")
		}
		return text + prints(t, s.URL(), "status", "--json") + prints(t, s.URL(), "logs")
	}
	before := told(s)
	image := t.TempDir() // what a kill leaves
	if err := os.CopyFS(image, os.DirFS(config.Data)); err != nil {
		t.Fatal(err)
	}
	s.Close()
	for _, snapshots := range []bool{true, false} {
		again := *config
		again.Data = filepath.Join(t.TempDir(), "data")
		if err := os.CopyFS(again.Data, os.DirFS(image)); err != nil {
			t.Fatal(err)
		}
		if !snapshots {
			if err := os.RemoveAll(filepath.Join(again.Data, "snapshots")); err != nil {
				t.Fatal(err)
			}
		}
		s, c := start(t, &again)
		until(t, c, "innocent", func(v view.Change) bool { return strings.Contains(v.Why, "`landfall retry innocent`") })
		if after := told(s); after != before {
			t.Errorf("with snapshots %t it is told otherwise:\n%s\nbefore:\n%s", snapshots, after, before)
		}
		s.Close()
	}
}
