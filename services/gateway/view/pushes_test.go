package view_test

import (
	"strings"
	"testing"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/services/gateway/api/apitest"
)

// TestADirectPushIsNamedWhereAChangeWaitsForIt: by its commit, its author and its subject, which are bounded and harmless.
func TestADirectPushIsNamedWhereAChangeWaitsForIt(t *testing.T) {
	s := begin(t)
	s.land("a")
	at := apitest.Commit("main")
	push := func(commit, author, title string, targets ...string) {
		id := apitest.Commit(commit)
		s.Fold(main, events.TopicChanges, &eventsv1.MainlineMoved{From: at, To: id, Author: author, Title: title})
		s.Graph(main, &eventsv1.GraphDelta{Mainline: &eventsv1.Mainline{Head: id}, Nodes: []*eventsv1.Node{{Change: apitest.Ref("a"), Analyzed: true}}})
		if name := events.ShortID(id); !strings.Contains(s.why("a"), name) {
			t.Errorf("before %s is analysed: %s", name, s.why("a"))
		}
		f := &eventsv1.MainlineAnalyzed{From: at, To: id, Affected: &eventsv1.Affected{}}
		for _, target := range targets {
			f.Affected.Targets = append(f.Affected.Targets, &eventsv1.TargetVersion{Target: target, Hash: commit})
		}
		s.Fold(main, events.TopicChanges, f)
		at = id
	}
	push("one", "Ada <ada@example.com>", "mend the cart", "//cart")
	push("two", "Eve\x1b[31m <eve@example.com>", strings.Repeat("long ", 1000), "//docs")
	s.Graph(main, &eventsv1.GraphDelta{Mainline: &eventsv1.Mainline{Head: at, Analyzed: true}, Nodes: []*eventsv1.Node{{Change: apitest.Ref("a"), Analyzed: true, Classes: []*eventsv1.Class{blockedIn("//cart")}}}})
	if why, want := s.why("a"), "A direct push ("+events.ShortID(apitest.Commit("one"))+" by Ada, “mend the cart”) changed //cart"; !strings.HasPrefix(why, want) {
		t.Errorf("a waits for %q, not for %q", why, want)
	}
	s.Graph(main, &eventsv1.GraphDelta{Nodes: []*eventsv1.Node{{Change: apitest.Ref("a"), Analyzed: true, Classes: []*eventsv1.Class{blockedIn("//docs")}}}})
	if why := s.why("a"); !strings.Contains(why, events.ShortID(apitest.Commit("two"))) || strings.Contains(why, "\x1b") || len(why) > 400 {
		t.Errorf("a waits for %q", why)
	}
}

func blockedIn(target string) *eventsv1.Class {
	v := &eventsv1.TargetVersion{Target: target, Hash: "h"}
	return &eventsv1.Class{Targets: []*eventsv1.TargetVersion{v}, Outcomes: []*eventsv1.Outcome{{State: eventsv1.OutcomeState_OUTCOME_STATE_BLOCKED, Version: v}}}
}

func (s *transcript) why(change string) string {
	sum, _, _, _ := s.look(change)
	return sum.Why
}
