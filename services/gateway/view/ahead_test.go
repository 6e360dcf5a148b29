package view_test

import (
	"fmt"
	"testing"
	"time"

	"landfall.build/engine/eta"
	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/services/gateway/api/apitest"
	"landfall.build/services/gateway/view"
)

// redWith has a node green by itself, and red in a target on top of the members of its first class that are given by their places.
func redWith(n *eventsv1.Node, target string, members ...int) *eventsv1.Node {
	o := &eventsv1.Outcome{State: eventsv1.OutcomeState_OUTCOME_STATE_RED, Version: &eventsv1.TargetVersion{Target: target}, Members: []byte{0}}
	for _, i := range members {
		o.Members[0] |= 1 << i
	}
	n.Classes[0].Outcomes = append(n.Classes[0].Outcomes, &eventsv1.Outcome{State: eventsv1.OutcomeState_OUTCOME_STATE_GREEN, Version: &eventsv1.TargetVersion{Target: target}}, o)
	return n
}

// TestWhoIsBehindAHeldChangeReadsThatAndWhatTheTwoBreak: not only that the other one is ahead.
func TestWhoIsBehindAHeldChangeReadsThatAndWhatTheTwoBreak(t *testing.T) {
	s := begin(t)
	for _, id := range []string{"a", "b", "c", "d", "e", "f"} {
		s.land(id)
	}
	unmerged := &eventsv1.Ahead{Change: apitest.Ref("a"), Conflicts: true, MergeConflict: true, Targets: []string{"//x"}}
	apart := &eventsv1.Ahead{Change: apitest.Ref("a")}
	s.Graph(main, &eventsv1.GraphDelta{Nodes: []*eventsv1.Node{
		node("a", 1), redWith(node("b", 2, meets("a", "//x")), "//x", 0), node("c", 3, unmerged, meets("b", "//y")), node("d", 4, meets("b", "//z")), node("e", 5, apart),
		redWith(node("f", 6, meets("b", "//x"), meets("d", "//x")), "//w", 0, 1),
	}})
	says := func(when, change, want string) {
		t.Helper()
		s.Read(main, func(q *view.Queue) {
			c, _ := q.Change(change)
			said := ""
			for _, r := range c.Reasons {
				if r.Code == view.ReasonAhead {
					said = fmt.Sprint(r.Sentence, r.Changes)
				}
			}
			if said != want {
				t.Errorf("%s, %s: %q, want %q", when, change, said, want)
			}
			if c.Reasons[0].Code == view.ReasonAhead && fmt.Sprint(said[:len(said)-len(fmt.Sprint(c.Names))], c.Names) != said {
				t.Errorf("%s, %s: %q names %q", when, change, said, c.Names)
			}
		})
	}
	says("nothing is held", "b", "a is ahead of it and breaks //x together with it.[a]")
	says("nothing is held", "c", "a is ahead of it and has a merge conflict with it; b is ahead of it and conflicts with it in //y.[a b]")
	says("nothing is held", "d", "b is ahead of it and conflicts with it in //z.[b]")
	says("nothing is held", "e", "")
	says("nothing is held", "f", "b and d are ahead of it and break //w together with it.[b d]")

	s.Fold(main, events.TopicChanges, &eventsv1.ChangeHeld{Change: "a", Hold: "manual", Who: "Ada", Why: "not before the sale"})
	const held = " What a waits for: It is held by Ada: not before the sale; release it to let it land."
	says("a is held", "b", "a is ahead of it and breaks //x together with it."+held+"[a]")
	says("a is held", "c", "a is ahead of it and has a merge conflict with it; b is ahead of it and conflicts with it in //y."+held+"[a b]")
	says("a is held", "d", "b is ahead of it and conflicts with it in //z. b waits for a in turn."+held+"[b a]")
	says("a is held", "f", "b and d are ahead of it and break //w together with it. b waits for a in turn."+held+"[b d a]")
	for _, c := range []struct{ change, want string }{{"b", eta.WaitsForUnknown + ": a is held"}, {"d", eta.WaitsForUnknown + ": a is held; it can pass that if its steps are green both with and without it"}, {"e", eta.WaitsForUnknown}} {
		s.Estimate(main, c.change, eta.WaitsForUnknown)
		if got := s.unknown(c.change); got != c.want {
			t.Errorf("a is held: there is no estimate of %s as %q, want %q", c.change, got, c.want)
		}
	}
	s.Read(main, func(q *view.Queue) {
		c, _ := q.Change("c")
		if !c.Ahead[0].Held || c.Ahead[1].Held {
			t.Errorf("the changes ahead are %+v", c.Ahead)
		}
	})
	s.Fold(main, events.TopicChanges, &eventsv1.ChangeReleased{Change: "a", Hold: "manual", Who: "Ada"})
	says("a is released", "d", "b is ahead of it and conflicts with it in //z.[b]")
}

// TestAChangeThatHasPassedWithAHeldOneWaitsForTheOthers: to release the held one would not let it land.
func TestAChangeThatHasPassedWithAHeldOneWaitsForTheOthers(t *testing.T) {
	s := begin(t)
	for _, id := range []string{"a", "b", "c"} {
		s.land(id)
	}
	s.Fold(main, events.TopicChanges, &eventsv1.ChangeHeld{Change: "a", Hold: "manual", Who: "Ada"})
	const green = eventsv1.OutcomeState_OUTCOME_STATE_GREEN
	says := func(want string, members ...[]byte) {
		t.Helper()
		n := node("c", 3, meets("a", "//x"), meets("b", "//x"))
		for _, m := range members {
			n.Classes[0].Outcomes = append(n.Classes[0].Outcomes, &eventsv1.Outcome{Members: m, State: green, Version: &eventsv1.TargetVersion{Target: "//x"}})
		}
		s.Graph(main, &eventsv1.GraphDelta{Nodes: []*eventsv1.Node{node("a", 1), node("b", 2, meets("a", "//x")), n}})
		s.Read(main, func(q *view.Queue) {
			c, _ := q.Change("c")
			if got := c.Reasons[0].Sentence; c.State != view.StatePassed || got != want {
				t.Errorf("green with %v it is %s: %q, want %q", members, c.State, got, want)
			}
		})
	}
	const held = " What a waits for: It is held by Ada; release it to let it land."
	says("a and b are ahead of it and conflict with it in //x."+held, nil)
	says("b is ahead of it and conflicts with it in //x.", nil, []byte{1})
	says("a is ahead of it and conflicts with it in //x."+held, nil, []byte{2})
	says("a and b are ahead of it and conflict with it in //x."+held, nil, []byte{1}, []byte{2})
}

// TestAChangeAheadThatFailsByItselfIsNotSaidToBreakAnything together with one behind it.
func TestAChangeAheadThatFailsByItselfIsNotSaidToBreakAnything(t *testing.T) {
	s := begin(t)
	s.land("a")
	s.land("b")
	s.Graph(main, &eventsv1.GraphDelta{Nodes: []*eventsv1.Node{node("a", 1), redWith(node("b", 2, meets("a", "//x")), "//x", 0)}})
	s.Schedule(main, "build-a", "a", nil, "//x")
	s.Prepare(main, "build-a", "a", "//x")
	s.Finish(main, "build-a", "//x", 1, eventsv1.StepOutcome_STEP_OUTCOME_FAILED, "no\n", "")
	s.Read(main, func(q *view.Queue) {
		c, _ := q.Change("b")
		if got := c.Reasons[len(c.Reasons)-1].Sentence; got != "a is ahead of it and conflicts with it in //x." {
			t.Errorf("%q", got)
		}
	})
}

// TestWhatRunsLongerThanPredictedIsOverdue: its estimate is of a moment from then on, however long it goes on.
func TestWhatRunsLongerThanPredictedIsOverdue(t *testing.T) {
	s := begin(t)
	s.land("a")
	s.Graph(main, &eventsv1.GraphDelta{Nodes: []*eventsv1.Node{node("a", 1)}})
	s.Profile(main, &eventsv1.Profile{Predictions: []*eventsv1.Prediction{{Change: apitest.Ref("a"), Success: 1, DurationMeanUs: 60e6, DurationStdUs: 10e6, DurationSource: "targets"}}})
	s.Schedule(main, "build-a", "a", nil, "//x", "//y")
	s.Prepare(main, "build-a", "a", "//x", "//y")
	s.Estimate(main, "a", "", 5, 6, 7, 9, 12)
	overdue := func() time.Time {
		var at time.Time
		s.Read(main, func(q *view.Queue) {
			c, _ := q.Change("a")
			at = c.ETA.OverdueFrom
		})
		return at
	}
	if at := overdue(); !at.IsZero() {
		t.Errorf("before a step runs it is overdue from %v on", at)
	}
	s.Fold(main, events.TopicBuilds, &eventsv1.StepLeased{Target: "//x", Hash: apitest.VersionOf("build-a", "//x"), Attempt: 1, Lease: "l", Worker: "w", Build: "build-a", StampUs: apitest.Start.UnixMicro(), UntilUs: 1 << 60})
	if at := overdue(); !at.Equal(apitest.Start.Add(90 * time.Second)) {
		t.Errorf("it is overdue from %v on, and began at %v", at, apitest.Start)
	}
	s.Finish(main, "build-a", "//x", 1, eventsv1.StepOutcome_STEP_OUTCOME_PASSED, "ok\n", "")
	if at := overdue(); !at.IsZero() {
		t.Errorf("once the step has ended it is overdue from %v on", at)
	}
}
