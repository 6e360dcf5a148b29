package speculation

import (
	"testing"

	eventsv1 "landfall.build/events/v1"
	"landfall.build/services/graph"
	"landfall.build/services/memberset"
)

func admitted(change string, requires ...string) *eventsv1.Fact {
	return &eventsv1.Fact{Fact: &eventsv1.Fact_ChangeAdmitted{ChangeAdmitted: &eventsv1.ChangeAdmitted{Admission: &eventsv1.Admission{
		Queue: "main", Change: change, Revision: 1, Requires: requires, LandingCommits: []*eventsv1.LandingCommit{{Head: change}},
	}}}}
}

func changeAnalyzed(change string, affected *eventsv1.Affected) *eventsv1.Fact {
	return &eventsv1.Fact{Fact: &eventsv1.Fact_ChangeAnalyzed{ChangeAnalyzed: &eventsv1.ChangeAnalyzed{
		Change: &eventsv1.ChangeRef{Change: change, Revision: 1}, Base: "m0",
		Outcome: eventsv1.AnalysisOutcome_ANALYSIS_OUTCOME_ANALYZED, Affected: affected,
	}}}
}

func target(name, hash string) *eventsv1.TargetVersion {
	return &eventsv1.TargetVersion{Target: name, Hash: hash, Part: 1}
}

// M24, M25: c requires r, which affects c's target only through the edge that it adds into what o changes. A
// build of (c, {r}) proves that very path, or it would be built again without end.
func TestM25WhatARequiredChangeAffectsIsPartOfTheVersion(t *testing.T) {
	q := New()
	settings := &eventsv1.Fact{Fact: &eventsv1.Fact_Settings{Settings: &eventsv1.QueueSettings{Hash: "s", Steps: &eventsv1.StepPolicy{}}}}
	fact(t, q, 1, settings, push("", "m0"), admitted("o"), admitted("r"), admitted("c", "r"),
		changeAnalyzed("o", &eventsv1.Affected{Targets: []*eventsv1.TargetVersion{target("x", "x1"), target("t", "t1")}}),
		changeAnalyzed("r", &eventsv1.Affected{Targets: []*eventsv1.TargetVersion{target("u", "u1")}, AddedEdges: []string{"x"}}),
		changeAnalyzed("c", &eventsv1.Affected{Targets: []*eventsv1.TargetVersion{target("t", "t2")}}))
	ref := func(change string) *eventsv1.ChangeRef { return &eventsv1.ChangeRef{Change: change, Revision: 1} }
	fact(t, q, 10,
		&eventsv1.Fact{Fact: &eventsv1.Fact_BuildPrepared{BuildPrepared: &eventsv1.BuildPrepared{
			Build: "b", Change: ref("c"), Base: "m0", Assumed: []*eventsv1.ChangeRef{ref("r")},
			Outcome: eventsv1.PreparationOutcome_PREPARATION_OUTCOME_PREPARED, Versions: []*eventsv1.TargetVersion{target("t", "t3")},
		}}},
		&eventsv1.Fact{Fact: &eventsv1.Fact_StepFinished{StepFinished: &eventsv1.StepFinished{
			Target: "t", Hash: "t3", Attempt: 1, Outcome: eventsv1.StepOutcome_STEP_OUTCOME_PASSED}}})
	g := graph.New()
	for _, n := range q.published {
		g.Fold(&eventsv1.GraphDelta{Nodes: []*eventsv1.Node{n}})
	}
	c := g.Node("c")
	path := memberset.New(len(c.Ahead))
	path.Add(c.IndexOf("r"))
	if state := c.Path(path); state != graph.Green {
		t.Errorf("on top of %v, with r alone: %v", c.Ahead, state)
	}
}
