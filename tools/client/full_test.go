package client

import (
	"strings"
	"testing"
	"time"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/services/gateway/api/apitest"
	"landfall.build/services/gateway/view"
)

// TestTheFullExplanationShowsEveryFactorWithWhereItComesFrom, for what runs, what is ranked, and what was decided.
func TestTheFullExplanationShowsEveryFactorWithWhereItComesFrom(t *testing.T) {
	t.Chdir(t.TempDir())
	f := serve(t)
	node := func(id string, position int64, members ...string) *eventsv1.Node {
		n := &eventsv1.Node{Change: apitest.Ref(id), Position: position, Analyzed: true, Classes: []*eventsv1.Class{{Targets: []*eventsv1.TargetVersion{{Target: "//lib", Part: 1}}}}}
		for i, m := range members {
			n.Ahead = append(n.Ahead, &eventsv1.Ahead{Change: apitest.Ref(m), Conflicts: true, Targets: []string{"//lib"}})
			n.Classes[0].Members = append(n.Classes[0].Members, uint32(i))
		}
		return n
	}
	predict := func(id string, success float64, source string, seconds float64) *eventsv1.Prediction {
		return &eventsv1.Prediction{Change: apitest.Ref(id), Success: success, SuccessSource: source, DurationMeanUs: seconds * 1e6, DurationStdUs: 10e6, DurationSource: "targets"}
	}
	pair := func(behind, ahead string, conflict float64, source string) *eventsv1.PairPrediction {
		return &eventsv1.PairPrediction{Behind: apitest.Ref(behind), Ahead: apitest.Ref(ahead), Conflict: conflict, Source: source}
	}
	prepared := func(build, change string, assumed ...string) *eventsv1.BuildProgress {
		p := &eventsv1.BuildProgress{Build: build, State: eventsv1.BuildState_BUILD_STATE_PREPARED, Change: apitest.Ref(change)}
		for _, a := range assumed {
			p.Assumed = append(p.Assumed, apitest.Ref(a))
		}
		return p
	}
	bypass := 0.5
	f.Fold("main", events.TopicChanges, &eventsv1.MainlineMoved{To: apitest.Commit("main"), Initial: true})
	for _, id := range []string{"a", "b", "c"} {
		f.run("land", id)
	}
	f.Profile("main", &eventsv1.Profile{
		Delta: &eventsv1.GraphDelta{
			Settings: &eventsv1.QueueSettings{Workers: 2, Threshold: 0.1, BypassThreshold: &bypass}, Mainline: &eventsv1.Mainline{Head: apitest.Commit("main"), Analyzed: true},
			Nodes: []*eventsv1.Node{node("a", 1), node("b", 2, "a"), node("c", 3, "b")},
		},
		Predictions: []*eventsv1.Prediction{predict("a", 0.9, "success-3f2a91bc", 600), predict("b", 0.8, "success-3f2a91bc", 60), predict("c", 0.5, "prior", 900)},
		Pairs:       []*eventsv1.PairPrediction{pair("b", "a", 0.25, "conflict-77aa01ff"), pair("c", "b", 0.05, "prior")},
	})
	f.Schedule("main", "0123456789abcdef", "a", nil, "//lib")
	f.Schedule("main", "123456789abcdef0", "b", []string{"a"}, "//lib")
	f.Profile("main", &eventsv1.Profile{Delta: &eventsv1.GraphDelta{Builds: []*eventsv1.BuildProgress{prepared("0123456789abcdef", "a"), prepared("123456789abcdef0", "b", "a")}}})
	f.Prepare("main", "0123456789abcdef", "a", "//lib")
	f.Prepare("main", "123456789abcdef0", "b", "//lib")
	f.Fold("main", events.TopicPriorities, &eventsv1.Priority{Position: 2, Ranking: &eventsv1.Ranking{Best: []*eventsv1.RankedBuild{
		{Change: apitest.Ref("a"), Needed: 1, Value: 1},
		{Change: apitest.Ref("b"), Assumed: []*eventsv1.ChangeRef{apitest.Ref("a")}, Needed: 1, Value: 0.6364},
		{Change: apitest.Ref("c"), Assumed: []*eventsv1.ChangeRef{apitest.Ref("b")}, Needed: 0.62, Value: 0.4384}}}})
	f.show("explain", "b", "--full")
	f.show("explain", "c", "--full")
	f.Finish("main", "0123456789abcdef", "//lib", 1, eventsv1.StepOutcome_STEP_OUTCOME_PASSED, "ok\n", "")
	a := node("a", 1)
	a.Classes[0].Outcomes = []*eventsv1.Outcome{{State: eventsv1.OutcomeState_OUTCOME_STATE_GREEN}}
	f.Profile("main", &eventsv1.Profile{Delta: &eventsv1.GraphDelta{Nodes: []*eventsv1.Node{a}, Builds: []*eventsv1.BuildProgress{{Build: "0123456789abcdef", State: eventsv1.BuildState_BUILD_STATE_FINISHED, Change: apitest.Ref("a")}}},
		Predictions: []*eventsv1.Prediction{predict("a", 1, "success-3f2a91bc, and its builds", 600)}})
	f.Decide("main", "a")
	f.show("explain", "b", "--full")
	f.Fold("main", events.TopicDecisions, &eventsv1.Decision{Position: 3, Items: []*eventsv1.DecisionItem{{Item: &eventsv1.DecisionItem_BuildAborted{
		BuildAborted: &eventsv1.BuildAborted{Build: "123456789abcdef0", Why: "its path is hardly needed any more (0.01)"}}}}})
	f.LandIt("main", "a", "0123456789abcdef", nil, "//lib")
	f.Profile("main", &eventsv1.Profile{Delta: &eventsv1.GraphDelta{
		Gone: []*eventsv1.NodeGone{{Change: apitest.Ref("a"), How: eventsv1.GoneHow_GONE_HOW_LANDED}}, Nodes: []*eventsv1.Node{node("b", 2)}}})
	f.show("explain", "a", "--full")
	f.show("explain", "b", "--full", "--json")
	f.show("explain", "ghost", "--full")
	t.Chdir(origin)
	f.compare("full.txt")
}

// TestAFullExplanationLeavesNothingOut: it has what the short one says of a failure, too.
func TestAFullExplanationLeavesNothingOut(t *testing.T) {
	e := view.Explanation{Summary: view.Summary{Change: "me", State: view.StateRejected, Failure: &view.Fault{
		Target: "//t", Whose: view.WhoseYours, With: []string{"k"}, Sentence: "your change breaks //t: a.go:1: no (not built without k, which landed meanwhile)", Lines: []string{"a.go:1: no"},
		Also: []string{"//u"}, Owners: []string{"@team"}}}}
	for _, e.Full = range []*view.Full{nil, {}} {
		var out strings.Builder
		WriteExplanation(&out, time.Now(), e)
		for _, want := range []string{
			"  failed    also //u\n", "  landed    since the commit that it is based on, and //t was not built without: k\n", "  owners    @team\n",
		} {
			if strings.Count(out.String(), want) != 1 {
				t.Errorf("full: %v; %q is not once in\n%s", e.Full != nil, want, out.String())
			}
		}
	}
}

// TestFullIsTrueOrFalse.
func TestFullIsTrueOrFalse(t *testing.T) {
	t.Chdir(t.TempDir())
	f := serve(t)
	f.run("land", "a")
	c, err := New(f.server.URL, "ada")
	if err != nil {
		t.Fatal(err)
	}
	var out map[string]any
	for text, want := range map[string]string{"true": "", "false": "", "1": "", "perhaps": "full=perhaps is neither true nor false"} {
		err := c.call(t.Context(), "GET", queuePath("main", "changes", "a", "explain")+"?full="+text, nil, &out)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("full=%s: %v", text, err)
		}
	}
}
