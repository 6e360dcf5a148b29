package view_test

import (
	"strings"
	"testing"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/services/gateway/api/apitest"
	"landfall.build/services/gateway/view"
)

// TestATargetThatALandingVerifiedWasGreenThere: it is neither red since before the queue nor without proof, whatever has become of the run
// that proved it. A quarantined one need not have passed.
func TestATargetThatALandingVerifiedWasGreenThere(t *testing.T) {
	for _, c := range []struct {
		name               string
		proof              *eventsv1.Proof
		why, checked, says string
	}{
		{"verified", &eventsv1.Proof{Attempt: 1}, "It fails in //x, which is red on the mainline, where it passed when k landed; nobody is rejected for that.",
			"It fails in //x, which passed on the mainline when k landed; whether it still does is verified first.",
			"//x passed on the mainline when k landed, and fails there now: not your change: "},
		{"quarantined", &eventsv1.Proof{Attempt: 1, Quarantined: true}, "It fails in //x, which is red on the mainline; k landed while //x was quarantined; nobody is rejected for that.",
			"It fails in //x, and the mainline itself has never been proven green there; that is being verified first.",
			"//x is red on the mainline, where k landed while it was quarantined: not your change: "},
		{"of another target", &eventsv1.Proof{}, "It fails in //x, which has been red on the mainline since before the queue; nobody is rejected for that.",
			"It fails in //x, and the mainline itself has never been proven green there; that is being verified first.",
			"//x has been red on the mainline since before the queue: not your change: "},
	} {
		b := newBlame(t, "k", "c")
		commits := []string{apitest.Commit("k landed")}
		c.proof.Version = &eventsv1.TargetVersion{Target: "//x", Hash: "of k"}
		b.Fold(main, events.TopicChanges, &eventsv1.LandIntended{Change: refOf("k"), Base: "m", Commits: commits, Proof: []*eventsv1.Proof{c.proof}})
		b.Fold(main, events.TopicChanges, &eventsv1.ChangeLanded{Change: refOf("k"), Base: "m", Commits: commits, Proof: []*eventsv1.Proof{c.proof}})
		b.build("b1", "c", commits[0], nil, []string{"//x"}, []eventsv1.StepOutcome{stepFailed})
		b.node("c", nil, blocked, 0, "b1", "//x")
		expect := func(want string) {
			t.Helper()
			b.Read(main, func(q *view.Queue) {
				if s, _ := q.Summary("c"); !strings.HasPrefix(s.Why, want) {
					t.Errorf("%s: it waits as %q, want %q", c.name, s.Why, want)
				}
			})
		}
		check := &eventsv1.Node{Mainline: true, Change: &eventsv1.ChangeRef{}, Inherited: []string{"//x"},
			Classes: []*eventsv1.Class{{Targets: []*eventsv1.TargetVersion{{Target: "//x", Hash: "h"}}}}}
		b.Graph(main, &eventsv1.GraphDelta{Nodes: []*eventsv1.Node{check}})
		expect(c.checked)
		check.Classes[0].Outcomes = []*eventsv1.Outcome{{State: red, Version: &eventsv1.TargetVersion{Target: "//x", Hash: "h"}}}
		b.Graph(main, &eventsv1.GraphDelta{Nodes: []*eventsv1.Node{check}})
		expect(c.why)
		b.Read(main, func(q *view.Queue) {
			if v, _ := q.Change("c"); v.Failure == nil || !strings.HasPrefix(v.Failure.Sentence, c.says) {
				t.Errorf("%s: its failure is %+v, want %q", c.name, v.Failure, c.says)
			}
			if got := len(q.Overview().RedBeforeQueue) > 0; got != (c.name == "of another target") {
				t.Errorf("%s: red before the queue: %v", c.name, got)
			}
		})
	}
}

// TestWhatARequirementWaitsForIsSaid: one level, and only what does not pass by itself.
func TestWhatARequirementWaitsForIsSaid(t *testing.T) {
	b := newBlame(t, "x")
	for _, pair := range [][]string{{"y", "x"}, {"z", "y"}} {
		a := admissionOf(pair[0])
		a.Requires = pair[1:]
		b.Fold(main, events.TopicChanges, &eventsv1.ChangeAdmitted{Admission: a})
	}
	expect := func(id, want string) {
		t.Helper()
		b.Read(main, func(q *view.Queue) {
			if s, _ := q.Summary(id); s.Why != want {
				t.Errorf("%s waits as\n%q, want\n%q", id, s.Why, want)
			}
		})
	}
	expect("y", "It requires x, which has not landed yet.")
	b.build("b1", "x", "m", nil, []string{"//x"}, []eventsv1.StepOutcome{stepFailed})
	b.Graph(main, &eventsv1.GraphDelta{Nodes: []*eventsv1.Node{{Mainline: true, Change: &eventsv1.ChangeRef{}, Inherited: []string{"//x"},
		Classes: []*eventsv1.Class{{Outcomes: []*eventsv1.Outcome{{State: red, Version: &eventsv1.TargetVersion{Target: "//x", Hash: "h"}}}}}}}})
	b.node("x", nil, blocked, 0, "b1", "//x")
	expect("y", "It requires x, which has not landed yet. What x waits for: It fails in //x, which has been red on the mainline since before the queue; nobody is rejected for that. "+
		"Once a commit repairs it, there or in this change, it goes on by itself. If it failed by chance, or for something outside of the tree that is mended by now, `landfall retry x` runs it again there.")
	expect("z", "It requires y, which has not landed yet.")
	b.Fold(main, events.TopicChanges, &eventsv1.ChangeHeld{Change: "x", Hold: view.DefaultHold, Who: "Ada", Why: strings.Repeat("long ", 1000)})
	b.Read(main, func(q *view.Queue) {
		if s, _ := q.Summary("y"); !strings.HasPrefix(s.Why, "It requires x, which has not landed yet. What x waits for: It is held by Ada: long ") || len(s.Why) > 700 {
			t.Errorf("%q", s.Why)
		}
	})
}

// TestAKnownFlakeOfTheMainlineIsCalledOne, and not explained by something that has changed outside.
func TestAKnownFlakeOfTheMainlineIsCalledOne(t *testing.T) {
	for _, flaky := range []bool{false, true} {
		b := newBlame(t, "c")
		ran := func(attempt uint32, outcome eventsv1.StepOutcome) {
			at := apitest.Start.UnixMicro() + int64(attempt)*1e6
			b.Fold(main, events.TopicBuilds, &eventsv1.StepFinished{Target: "//x", Hash: "h", Attempt: attempt, Outcome: outcome, StartedUs: at, FinishedUs: at + 1000})
		}
		if flaky {
			ran(1, stepFailed)
		}
		ran(2, eventsv1.StepOutcome_STEP_OUTCOME_PASSED)
		b.Fold(main, events.TopicChanges, &eventsv1.Refused{Change: refOf("c"), BaseOutdated: []*eventsv1.Proof{{Version: &eventsv1.TargetVersion{Target: "//x", Hash: "h"}, Attempt: 2}}})
		ran(3, stepFailed)
		b.build("b1", "c", "m", nil, []string{"//x"}, []eventsv1.StepOutcome{stepFailed})
		b.node("c", nil, blocked, 0, "b1", "//x")
		b.Graph(main, &eventsv1.GraphDelta{Nodes: []*eventsv1.Node{{Mainline: true, Change: &eventsv1.ChangeRef{}, Inherited: []string{"//x"}, Classes: []*eventsv1.Class{{
			Targets: []*eventsv1.TargetVersion{{Target: "//x", Hash: "h"}}, Outcomes: []*eventsv1.Outcome{{State: red, Version: &eventsv1.TargetVersion{Target: "//x", Hash: "h"}}}}}}}})
		want := []string{"It fails in //x, which fails on the mainline too by now, without this change; it passed there at 2026-01-05 10:00:02 UTC, so something else has changed"}
		if flaky {
			want = []string{"It fails in //x (a known flake: 1 of its last 1 versions that passed had failed before, with nothing changed), which fails on the mainline too by now, without this change; it passed there at 2026-01-05 10:00:02 UTC; nobody", "a quarantine keeps it from blocking others"}
		}
		b.Read(main, func(q *view.Queue) {
			s, _ := q.Summary("c")
			for _, text := range want {
				if !strings.Contains(s.Why, text) {
					t.Errorf("flaky %v: it waits as\n%s\nwant %q", flaky, s.Why, text)
				}
			}
		})
	}
}

// TestAChangeThatOnlyThePauseKeepsSaysSo in its row: the pause itself is said once, of the queue.
func TestAChangeThatOnlyThePauseKeepsSaysSo(t *testing.T) {
	s := begin(t)
	s.land("a")
	s.Graph(main, &eventsv1.GraphDelta{Nodes: []*eventsv1.Node{outcome(node("a", 1), eventsv1.OutcomeState_OUTCOME_STATE_GREEN, "//a")}})
	s.Fold(main, events.TopicChanges, &eventsv1.QueuePaused{Who: "sre"})
	s.Read(main, func(q *view.Queue) {
		if why := q.Pending()[0].Why; why != "Only the pause of the queue keeps it waiting." {
			t.Errorf("%q", why)
		}
	})
}
