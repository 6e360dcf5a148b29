package view_test

import (
	"strings"
	"testing"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/services/gateway/api/apitest"
	"landfall.build/services/gateway/view"
)

// TestWhatWasNotTestedIsSaidOfALanding: a step that ran no test passed. How many it ran before is that of the landing before.
func TestWhatWasNotTestedIsSaidOfALanding(t *testing.T) {
	s := begin(t)
	ran := func(target string, tests uint32, untested bool) *eventsv1.Proof {
		return &eventsv1.Proof{Version: &eventsv1.TargetVersion{Target: target, Hash: "h"}, Build: "b", Attempt: 1, Tests: tests, Untested: untested}
	}
	landings := []struct {
		id    string
		proof []*eventsv1.Proof
		said  string
	}{
		{"a", []*eventsv1.Proof{ran("//py [test]", 5, false), ran("//go", 0, false)}, "."},
		{"b", []*eventsv1.Proof{ran("//py [test]", 7, false), ran("//new [test]", 0, true)}, "; nothing was tested in //new [test]."},
		{"c", []*eventsv1.Proof{ran("//py [test]", 0, true), ran("//go", 0, false)}, "; nothing was tested in //py [test] (before: 7 tests)."},
		{"d", []*eventsv1.Proof{ran("//py [test]", 0, true), ran("//new [test]", 0, true), ran("//x", 0, true), ran("//y", 0, true)},
			"; nothing was tested in //new [test], //py [test] (before: 7 tests), //x and 1 more."},
		{"e", []*eventsv1.Proof{ran("//:repository", 3, true)}, "; a run of pytest or unittest in //:repository found no test."},
		{"f", []*eventsv1.Proof{ran("//py [test]", 1, false), ran("//:repository", 3, true), ran("//z", 0, true)}, "; nothing was tested in //z; a run of pytest or unittest in //:repository found no test."},
		{"h", []*eventsv1.Proof{ran("//:repository", 0, true)}, "; a run of pytest or unittest in //:repository found no test."}, // others of its commands may have tested
		{"g", []*eventsv1.Proof{ran("//py [test]", 0, true)}, "; nothing was tested in //py [test] (before: 1 test)."},
	}
	expect := func() {
		t.Helper()
		s.Read(main, func(q *view.Queue) {
			for _, l := range landings {
				e, known := q.Explain(l.id)
				if !known {
					continue
				}
				var timeline []string
				for _, event := range e.Timeline {
					timeline = append(timeline, event.Text)
				}
				landed := "Landed as " + events.ShortID(apitest.Commit(l.id)) + l.said
				pushed := "All steps of its landing commit " + events.ShortID(apitest.Commit(l.id)) + " passed" + strings.TrimSuffix(l.said, ".") + "; it is being pushed."
				if e.Reasons[0].Sentence != landed || !strings.Contains(strings.Join(timeline, "\n"), landed) || !strings.Contains(strings.Join(timeline, "\n"), pushed) {
					t.Errorf("%s: it is told as\n%s\nand\n%s\nwant\n%s\n%s", l.id, e.Reasons[0].Sentence, strings.Join(timeline, "\n"), landed, pushed)
				}
			}
		})
	}
	base := apitest.Commit("main")
	for _, l := range landings {
		s.land(l.id)
		s.Fold(main, events.TopicChanges, &eventsv1.LandIntended{Change: apitest.Ref(l.id), Base: base, Commits: []string{apitest.Commit(l.id)}, Proof: l.proof})
		s.Fold(main, events.TopicChanges, &eventsv1.ChangeLanded{Change: apitest.Ref(l.id), Base: base, Commits: []string{apitest.Commit(l.id)}, Proof: l.proof})
		base = apitest.Commit(l.id)
	}
	expect()
}
