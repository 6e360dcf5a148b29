package speculation

import (
	"testing"

	eventsv1 "landfall.build/events/v1"
)

// fresh holds what was told of each pending change to what would be told from nothing.
func (q *testQueue) fresh(after string) {
	q.t.Helper()
	for _, c := range q.Lineup.Order() {
		if n := q.node(c); !sameNode(n, q.published.nodes[c.ID()]) {
			q.t.Errorf("after %s: %s was told as %v, and is %v", after, c.ID(), q.published.nodes[c.ID()], n)
		}
	}
}

// come admits a change that adds edges, and affects targets, each with its hash behind it.
func (q *testQueue) come(id string, edges []string, versions ...string) *eventsv1.ChangeRef {
	ref := &eventsv1.ChangeRef{Change: id, Revision: 1}
	q.say(&eventsv1.ChangeAdmitted{Admission: &eventsv1.Admission{Change: id, Revision: 1, LandingCommits: []*eventsv1.LandingCommit{{Head: id}}}})
	q.say(&eventsv1.ChangeAnalyzed{Change: ref, Base: q.Lineup.Head, Outcome: eventsv1.AnalysisOutcome_ANALYSIS_OUTCOME_ANALYZED,
		Affected: &eventsv1.Affected{Targets: versionsOf(versions...), AddedEdges: edges}})
	return ref
}

func versionsOf(versions ...string) (list []*eventsv1.TargetVersion) {
	for i := 0; i < len(versions); i += 2 {
		list = append(list, &eventsv1.TargetVersion{Target: versions[i], Hash: versions[i+1], Part: 1})
	}
	return list
}

// TestWhoMeetsInAHubAloneIsToldOfAnEdge: k comes to affect the hub by its edge into what y touches, and z, which is in the hub and
// conflicts with k elsewhere, does not conflict with y.
func TestWhoMeetsInAHubAloneIsToldOfAnEdge(t *testing.T) {
	q := newTestQueue(t)
	q.setSettings("with hubs", "//hub")
	q.come("k", []string{"//w"}, "//u", "k")
	q.come("z", nil, "//hub", "z", "//u", "z")
	q.come("y", nil, "//hub", "y", "//w", "y")
	q.fresh("y came")
	q.say(&eventsv1.ChangeCancelled{Change: "y"})
	q.fresh("y left")
}

// TestATreeMadeBeforeAMoveIsKnownToAllThatItHeld: x on top of a is, since x was moved before a, a on top of x.
func TestATreeMadeBeforeAMoveIsKnownToAllThatItHeld(t *testing.T) {
	q := newTestQueue(t)
	a, x := q.come("a", nil, "//t", "a"), q.come("x", nil, "//t", "x")
	q.pass("//t", "ax")
	q.say(&eventsv1.ChangeMoved{Change: "x", Before: "a"})
	q.prepare(x, "m0", "//t", "ax", false, a)
	q.fresh("the tree was made")
	if o := q.outcomes("a"); len(o) != 1 || o[0].State != eventsv1.OutcomeState_OUTCOME_STATE_GREEN {
		t.Errorf("a on top of x is green, and told %v", o)
	}
}

// TestWhatIsKnownOnTopOfAnotherIsForgottenWhereItsTargetMoves: z affects //shared only on top of m, and does not conflict with a, which
// lands in it.
func TestWhatIsKnownOnTopOfAnotherIsForgottenWhereItsTargetMoves(t *testing.T) {
	q := newTestQueue(t)
	a, m := q.come("a", nil, "//shared", "a"), q.come("m", []string{"//last"}, "//shared", "m")
	z := q.come("z", nil, "//last", "z")
	q.say(&eventsv1.BuildPrepared{Build: "b", Change: z, Base: "m0", Assumed: []*eventsv1.ChangeRef{m},
		Outcome: eventsv1.PreparationOutcome_PREPARATION_OUTCOME_PREPARED, Versions: versionsOf("//last", "mz", "//shared", "mz")})
	q.pass("//last", "mz")
	q.pass("//shared", "mz")
	q.fresh("it was built")
	q.land(a, "m1")
	q.fresh("a landed")
}

// TestWhatDoesNotMergeIsToldOnceTheMainlineIsWhereThatWasSeen: the analysis may be read before the landing that it is made on.
func TestWhatDoesNotMergeIsToldOnceTheMainlineIsWhereThatWasSeen(t *testing.T) {
	q := newTestQueue(t)
	q.say(&eventsv1.MainlineMoved{From: "m0", To: "m1"})
	q.say(&eventsv1.MainlineAnalyzed{From: "m0", To: "m1", Affected: &eventsv1.Affected{Targets: versionsOf("//p", "p")}})
	x := q.come("x", nil, "//t", "x")
	q.say(&eventsv1.ChangeAdmitted{Admission: &eventsv1.Admission{Change: "u", Revision: 1, LandingCommits: []*eventsv1.LandingCommit{{Head: "u"}}}})
	q.say(&eventsv1.ChangeAnalyzed{Change: &eventsv1.ChangeRef{Change: "u", Revision: 1}, Base: "m2", Outcome: eventsv1.AnalysisOutcome_ANALYSIS_OUTCOME_UNMERGEABLE})
	q.land(x, "m2")
	q.fresh("x landed")
	if o := q.outcomes("u"); len(o) != 1 || o[0].State != eventsv1.OutcomeState_OUTCOME_STATE_RED {
		t.Errorf("u does not merge with m2, and is told %v", o)
	}
}
