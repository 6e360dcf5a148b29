package view_test

import (
	"strings"
	"testing"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/services/gateway/api/apitest"
	"landfall.build/services/gateway/view"
)

// TestWhyNothingWasBuiltIsSaid at the analysis, while the change waits, and once it has landed.
func TestAChangeThatTheMainlineHoldsAlreadyIsSaidToChangeNothing(t *testing.T) {
	for _, c := range []struct {
		tree     string
		bypasses []string
		said     string
	}{
		{"tree", nil, ", which changes nothing: the mainline held all of it already."},
		{"tree", []string{"slow"}, ", bypassing slow; it changes nothing: the mainline held all of it already."},
		{"other tree", nil, "; nothing was built for it: it affects no target."},
	} {
		s := newTranscript(t)
		s.land("a")
		s.land("same")
		landed := func(change, base, commit, tree string, bypasses ...string) {
			commits := []string{apitest.Commit(commit)}
			var refs []*eventsv1.ChangeRef
			for _, id := range bypasses {
				refs = append(refs, apitest.Ref(id))
			}
			s.Fold(main, events.TopicChanges, &eventsv1.LandIntended{Change: apitest.Ref(change), Base: apitest.Commit(base), Commits: commits})
			s.Fold(main, events.TopicChanges, &eventsv1.ChangeLanded{Change: apitest.Ref(change), Base: apitest.Commit(base), Commits: commits, Tree: apitest.Commit(tree), Bypasses: refs})
		}
		landed("a", "main", "one", "tree")
		landed("same", "one", "two", c.tree, c.bypasses...)
		s.Read(main, func(q *view.Queue) {
			if e, _ := q.Explain("same"); e.Reasons[0].Sentence != "Landed as "+events.ShortID(apitest.Commit("two"))+c.said {
				t.Errorf("%s: %q", c.tree, e.Reasons[0].Sentence)
			}
		})
	}
}

func TestWhyNothingWasBuiltIsSaid(t *testing.T) {
	trivial := &eventsv1.TargetVersion{Target: "//docs", Trivial: true}
	built := &eventsv1.TargetVersion{Target: "//app"}
	many := []string{"a.md", "b.md", "c.md", "d.md"}
	for _, c := range []struct {
		name                      string
		affected                  *eventsv1.Affected
		message                   string
		analysed, waiting, landed string
	}{
		{"an ignored file", &eventsv1.Affected{Uncovered: &eventsv1.Uncovered{Ignored: []string{"README.md"}, IgnoredTotal: 1}}, "",
			"nothing is built for it: README.md is ignored by analysis.uncovered.",
			"Nothing is built for it: README.md is ignored by analysis.uncovered; the decision is next.",
			"; nothing was built for it: README.md is ignored by analysis.uncovered."},
		{"many of them", &eventsv1.Affected{Uncovered: &eventsv1.Uncovered{Ignored: many, IgnoredTotal: 250}}, "",
			"nothing is built for it: a.md, b.md, c.md and 247 more are ignored by analysis.uncovered.",
			"Nothing is built for it: a.md, b.md, c.md and 247 more are ignored by analysis.uncovered; the decision is next.",
			"; nothing was built for it: a.md, b.md, c.md and 247 more are ignored by analysis.uncovered."},
		{"a warning", &eventsv1.Affected{Uncovered: &eventsv1.Uncovered{Files: []string{"run.sh"}, FilesTotal: 1, Policy: "warn"}}, "",
			"nothing is built for it: no target covers run.sh (analysis.uncovered: warn).",
			"Nothing is built for it: no target covers run.sh (analysis.uncovered: warn); the decision is next.",
			"; nothing was built for it: no target covers run.sh (analysis.uncovered: warn)."},
		{"a target without steps", &eventsv1.Affected{Targets: []*eventsv1.TargetVersion{trivial}}, "",
			"nothing is built for it: //docs has no steps.", "Nothing is built for it: //docs has no steps; the decision is next.",
			"; nothing was built for it: //docs has no steps."},
		{"no file of a target", &eventsv1.Affected{}, "",
			"nothing is built for it: it affects no target.", "Nothing is built for it: it affects no target; the decision is next.",
			"; nothing was built for it: it affects no target."},
		{"removed targets", &eventsv1.Affected{Deleted: []string{"node://web", "node://web [test]"}}, "",
			"nothing is built for it: it removes node://web and node://web [test].",
			"Nothing is built for it: it removes node://web and node://web [test]; the decision is next.",
			"; nothing was built for it: it removes node://web and node://web [test]."},
		{"a removed target and one without steps", &eventsv1.Affected{Targets: []*eventsv1.TargetVersion{trivial}, Deleted: []string{"//app"}}, "",
			"nothing is built for it: //docs has no steps; it removes //app.",
			"Nothing is built for it: //docs has no steps; it removes //app; the decision is next.",
			"; nothing was built for it: //docs has no steps; it removes //app."},
		{"something is built, and a file ignored", &eventsv1.Affected{Targets: []*eventsv1.TargetVersion{built, trivial}, Uncovered: &eventsv1.Uncovered{Ignored: many[:2], IgnoredTotal: 2}}, "",
			"2 targets affected; a.md and b.md are ignored by analysis.uncovered.", "All its steps passed on the mainline as it stands; the decision is next.", "."},
		{"something is built, and a warning", &eventsv1.Affected{Targets: []*eventsv1.TargetVersion{built}, Uncovered: &eventsv1.Uncovered{Files: []string{"run.sh"}, FilesTotal: 1, Policy: "warn"}}, "",
			"1 target affected; no target covers run.sh (analysis.uncovered: warn).", "All its steps passed on the mainline as it stands; the decision is next.",
			"; no target covers run.sh (analysis.uncovered: warn)."},
		{"everything", &eventsv1.Affected{All: true, Targets: []*eventsv1.TargetVersion{{Target: "//:repository"}},
			Uncovered: &eventsv1.Uncovered{Files: []string{"run.sh"}, FilesTotal: 1, Policy: "whole_repository"}}, "no target covers run.sh, so the whole repository is verified (analysis.uncovered)",
			"it affects everything: no target covers run.sh, so the whole repository is verified (analysis.uncovered).",
			"All its steps passed on the mainline as it stands; the decision is next.", "."},
		{"everything, as its targets are not known", &eventsv1.Affected{All: true, Targets: []*eventsv1.TargetVersion{{Target: "//:repository"}}}, "pnpm-workspace.yaml:1: this YAML is not understood",
			"it affects everything: pnpm-workspace.yaml:1: this YAML is not understood.",
			"All its steps passed on the mainline as it stands; the decision is next.", "."},
	} {
		s := newTranscript(t)
		s.Fold(main, events.TopicChanges, &eventsv1.MainlineMoved{To: apitest.Commit("main"), Initial: true})
		s.Graph(main, &eventsv1.GraphDelta{Settings: &eventsv1.QueueSettings{Repository: "repo", Branch: "main", Workers: 2}, Mainline: &eventsv1.Mainline{Head: apitest.Commit("main"), Analyzed: true}})
		s.land("a")
		s.Fold(main, events.TopicChanges, &eventsv1.ChangeAnalyzed{Change: apitest.Ref("a"), Base: apitest.Commit("main"), Message: c.message,
			Outcome: eventsv1.AnalysisOutcome_ANALYSIS_OUTCOME_ANALYZED, Affected: c.affected})
		s.Graph(main, &eventsv1.GraphDelta{Nodes: []*eventsv1.Node{outcome(node("a", 1), eventsv1.OutcomeState_OUTCOME_STATE_GREEN, "//a")}})
		said := func() (why string, timeline string) {
			s.Read(main, func(q *view.Queue) {
				e, _ := q.Explain("a")
				why = e.Reasons[0].Sentence
				for _, event := range e.Timeline {
					timeline += event.Text + "\n"
				}
			})
			return why, timeline
		}
		why, timeline := said()
		if why != c.waiting || !strings.Contains(timeline, ": "+c.analysed+"\n") {
			t.Errorf("%s: it waits as %q, want %q; its story is\n%s want %q", c.name, why, c.waiting, timeline, c.analysed)
		}
		var proof []*eventsv1.Proof
		for _, v := range c.affected.Targets {
			proof = append(proof, &eventsv1.Proof{Version: v})
		}
		s.Fold(main, events.TopicChanges, &eventsv1.LandIntended{Change: apitest.Ref("a"), Base: apitest.Commit("main"), Commits: []string{apitest.Commit("landed")}, Proof: proof})
		s.Fold(main, events.TopicChanges, &eventsv1.ChangeLanded{Change: apitest.Ref("a"), Base: apitest.Commit("main"), Commits: []string{apitest.Commit("landed")}, Proof: proof})
		why, timeline = said()
		if want := "Landed as " + events.ShortID(apitest.Commit("landed")) + c.landed; why != want || !strings.Contains(timeline, want) {
			t.Errorf("%s: it landed as %q, want %q; its story is\n%s", c.name, why, want, timeline)
		}
		if unbuilt := strings.Contains(timeline, "Nothing was built for its landing commit"); unbuilt != strings.Contains(c.landed, "nothing was built") {
			t.Errorf("%s: the push is told as\n%s", c.name, timeline)
		}
	}
}

// TestADecisionThatIsReadBeforeTheAnalysisClaimsNoSteps: they are in different topics, and it may be that nothing was built.
func TestADecisionThatIsReadBeforeTheAnalysisClaimsNoSteps(t *testing.T) {
	for analysed, want := range map[bool]string{false: "Decided to land.\n", true: "Decided to land: all steps passed.\n"} {
		s := newTranscript(t)
		s.Fold(main, events.TopicChanges, &eventsv1.MainlineMoved{To: apitest.Commit("main"), Initial: true})
		s.land("a")
		if analysed {
			s.Fold(main, events.TopicChanges, &eventsv1.ChangeAnalyzed{Change: apitest.Ref("a"), Base: apitest.Commit("main"), Outcome: eventsv1.AnalysisOutcome_ANALYSIS_OUTCOME_ANALYZED,
				Affected: &eventsv1.Affected{Targets: []*eventsv1.TargetVersion{{Target: "//x", Hash: "h"}}}})
		}
		s.Fold(main, events.TopicDecisions, &eventsv1.Decision{Items: []*eventsv1.DecisionItem{{Item: &eventsv1.DecisionItem_LandDecided{LandDecided: &eventsv1.LandDecided{Change: apitest.Ref("a"), Decision: "d"}}}}})
		s.Read(main, func(q *view.Queue) {
			e, _ := q.Explain("a")
			story := ""
			for _, event := range e.Timeline {
				story += event.Text + "\n"
			}
			if !strings.Contains(story, want) {
				t.Errorf("analysed: %v; its story is\n%s", analysed, story)
			}
		})
	}
}
