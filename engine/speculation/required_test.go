package speculation

import (
	"slices"
	"testing"

	"landfall.build/engine/graph"
	"landfall.build/engine/memberset"
	eventsv1 "landfall.build/events/v1"
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
	for _, n := range q.published.nodes {
		g.Fold(&eventsv1.GraphDelta{Nodes: []*eventsv1.Node{n}})
	}
	c := g.Node("c")
	path := memberset.New(len(c.Ahead))
	path.Add(c.IndexOf("r"))
	if state := c.Path(path); state != graph.Green {
		t.Errorf("on top of %v, with r alone: %v", c.Ahead, state)
	}
}

// M19, M25: k, which is ahead of c, makes its target u depend on what c alters. Alone c does not affect u, on top of k it
// does, so c is not to land past k before u is green there: k would be red afterwards, which was green.
func TestM25WhatAChangeAffectsOnTopOfAnotherOneIsVerifiedThere(t *testing.T) {
	q := New()
	settings := &eventsv1.Fact{Fact: &eventsv1.Fact_Settings{Settings: &eventsv1.QueueSettings{Hash: "s", Steps: &eventsv1.StepPolicy{}}}}
	passed := func(name, hash string) *eventsv1.Fact {
		return &eventsv1.Fact{Fact: &eventsv1.Fact_StepFinished{StepFinished: &eventsv1.StepFinished{
			Target: name, Hash: hash, Attempt: 1, Outcome: eventsv1.StepOutcome_STEP_OUTCOME_PASSED}}}
	}
	ref := func(change string) *eventsv1.ChangeRef { return &eventsv1.ChangeRef{Change: change, Revision: 1} }
	prepared := func(build string, versions []*eventsv1.TargetVersion, assumed ...*eventsv1.ChangeRef) *eventsv1.Fact {
		return &eventsv1.Fact{Fact: &eventsv1.Fact_BuildPrepared{BuildPrepared: &eventsv1.BuildPrepared{
			Build: build, Change: ref("c"), Base: "m0", Assumed: assumed,
			Outcome: eventsv1.PreparationOutcome_PREPARATION_OUTCOME_PREPARED, Versions: versions,
		}}}
	}
	fact(t, q, 1, settings, push("", "m0"), admitted("k"), admitted("c"),
		changeAnalyzed("k", &eventsv1.Affected{Targets: []*eventsv1.TargetVersion{target("u", "u1")}, AddedEdges: []string{"x"}}),
		changeAnalyzed("c", &eventsv1.Affected{Targets: []*eventsv1.TargetVersion{target("x", "x1")}}))
	fact(t, q, 10, prepared("b0", []*eventsv1.TargetVersion{target("x", "x1")}), passed("x", "x1"))
	on := func() (alone, onTop eventsv1.OutcomeState, targets []string) {
		g := graph.New()
		for _, n := range q.published.nodes {
			g.Fold(&eventsv1.GraphDelta{Nodes: []*eventsv1.Node{n}})
		}
		c := g.Node("c")
		path := memberset.New(len(c.Ahead))
		alone = c.Path(path)
		path.Add(c.IndexOf("k"))
		_, outstanding := c.Outstanding(path)
		for _, v := range outstanding {
			targets = append(targets, v.Target)
		}
		return alone, c.Path(path), targets
	}
	if alone, onTop, targets := on(); alone != graph.Green || onTop != graph.Unknown || !slices.Equal(slices.Sorted(slices.Values(targets)), []string{"u", "x"}) {
		t.Errorf("with nothing built on top of k: %v alone, %v on top of it, where %v is to be built", alone, onTop, targets)
	}
	fact(t, q, 20, prepared("b1", []*eventsv1.TargetVersion{target("x", "x1"), target("u", "u2")}, ref("k")))
	if _, onTop, _ := on(); onTop != graph.Unknown {
		t.Errorf("with u not built on top of k: %v", onTop)
	}
	fact(t, q, 30, passed("u", "u2"))
	if _, onTop, targets := on(); onTop != graph.Green || len(targets) > 0 {
		t.Errorf("with u green on top of k: %v, where %v is to be built", onTop, targets)
	}
}
