package view_test

import (
	"strings"
	"testing"
	"time"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/services/gateway/api/apitest"
	"landfall.build/services/gateway/view"
)

func (s *transcript) look(change string) (sum view.Summary, e view.Explanation, o view.Overview, updates []view.Update) {
	s.t.Helper()
	s.Read(main, func(q *view.Queue) {
		sum, _ = q.Summary(change)
		e, _ = q.Explain(change)
		o, updates = q.Overview(), q.Since(s.seen, nil)
		s.seen = q.Sequence()
	})
	return
}

func begin(t *testing.T) *transcript {
	s := newTranscript(t)
	s.Fold(main, events.TopicChanges, &eventsv1.MainlineMoved{To: apitest.Commit("main"), Initial: true})
	s.Graph(main, &eventsv1.GraphDelta{Settings: &eventsv1.QueueSettings{Repository: "repo", Branch: "trunk", Workers: 2}, Mainline: &eventsv1.Mainline{Head: apitest.Commit("main"), Analyzed: true}})
	return s
}

// TestAMainlineThatCannotBeReachedIsSaidWhereItsAuthorLooks: in the queue, of each change that waits, in what is streamed,
// and not any more once it is back.
func TestAMainlineThatCannotBeReachedIsSaidWhereItsAuthorLooks(t *testing.T) {
	for trouble, want := range map[eventsv1.MainlineTrouble][2]string{
		eventsv1.MainlineTrouble_MAINLINE_TROUBLE_BRANCH_MISSING:  {"no branch trunk", "push it again (it was at " + apitest.Commit("main")[:12] + ")"},
		eventsv1.MainlineTrouble_MAINLINE_TROUBLE_UNREADABLE:      {"not been able to read trunk", "no route to host"},
		eventsv1.MainlineTrouble_MAINLINE_TROUBLE_PUSH_UNANSWERED: {"pushes to trunk have failed", "no route to host"},
		eventsv1.MainlineTrouble_MAINLINE_TROUBLE_UNMADE:          {"make the commits", "no route to host"},
		eventsv1.MainlineTrouble(77):                              {"not been able to read trunk", "no route to host"},
	} {
		s := begin(t)
		s.land("a")
		s.look("a")
		s.Fold(main, events.TopicChanges, &eventsv1.MainlineUnreachable{Trouble: trouble, Message: "no route to host.", SinceUs: 1_700_000_000_000_000})
		s.land("b")
		sum, e, o, updates := s.look("a")
		for _, text := range want {
			if !strings.Contains(sum.Why, text) || !strings.Contains(o.Unreachable.Sentence, text) {
				t.Errorf("%v: the change says %q, the queue %q; want %q in both", trouble, sum.Why, o.Unreachable.Sentence, text)
			}
		}
		if e.Reasons[0].Code != view.ReasonUnreachable || !strings.Contains(sum.Why, "since 2023-11-14 22:13:20 UTC") {
			t.Errorf("%v: %+v", trouble, e.Reasons[0])
		}
		if len(updates) != 2 || len(updates[0].Events) != 1 || updates[1].Events[1].Kind != view.ReasonUnreachable {
			t.Errorf("%v: streamed %+v", trouble, updates)
		}
		s.Fold(main, events.TopicChanges, &eventsv1.MainlineReachable{})
		sum, e, o, updates = s.look("a")
		if o.Unreachable != nil || e.Reasons[0].Code == view.ReasonUnreachable || len(updates[0].Events) != 1 {
			t.Errorf("%v: afterwards %q, %+v, %+v", trouble, sum.Why, o.Unreachable, updates)
		}
	}
}

// TestWhatAForcePushDropsIsNotSaidToHaveLanded, until it is back, or landed again.
func TestWhatAForcePushDropsIsNotSaidToHaveLanded(t *testing.T) {
	s := begin(t)
	for _, id := range []string{"a", "b"} {
		s.land(id)
		s.LandIt(main, id, "build-"+id, nil, "//"+id)
	}
	sum, _, _, _ := s.look("b")
	if sum.State != view.StateLanded {
		t.Fatalf("it is %s", sum.State)
	}
	tip := sum.Commits[len(sum.Commits)-1]
	force := func(to string, dropped ...*eventsv1.ChangeRef) {
		s.Fold(main, events.TopicChanges, &eventsv1.MainlineMoved{From: tip, To: to, Forced: true, Dropped: dropped, StampUs: 1_700_000_000_000_000})
	}
	force("0123456789abcdef", apitest.Ref("b"))
	sum, e, _, updates := s.look("b")
	want := "Landed as " + tip[:12] + ", dropped by a force-push at 2023-11-14 22:13:20 UTC (the mainline was set to 0123456789ab); land it again."
	if sum.State != view.StateDropped || !view.Final(sum.State) || sum.Why != want || e.Reasons[0].Code != view.ReasonDropped {
		t.Errorf("it is %s: %s (%+v)", sum.State, sum.Why, e.Reasons[0])
	}
	if sum.Dropped == nil || sum.Dropped.Head != "0123456789abcdef" || len(sum.Commits) == 0 {
		t.Errorf("%+v", sum)
	}
	if len(updates) != 1 || updates[0].Change != "b" || updates[0].State != view.StateDropped || len(updates[0].Events) != 1 {
		t.Errorf("streamed: %+v", updates)
	}
	if sum, _, _, _ := s.look("a"); sum.State != view.StateLanded {
		t.Errorf("the other one is %s", sum.State)
	}
	s.Fold(main, events.TopicChanges, &eventsv1.MainlineMoved{From: "0123456789abcdef", To: tip})
	if sum, _, _, _ := s.look("b"); sum.State != view.StateLanded || sum.Dropped != nil {
		t.Errorf("pushed again it is %s", sum.State)
	}
	force("x", apitest.Ref("b"))
	force(tip)
	if sum, _, _, _ := s.look("b"); sum.State != view.StateLanded {
		t.Errorf("set back it is %s", sum.State)
	}
	force("y", apitest.Ref("b"))
	s.land("b")
	if sum, _, _, _ := s.look("b"); sum.State != view.StateWaiting || sum.Revision != 2 || sum.Dropped != nil {
		t.Errorf("asked for again it is %s, revision %d", sum.State, sum.Revision)
	}
}

func TestAPauseHasTheTimeOfItsFact(t *testing.T) {
	s := begin(t)
	at := time.Date(2023, 11, 14, 22, 13, 20, 0, time.UTC)
	s.Fold(main, events.TopicChanges, &eventsv1.QueuePaused{Who: "sre", Why: "incident 7", StampUs: at.UnixMicro()})
	s.Read(main, func(q *view.Queue) {
		if p := q.Overview().Paused; p == nil || *p != (view.Pause{Who: "sre", Why: "incident 7", Since: at}) {
			t.Errorf("paused: %+v", p)
		}
	})
}

// TestABuildThatProvedALandingStaysPassed, also once its versions have failed on the mainline, where they were run again.
func TestABuildThatProvedALandingStaysPassed(t *testing.T) {
	s := begin(t)
	s.land("a")
	s.Schedule(main, "build-a", "a", nil, "//a")
	s.Prepare(main, "build-a", "a", "//a")
	s.Finish(main, "build-a", "//a", 1, eventsv1.StepOutcome_STEP_OUTCOME_PASSED, "ok\n", "")
	s.LandIt(main, "a", "build-a", nil, "//a")
	shown := func(when string) {
		t.Helper()
		s.Read(main, func(q *view.Queue) {
			c, _ := q.Change("a")
			if b := c.Builds[0]; b.State != view.BuildPassed || b.StepsDone != b.StepsTotal || b.Steps[0].State != view.StepPassed || b.Steps[0].Attempt != 1 || b.EndedAt.IsZero() {
				t.Errorf("%s the build is %+v", when, b)
			}
		})
	}
	shown("once it landed")
	s.land("b")
	s.Fold(main, events.TopicChanges, &eventsv1.Refused{Change: apitest.Ref("b"), BaseOutdated: []*eventsv1.Proof{{Version: &eventsv1.TargetVersion{Target: "//a", Hash: apitest.VersionOf("build-a", "//a")}, Attempt: 1}}})
	s.Finish(main, "build-a", "//a", 2, eventsv1.StepOutcome_STEP_OUTCOME_FAILED, "no\n", "")
	shown("once the mainline failed there")
}
