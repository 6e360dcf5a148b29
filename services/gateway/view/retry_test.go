package view_test

import (
	"fmt"
	"strings"
	"testing"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/services/gateway/api/apitest"
	"landfall.build/services/gateway/view"
)

// onMainline folds a build of the mainline itself.
func (b *blame) onMainline(id, target string, outcome eventsv1.StepOutcome) {
	hash := apitest.VersionOf(id, target)
	b.Fold(main, events.TopicBuilds, &eventsv1.BuildPrepared{Build: id, Base: "m", Outcome: eventsv1.PreparationOutcome_PREPARATION_OUTCOME_PREPARED,
		Versions: []*eventsv1.TargetVersion{{Target: target, Hash: hash}}})
	for n := range uint32(2) {
		b.Fold(main, events.TopicBuilds, &eventsv1.StepFinished{Target: target, Hash: hash, Attempt: n + 1, Outcome: outcome, Build: id})
	}
}

// check folds what is known of a target on the mainline.
func (b *blame) check(id, target string, state eventsv1.OutcomeState) {
	class := &eventsv1.Class{Targets: []*eventsv1.TargetVersion{{Target: target, Hash: apitest.VersionOf(id, target)}}}
	if state != 0 {
		class.Outcomes = []*eventsv1.Outcome{{State: state, Version: class.Targets[0]}}
	}
	b.Graph(main, &eventsv1.GraphDelta{Nodes: []*eventsv1.Node{{Mainline: true, Change: &eventsv1.ChangeRef{}, Classes: []*eventsv1.Class{class}, Inherited: []string{target}}}})
}

// TestARedMainlineSaysWhy: the last failure of each red target, with its decisive lines, and its runs for their output. Of others
// it has no failure.
func TestARedMainlineSaysWhy(t *testing.T) {
	b := newBlame(t, "c")
	b.onMainline("m0", "//other", stepPassed)
	b.onMainline("m1", "//x", stepFailed)
	hash := apitest.VersionOf("m1", "//x")
	b.Fold(main, events.TopicBuilds, &eventsv1.StepFinished{Target: "//x", Hash: hash, Attempt: 3, Outcome: stepFailed, Build: "m1", FailedCommand: "test",
		Decisive: []string{"x/a.go:12: want 3, got 4", "second line"}, Log: "main/x.log"})
	failures := func() (out []view.Step) {
		b.Read(main, func(q *view.Queue) { out = q.Overview().MainlineFailures })
		return out
	}
	if got := failures(); len(got) != 0 {
		t.Errorf("failures before the mainline is known to be red: %+v", got)
	}
	b.check("m1", "//x", red)
	got := failures()
	if len(got) != 1 || got[0].Target != "//x" || got[0].Attempt != 3 || got[0].FailedCommand != "test" || strings.Join(got[0].Lines, "|") != "x/a.go:12: want 3, got 4|second line" {
		t.Errorf("failures: %+v", got)
	}
	b.Read(main, func(q *view.Queue) {
		var said []string
		for _, a := range q.MainlineAttempts() {
			said = append(said, fmt.Sprintf("%s#%d %s", a.Target, a.Number, a.Outcome))
		}
		if want := "[//x#3 failed //x#1 failed //x#2 failed //other#1 passed //other#2 passed]"; fmt.Sprint(said) != want {
			t.Errorf("attempts %v, want %s", said, want)
		}
	})
	b.check("m1", "//x", eventsv1.OutcomeState_OUTCOME_STATE_GREEN)
	if got := failures(); len(got) != 0 {
		t.Errorf("failures of a green mainline: %+v", got)
	}
}

// TestARetryNamesWhatKeepsAChangeBlocked: the last failure of the mainline's version and of the change's, and of no other target.
func TestARetryNamesWhatKeepsAChangeBlocked(t *testing.T) {
	b := newBlame(t, "c")
	expect := func(targets, failed, why string) {
		t.Helper()
		b.Read(main, func(q *view.Queue) {
			block := q.BlockOf("c")
			var got []string
			for _, p := range block.Failed {
				got = append(got, fmt.Sprintf("%s@%s#%d", p.Version.Target, p.Version.Hash, p.Attempt))
			}
			if strings.Join(block.Targets, " ") != targets || strings.Join(got, " ") != failed {
				t.Errorf("blocked in %v by %v, want %s by %s", block.Targets, got, targets, failed)
			}
			if s, _ := q.Summary("c"); !strings.Contains(s.Why, why) {
				t.Errorf("%q lacks %q", s.Why, why)
			}
		})
	}
	b.onMainline("m0", "//other", stepFailed)
	b.build("b1", "c", "m", nil, []string{"//x"}, []eventsv1.StepOutcome{stepFailed})
	own := "//x@" + apitest.VersionOf("b1", "//x") + "#1"
	b.check("m1", "//x", 0)
	b.node("c", nil, blocked, 0, "b1", "//x")
	expect("//x", own, "being verified")
	b.Fold(main, events.TopicBuilds, &eventsv1.StepFinished{Target: "//x", Hash: apitest.VersionOf("m1", "//x"), Attempt: 1, Outcome: eventsv1.StepOutcome_STEP_OUTCOME_ABORTED, Build: "m1"})
	expect("//x", own, "being verified")
	b.Read(main, func(q *view.Queue) {
		if q.BlockOf("c").OnMainline {
			t.Error("a version of the mainline is named before it failed")
		}
	})
	b.onMainline("m1", "//x", stepFailed)
	b.check("m1", "//x", red)
	expect("//x", own+" //x@"+apitest.VersionOf("m1", "//x")+"#2", "red on the mainline since before the queue; nobody is rejected for that. Once a commit repairs it, there or in this change, it goes on by itself. If it failed by chance, or for something outside of the tree that is mended by now, `landfall retry c`")
	b.node("c", nil, red, 0, "b1", "//x")
	expect("", "", "")
}

// TestWhatCouldNotBeVerifiedOnTheMainlineIsSaid: its steps ran out of time there, so nothing more comes of it.
func TestWhatCouldNotBeVerifiedOnTheMainlineIsSaid(t *testing.T) {
	b := newBlame(t, "c")
	b.onMainline("m1", "//x", eventsv1.StepOutcome_STEP_OUTCOME_TIMED_OUT)
	b.Graph(main, &eventsv1.GraphDelta{Builds: []*eventsv1.BuildProgress{{Build: "m1", State: eventsv1.BuildState_BUILD_STATE_FINISHED}}})
	b.build("b1", "c", "m", nil, []string{"//x"}, []eventsv1.StepOutcome{stepFailed})
	b.node("c", nil, blocked, 0, "b1", "//x")
	b.Read(main, func(q *view.Queue) {
		if s, _ := q.Summary("c"); !strings.Contains(s.Why, "whether without this change too is not known: //x ran out of time on the mainline at m.") || !strings.HasSuffix(s.Why, "`landfall retry c` runs it there again.") {
			t.Errorf("%q", s.Why)
		}
		if got := q.Overview().NeedRetry; len(got) != 1 || got[0] != "c" {
			t.Errorf("the queue says that %v need a retry", got)
		}
	})
	b.check("m1", "//x", red)
	b.Read(main, func(q *view.Queue) {
		if got := q.Overview().NeedRetry; len(got) != 0 {
			t.Errorf("of a red mainline it says that %v need a retry", got)
		}
	})
}

// TestWhatTheMainlineFailsInCanBeRetriedHoweverMuchRanSince: the run that made it red is kept while it does.
func TestWhatTheMainlineFailsInCanBeRetriedHoweverMuchRanSince(t *testing.T) {
	limits := view.Limits{Finished: 10, Builds: 20, Attempts: 8, TailBytes: 1000}
	q := view.New(main, limits)
	version := &eventsv1.TargetVersion{Target: "//x", Hash: "h"}
	check := func(state eventsv1.OutcomeState) {
		class := &eventsv1.Class{Targets: []*eventsv1.TargetVersion{version}, Outcomes: []*eventsv1.Outcome{{State: state, Version: version}}}
		put(q, events.TopicProfiles, &eventsv1.Profile{Delta: &eventsv1.GraphDelta{Nodes: []*eventsv1.Node{{Mainline: true, Change: &eventsv1.ChangeRef{}, Classes: []*eventsv1.Class{class}}}}})
	}
	runs := 0
	run := func(n int) {
		for range n {
			runs++
			put(q, events.TopicBuilds, &eventsv1.StepFinished{Target: "//t", Hash: fmt.Sprint(runs), Attempt: 1, Outcome: stepFailed, Build: "b", FinishedUs: int64(runs)})
		}
	}
	for n := range uint32(2) {
		put(q, events.TopicBuilds, &eventsv1.StepFinished{Target: "//x", Hash: "h", Attempt: n + 1, Outcome: stepFailed, Build: "m"})
		run(3)
	}
	check(red)
	for n := range 100 {
		run(1)
		restored, err := view.Restore(q.Snapshot(), main, limits)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := fmt.Sprint(restored.Overview().MainlineFailures), fmt.Sprint(q.Overview().MainlineFailures); got != want {
			t.Fatalf("after %d other runs, restored:\n%s\nwant\n%s", n+1, got, want)
		}
	}
	failed, unread := q.MainlineFailed()
	if len(failed) != 1 || failed[0].Version.Target != "//x" || failed[0].Attempt != 2 || unread {
		t.Errorf("while the mainline is red in //x: %v (unread: %v)", failed, unread)
	}
	put(q, events.TopicProfiles, &eventsv1.Profile{Delta: &eventsv1.GraphDelta{Nodes: []*eventsv1.Node{{Mainline: true, Change: &eventsv1.ChangeRef{}}}}})
	run(100)
	check(red)
	if failed, unread := q.MainlineFailed(); len(failed) != 0 || !unread {
		t.Errorf("runs of a mainline that was mended are kept: %v", failed)
	}
}
