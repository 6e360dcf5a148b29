package view_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/services/gateway/api/apitest"
	"landfall.build/services/gateway/view"
)

// TestWhatAffectsEverythingIsHeldToEveryRedTarget: a change that is verified as the whole repository waits for the mainline's own red
// targets. They are named, wherever its state is told; if the command that failed is of another target, nobody is blamed yet.
func TestWhatAffectsEverythingIsHeldToEveryRedTarget(t *testing.T) {
	const whole = "//:repository"
	for _, c := range []struct {
		name, command string
		state         string
		whose         string
		fault, why    string
	}{
		{"red before the queue", "//tests [test] pytest", "", view.WhoseMainline,
			"//tests [test] has been red on the mainline since before the queue: not your change: exit code 2",
			"It fails in //:repository, and //tests [test] has been red on the mainline since before the queue; nobody is rejected for that. Once a commit repairs it, there or in this change, it goes on by itself. If it failed by chance, or for something outside of the tree that is mended by now, `landfall retry c` runs it again there."},
		{"the whole is red too", "//tests [test] pytest", "whole", view.WhoseMainline,
			"//tests [test] has been red on the mainline since before the queue: not your change: exit code 2",
			"It fails in //:repository, and //tests [test] has been red on the mainline since before the queue; nobody is rejected for that. Once a commit repairs it, there or in this change, it goes on by itself. If it failed by chance, or for something outside of the tree that is mended by now, `landfall retry c` runs it again there."},
		{"red after something landed", "//tests [test] pytest", "moved", view.WhoseMainline,
			"//tests [test] has been red on the mainline since before the queue: not your change: exit code 2",
			"It fails in //:repository, and //tests [test] has been red on the mainline since before the queue; nobody is rejected for that. Once a commit repairs it, there or in this change, it goes on by itself. If it failed by chance, or for something outside of the tree that is mended by now, `landfall retry c` runs it again there."},
		{"red since trees are read in another way", "//tests [test] pytest", "reread", view.WhoseMainline,
			"//tests [test] is red on the mainline, and nothing proves that it was green there: not your change: exit code 2",
			"It fails in //:repository, and //tests [test] is red on the mainline, and nothing proves that it was green there; nobody is rejected for that. Once a commit repairs it, there or in this change, it goes on by itself. If it failed by chance, or for something outside of the tree that is mended by now, `landfall retry c` runs it again there."},
		{"the whole alone is red after something landed", "//:repository", "moved whole", view.WhoseMainline,
			"//:repository is red on the mainline, and nothing proves that it was green there: not your change: exit code 2",
			"It fails in //:repository, which is red on the mainline, and nothing proves that it was green there; nobody is rejected for that. Once a commit repairs it, there or in this change, it goes on by itself. If it failed by chance, or for something outside of the tree that is mended by now, `landfall retry c` runs it again there."},
		{"broken by a push", "//tests [test] pytest", "pushed", view.WhoseMainline,
			"a direct push broke //tests [test] on the mainline: not your change: exit code 2",
			"A direct push broke //tests [test] on the mainline itself; the change waits until that is repaired. If it failed by chance, or for something outside of the tree that is mended by now, `landfall retry c` runs it again there."},
		{"fails elsewhere", "//app test", "", view.WhoseUnknown,
			"//:repository fails; whether without your change too is not known while the mainline is red in //tests [test]: exit code 2",
			"It fails in //:repository, and //tests [test] has been red on the mainline since before the queue; nobody is rejected for that. Once a commit repairs it, there or in this change, it goes on by itself. If it failed by chance, or for something outside of the tree that is mended by now, `landfall retry c` runs it again there."},
		{"fails in the tests of what is red", "//tests [test] [test] pytest", "", view.WhoseUnknown,
			"//:repository fails; whether without your change too is not known while the mainline is red in //tests [test]: exit code 2",
			"It fails in //:repository, and //tests [test] has been red on the mainline since before the queue; nobody is rejected for that. Once a commit repairs it, there or in this change, it goes on by itself. If it failed by chance, or for something outside of the tree that is mended by now, `landfall retry c` runs it again there."},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBlame(t, "k", "c")
			if b.Fold(main, events.TopicChanges, &eventsv1.MainlineMoved{To: apitest.Commit("main"), Initial: true}); strings.HasPrefix(c.state, "moved") {
				b.build("b0", "k", apitest.Commit("main"), nil, []string{"//k"}, []eventsv1.StepOutcome{stepPassed})
				b.LandIt(main, "k", "b0", nil, "//k")
			}
			b.onMainline("m1", "//tests [test]", stepFailed)
			b.Graph(main, &eventsv1.GraphDelta{Builds: []*eventsv1.BuildProgress{{Build: "m1", State: eventsv1.BuildState_BUILD_STATE_FINISHED}}})
			b.check("m1", "//tests [test]", red)
			if c.state == "reread" {
				b.Fold(main, events.TopicChanges, &eventsv1.MainlineSurveyed{Commit: apitest.Commit("main"), Reading: "another", Again: true})
			}
			if c.state == "moved whole" {
				b.Graph(main, &eventsv1.GraphDelta{Nodes: []*eventsv1.Node{{Mainline: true, Change: &eventsv1.ChangeRef{}, Inherited: []string{whole}, Classes: []*eventsv1.Class{{Outcomes: []*eventsv1.Outcome{
					{State: red, Version: &eventsv1.TargetVersion{Target: whole, Hash: "w"}}}}}}}})
			}
			if c.state == "whole" {
				whole := &eventsv1.Class{Outcomes: []*eventsv1.Outcome{{State: red, Version: &eventsv1.TargetVersion{Target: whole, Hash: "w"}}}}
				tests := &eventsv1.Class{Outcomes: []*eventsv1.Outcome{{State: red, Version: &eventsv1.TargetVersion{Target: "//tests [test]", Hash: apitest.VersionOf("m1", "//tests [test]")}}}}
				b.Graph(main, &eventsv1.GraphDelta{Nodes: []*eventsv1.Node{{Mainline: true, Change: &eventsv1.ChangeRef{}, Classes: []*eventsv1.Class{whole, tests},
					Inherited: []string{"//:repository", "//tests [test]"}}}})
			}
			if c.state == "pushed" {
				b.Graph(main, &eventsv1.GraphDelta{Nodes: []*eventsv1.Node{{Mainline: true, Change: &eventsv1.ChangeRef{}, Classes: []*eventsv1.Class{{Outcomes: []*eventsv1.Outcome{
					{State: red, Version: &eventsv1.TargetVersion{Target: "//tests [test]", Hash: apitest.VersionOf("m1", "//tests [test]")}}}}}}}})
			}
			b.Schedule(main, "b1", "c", nil, whole)
			b.Prepare(main, "b1", "c", whole)
			b.Fold(main, events.TopicBuilds, &eventsv1.StepFinished{Target: whole, Hash: apitest.VersionOf("b1", whole), Attempt: 1, Outcome: stepFailed, Build: "b1",
				FailedCommand: c.command, Reason: "exit code 2"})
			b.node("c", nil, blocked, 0, "b1", whole)
			b.expect("c", whole, c.whose, nil, c.fault)
			b.Read(main, func(q *view.Queue) {
				if s, _ := q.Summary("c"); s.Why != c.why {
					t.Errorf("it waits for: %s\nwant: %s", s.Why, c.why)
				}
				if known := len(q.Overview().RedBeforeQueue) > 0; known == slices.Contains([]string{"pushed", "moved whole", "reread"}, c.state) {
					t.Errorf("red before the queue: %v", known)
				}
			})
		})
	}
}

// TestATargetWaitsForARedWholeRepository: the mainline was verified as the whole repository.
func TestATargetWaitsForARedWholeRepository(t *testing.T) {
	b := newBlame(t, "c")
	b.onMainline("m1", "//:repository", stepFailed)
	b.check("m1", "//:repository", red)
	b.build("b1", "c", "m", nil, []string{"//x"}, []eventsv1.StepOutcome{stepFailed})
	b.node("c", nil, blocked, 0, "b1", "//x")
	b.expect("c", "//x", view.WhoseUnknown, nil, "//x fails; whether without your change too is not known while the mainline is red in //:repository: x/a.go:12: want 3, got 4")
	b.Read(main, func(q *view.Queue) {
		if s, _ := q.Summary("c"); !strings.HasPrefix(s.Why, "It fails in //x, and //:repository has been red on the mainline since before the queue;") {
			t.Error(s.Why)
		}
	})
}

// TestTheBuildOfABlockedChangeIsToldFirst: it is on top of what may repair the mainline.
func TestTheBuildOfABlockedChangeIsToldFirst(t *testing.T) {
	b := newBlame(t, "fix", "c")
	b.onMainline("m1", "//x", stepFailed)
	b.check("m1", "//x", red)
	b.build("b1", "c", "m", nil, []string{"//x"}, []eventsv1.StepOutcome{stepFailed})
	b.node("c", []string{"fix"}, blocked, 0, "b1", "//x")
	b.Schedule(main, "b2", "c", []string{"fix"}, "//x")
	b.Read(main, func(q *view.Queue) {
		e, _ := q.Explain("c")
		var said []string
		for _, r := range e.Reasons {
			said = append(said, r.Code)
		}
		want := "[building mainline_red ahead]"
		if fmt.Sprint(said) != want || e.Why != "Its build is being prepared, assuming that fix lands." {
			t.Errorf("%v: %s; want %s", said, e.Why, want)
		}
	})
}

// TestAnAssumptionThatHasComeAboutIsNotTold: of what a running build assumes, only what is still to land is named.
func TestAnAssumptionThatHasComeAboutIsNotTold(t *testing.T) {
	b := newBlame(t, "j", "k", "c")
	b.node("c", []string{"j", "k"}, 0, 0, "b1", "//x")
	b.Schedule(main, "b1", "c", []string{"j", "k"}, "//x")
	b.Prepare(main, "b1", "c", "//x")
	expect := func(want string, changes ...string) {
		t.Helper()
		b.Read(main, func(q *view.Queue) {
			if e, _ := q.Explain("c"); e.Why != want || !slices.Equal(e.Reasons[0].Changes, changes) {
				t.Errorf("it says %q of %v, want %q of %v", e.Why, e.Reasons[0].Changes, want, changes)
			}
		})
	}
	expect("A build waits for a worker, assuming that j and k land.", "j", "k")
	b.Fold(main, events.TopicBuilds, &eventsv1.StepLeased{Target: "//x", Hash: apitest.VersionOf("b1", "//x"), Attempt: 1, Lease: "l", Worker: "w", Build: "b1", StampUs: apitest.Start.UnixMicro(), UntilUs: 1 << 60})
	expect("A build is running: 0 of 1 step done, assuming that j and k land.", "j", "k")
	b.LandIt(main, "j", "b0", nil, "//j")
	expect("A build is running: 0 of 1 step done, assuming that k lands.", "k")
	b.LandIt(main, "k", "b0", nil, "//k")
	expect("A build is running: 0 of 1 step done.")
}

// TestTheBuildOfWhichAStepRunsIsTheOneThatIsTold, with its steps alone.
func TestTheBuildOfWhichAStepRunsIsTheOneThatIsTold(t *testing.T) {
	b := newBlame(t, "j", "c", "d")
	b.node("c", []string{"j"}, 0, 0, "b2", "//x")
	b.Schedule(main, "b1", "c", []string{"j"}, "//x", "//y", "//z")
	b.Prepare(main, "b1", "c", "//x", "//y", "//z")
	b.Schedule(main, "b2", "c", nil, "//x")
	b.Prepare(main, "b2", "c", "//x")
	expect := func(why string, running, total int) {
		t.Helper()
		b.Read(main, func(q *view.Queue) {
			s, _ := q.Summary("c")
			if s.Why != why || s.StepsRunning != running || s.StepsTotal != total || s.StepsDone != 0 || s.State != view.StateTesting || s.RunningBuilds != 2 {
				t.Errorf("%+v, want %q with %d of %d running", s, why, running, total)
			}
		})
	}
	expect("A build waits for a worker, assuming that j lands; and 1 more build.", 0, 3)
	b.Fold(main, events.TopicBuilds, &eventsv1.StepLeased{Target: "//x", Hash: apitest.VersionOf("b2", "//x"), Attempt: 1, Lease: "l", Worker: "w", Build: "b2", StampUs: apitest.Start.UnixMicro(), UntilUs: 1 << 60})
	expect("A build is running: 0 of 1 step done; and 1 more build.", 1, 1)
	b.Graph(main, &eventsv1.GraphDelta{Nodes: []*eventsv1.Node{node("d", 3, &eventsv1.Ahead{Change: apitest.Ref("c"), Conflicts: true})}})
	b.Read(main, func(q *view.Queue) {
		if behind, _ := q.Change("d"); len(behind.Ahead) != 1 || behind.Ahead[0].StepsRunning != 1 || behind.Ahead[0].State != view.StateTesting {
			t.Errorf("ahead of d: %+v", behind.Ahead)
		}
	})
	b.Fold(main, events.TopicBuilds, &eventsv1.StepFinished{Target: "//x", Hash: apitest.VersionOf("b2", "//x"), Attempt: 1, Build: "b2", Outcome: eventsv1.StepOutcome_STEP_OUTCOME_COULD_NOT_RUN})
	expect("A build waits for a worker, assuming that j lands; and 1 more build.", 0, 3)
}

// TestWhyTheWholeRepositoryWasVerifiedIsToldOfARejection: pnpm does not say which file it cannot read.
func TestWhyTheWholeRepositoryWasVerifiedIsToldOfARejection(t *testing.T) {
	const whole, why = "//:repository", "pnpm-workspace.yaml:1: this YAML is not understood"
	b := newBlame(t, "c")
	b.Fold(main, events.TopicChanges, &eventsv1.ChangeAnalyzed{Change: apitest.Ref("c"), Base: apitest.Commit("main"), Message: why,
		Outcome: eventsv1.AnalysisOutcome_ANALYSIS_OUTCOME_ANALYZED, Affected: &eventsv1.Affected{All: true, Targets: []*eventsv1.TargetVersion{{Target: whole}}, Reasons: []string{why}}})
	b.build("b1", "c", "m", nil, []string{whole}, []eventsv1.StepOutcome{stepFailed})
	b.Reject(main, "c", "b1", whole, 1)
	b.Read(main, func(q *view.Queue) {
		e, _ := q.Explain("c")
		if f := e.Failure; f == nil || f.Lines[len(f.Lines)-1] != "the whole repository was verified: "+why || strings.Contains(f.Sentence, why) {
			t.Errorf("%+v", f)
		}
	})
}
