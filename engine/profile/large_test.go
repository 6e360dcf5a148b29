package profile

import (
	"fmt"
	"math/rand/v2"
	"testing"

	eventsv1 "landfall.build/events/v1"
)

// largeProfile is the profile of a large queue: 1,000 pending changes with some 50 targets each and up to 40 changes ahead, and the
// durations, files, targets and authors of 20,000 that have left.
func largeProfile(t testing.TB) *Profile {
	t.Helper()
	r := rand.New(rand.NewPCG(1, 1))
	p := New()
	stamp := int64(1_700_000_000_000_000)
	apply := func(d *eventsv1.GraphDelta, facts ...*eventsv1.Fact) {
		stamp += r.Int64N(60_000_000)
		p.Apply(&eventsv1.Speculation{StampUs: stamp, Facts: facts, Delta: d})
		if out := p.Decide(); out != nil {
			p.Fold(out)
		}
	}
	apply(&eventsv1.GraphDelta{Settings: &eventsv1.QueueSettings{Hash: "s", Workers: 8, PriorSuccess: 0.9, PriorConflict: 0.05, PriorDurationMeanUs: 60e6, PriorDurationStdUs: 10e6}})
	target := func() string {
		// Most changes are of few packages.
		pkg := int(r.ExpFloat64()*300) % 5000
		return fmt.Sprintf("//services/area%d/package%d:target%d", pkg%40, pkg, r.IntN(20))
	}
	hash := func() string { return fmt.Sprintf("%032x%032x", r.Uint64(), r.Uint64()) }
	arrive := func(c int) *eventsv1.Node {
		ref := &eventsv1.ChangeRef{Change: fmt.Sprintf("github.com/example/monorepo/%d", c), Revision: 1}
		apply(&eventsv1.GraphDelta{Nodes: []*eventsv1.Node{{Change: ref, Position: int64(c)}}}, &eventsv1.Fact{Fact: &eventsv1.Fact_ChangeAdmitted{ChangeAdmitted: &eventsv1.ChangeAdmitted{Admission: &eventsv1.Admission{
			Queue: "main", Change: ref.Change, Revision: 1, Author: fmt.Sprint("author", r.IntN(1500)), Team: fmt.Sprint("team", r.IntN(100)), Title: "Make the thing do what it should do", ReceivedUs: stamp,
			Description: "What a person writes about a change: some lines.", LandingCommits: []*eventsv1.LandingCommit{{Head: hash()[:40]}}}}}})
		a := &eventsv1.Affected{}
		class := &eventsv1.Class{}
		seen := map[string]bool{}
		for range 50 {
			if name := target(); !seen[name] {
				seen[name] = true
				v := &eventsv1.TargetVersion{Target: name, Hash: hash(), Part: 1}
				a.Targets, class.Targets = append(a.Targets, v), append(class.Targets, v)
				if r.IntN(8) == 0 {
					a.Leaves = append(a.Leaves, "file:"+name[2:]+".go")
				}
			}
		}
		node := &eventsv1.Node{Change: ref, Position: int64(c), Analyzed: true, Classes: []*eventsv1.Class{class}}
		order := p.graph.Order()
		for range min(max(0, len(order)-1), 10+r.IntN(60)) {
			o := order[r.IntN(len(order)-1)]
			if !containsMember(node, o.Change.Change) {
				node.Ahead = append(node.Ahead, &eventsv1.Ahead{Change: o.Change, Conflicts: true, Targets: []string{class.Targets[0].Target}})
			}
		}
		for i := range node.Ahead {
			class.Members = append(class.Members, uint32(i))
		}
		apply(&eventsv1.GraphDelta{Nodes: []*eventsv1.Node{node}}, &eventsv1.Fact{Fact: &eventsv1.Fact_ChangeAnalyzed{ChangeAnalyzed: &eventsv1.ChangeAnalyzed{
			Change: ref, Outcome: eventsv1.AnalysisOutcome_ANALYSIS_OUTCOME_ANALYZED, Affected: a, FilesChanged: 5, LinesAdded: 90, Difference: &eventsv1.Difference{SourceLines: 90}}}})
		return node
	}
	build := func(n *eventsv1.Node) {
		id := hash()[:32]
		v := n.Classes[0].Targets
		apply(&eventsv1.GraphDelta{Builds: []*eventsv1.BuildProgress{{Build: id, Change: n.Change, State: eventsv1.BuildState_BUILD_STATE_PREPARED}}},
			&eventsv1.Fact{Fact: &eventsv1.Fact_BuildPrepared{BuildPrepared: &eventsv1.BuildPrepared{Build: id, Change: n.Change, Outcome: eventsv1.PreparationOutcome_PREPARATION_OUTCOME_PREPARED}}})
		d := &eventsv1.GraphDelta{}
		var facts []*eventsv1.Fact
		for _, x := range v[:1+r.IntN(len(v))] {
			facts = append(facts, &eventsv1.Fact{Fact: &eventsv1.Fact_StepFinished{StepFinished: &eventsv1.StepFinished{Target: x.Target, Hash: x.Hash, Build: id, Outcome: eventsv1.StepOutcome_STEP_OUTCOME_PASSED, StartedUs: stamp, FinishedUs: stamp + 1e6}}})
			d.Durations = append(d.Durations, &eventsv1.StepDuration{Target: x.Target, DurationUs: r.Int64N(90_000_000)})
		}
		apply(d, facts...)
		if r.IntN(4) > 0 {
			apply(&eventsv1.GraphDelta{Builds: []*eventsv1.BuildProgress{{Build: id, Change: n.Change, State: eventsv1.BuildState_BUILD_STATE_FINISHED}}})
		}
	}
	for c := range 21_000 {
		if c < 20_000 && p.graph.Settings != nil {
			// Alone in the queue, and gone at once.
			n := arrive(c)
			build(n)
			apply(&eventsv1.GraphDelta{Gone: []*eventsv1.NodeGone{{Change: n.Change, How: eventsv1.GoneHow_GONE_HOW_LANDED}}})
			continue
		}
		n := arrive(c)
		if r.IntN(2) == 0 {
			build(n)
		}
	}
	return p
}

func containsMember(n *eventsv1.Node, id string) bool {
	for _, a := range n.Ahead {
		if a.Change.Change == id {
			return true
		}
	}
	return false
}
