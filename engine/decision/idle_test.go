package decision

import (
	"testing"

	eventsv1 "landfall.build/events/v1"
)

// idlePool is a selection of a queue with four workers, and what it decides.
type idlePool struct {
	*Selection
	t        *testing.T
	position int64
}

func newIdlePool(t *testing.T, workers uint32) *idlePool {
	p := &idlePool{Selection: New("main", joined), t: t}
	p.say(&eventsv1.GraphDelta{
		Settings: &eventsv1.QueueSettings{Hash: "s", Best: 8, PoolWorkers: workers, Workers: 4, Steps: &eventsv1.StepPolicy{}},
		Mainline: &eventsv1.Mainline{Head: "m", Analyzed: true},
	}, nil)
	return p
}

// say applies a delta, with a ranking or the one before, and returns the builds that are scheduled and aborted.
func (p *idlePool) say(d *eventsv1.GraphDelta, ranking *eventsv1.Ranking) (scheduled []*eventsv1.BuildScheduled, aborted []*eventsv1.BuildAborted) {
	p.position++
	p.Apply(&eventsv1.Priority{Position: p.position, Delta: d, Ranking: ranking})
	decided := p.Decide()
	p.Fold(decided)
	for _, i := range decided.GetItems() {
		if b := i.GetBuildScheduled(); b != nil {
			scheduled = append(scheduled, b)
		}
		if b := i.GetBuildAborted(); b != nil {
			aborted = append(aborted, b)
		}
	}
	return scheduled, aborted
}

func toProve(names ...string) *eventsv1.Survey {
	s := &eventsv1.Survey{Unproven: uint32(len(names))}
	for _, n := range names {
		s.Targets = append(s.Targets, &eventsv1.TargetVersion{Target: n, Hash: "m"})
	}
	return s
}

// changeOf is a change with so many targets, and its one build.
func changeOf(id string, targets int) (*eventsv1.GraphDelta, *eventsv1.Ranking) {
	n := &eventsv1.Node{Change: &eventsv1.ChangeRef{Change: id, Revision: 1}, Position: 1, Analyzed: true, LandingCommits: []*eventsv1.LandingCommit{{Head: id}}}
	k := &eventsv1.Class{}
	for i := range targets {
		k.Targets = append(k.Targets, &eventsv1.TargetVersion{Target: string(rune('a' + i)), Part: 1})
	}
	n.Classes = []*eventsv1.Class{k}
	return &eventsv1.GraphDelta{Nodes: []*eventsv1.Node{n}}, &eventsv1.Ranking{Exact: true, Best: []*eventsv1.RankedBuild{{Change: n.Change, Needed: 1, Value: 1}}}
}

// M23b: the mainline is proven while changes leave workers idle, one build at a time, and makes room at once for a change that
// needs them all.
func TestM23bTheMainlineIsProvenWhileWorkersAreIdle(t *testing.T) {
	p := newIdlePool(t, 4)
	scheduled, _ := p.say(&eventsv1.GraphDelta{Survey: toProve("x", "y")}, nil)
	if len(scheduled) != 1 || !scheduled[0].Idle || len(scheduled[0].Targets) != 2 || scheduled[0].Value != 0 || scheduled[0].Change.Change.Change != "" {
		t.Fatalf("scheduled: %v", scheduled)
	}
	first := scheduled[0].Build
	if again, aborted := p.say(&eventsv1.GraphDelta{Survey: toProve("y", "z")}, nil); len(again)+len(aborted) != 0 {
		t.Fatalf("while it runs: %v, %v", again, aborted)
	}

	small, ranking := changeOf("small", 3)
	if scheduled, aborted := p.say(small, ranking); len(scheduled) != 1 || scheduled[0].Idle || len(aborted) != 0 {
		t.Fatalf("for a change that leaves a worker idle: %v, %v", scheduled, aborted)
	}
	large, ranking := changeOf("large", 4)
	large.Gone = []*eventsv1.NodeGone{{Change: &eventsv1.ChangeRef{Change: "small", Revision: 1}, How: eventsv1.GoneHow_GONE_HOW_CANCELLED}}
	scheduled, aborted := p.say(large, ranking)
	if len(scheduled) != 1 || scheduled[0].Idle || len(aborted) != 2 || aborted[1].Build != first && aborted[0].Build != first {
		t.Fatalf("for a change that takes all workers: %v, %v", scheduled, aborted)
	}
	gone := &eventsv1.GraphDelta{Gone: []*eventsv1.NodeGone{{Change: &eventsv1.ChangeRef{Change: "large", Revision: 1}, How: eventsv1.GoneHow_GONE_HOW_LANDED}}}
	if scheduled, _ := p.say(gone, &eventsv1.Ranking{Exact: true}); len(scheduled) != 1 || !scheduled[0].Idle || scheduled[0].Build == first {
		t.Fatalf("once it has landed: %v", scheduled)
	}
}

// A build of the survey ends when nothing of it is left to prove, or it is over; what is left has the next one.
func TestM23bTheNextBuildOfTheSurveyFollowsTheLast(t *testing.T) {
	p := newIdlePool(t, 2)
	scheduled, _ := p.say(&eventsv1.GraphDelta{Survey: toProve("x")}, nil)
	id := scheduled[0].Build
	over := &eventsv1.GraphDelta{Survey: toProve("y"), Builds: []*eventsv1.BuildProgress{{Build: id, State: eventsv1.BuildState_BUILD_STATE_FINISHED}}}
	scheduled, aborted := p.say(over, nil)
	if len(scheduled) != 1 || len(aborted) != 0 || scheduled[0].Targets[0].Target != "y" {
		t.Fatalf("behind the first: %v, %v", scheduled, aborted)
	}
	if scheduled, aborted := p.say(&eventsv1.GraphDelta{Survey: toProve()}, nil); len(scheduled) != 0 || len(aborted) != 1 {
		t.Fatalf("with nothing left: %v, %v", scheduled, aborted)
	}
}

// The check of a direct push comes before anything, so it does not take an idle build for its own.
func TestTheCheckOfAPushIsNotLeftToAnIdleBuild(t *testing.T) {
	p := newIdlePool(t, 4)
	p.say(&eventsv1.GraphDelta{Survey: toProve("x")}, nil)
	check := &eventsv1.Node{Change: &eventsv1.ChangeRef{}, Mainline: true, Analyzed: true, Classes: []*eventsv1.Class{{Targets: []*eventsv1.TargetVersion{{Target: "x", Hash: "m"}}}}}
	scheduled, _ := p.say(&eventsv1.GraphDelta{Nodes: []*eventsv1.Node{check}}, &eventsv1.Ranking{Exact: true, Best: []*eventsv1.RankedBuild{{Change: &eventsv1.ChangeRef{}, Needed: 1, Value: 1}}})
	if len(scheduled) != 1 || scheduled[0].Idle {
		t.Fatalf("scheduled: %v", scheduled)
	}
}

// Builds of a queue without a pool hold slots, and its idle workers are not known.
func TestAQueueWithoutAPoolProvesNothingWhileIdle(t *testing.T) {
	p := newIdlePool(t, 0)
	if scheduled, _ := p.say(&eventsv1.GraphDelta{Survey: toProve("x")}, nil); len(scheduled) != 0 {
		t.Fatalf("scheduled: %v", scheduled)
	}
}
