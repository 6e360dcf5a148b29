package decision

import (
	"fmt"
	"strings"
	"testing"

	eventsv1 "landfall.build/events/v1"
)

// pool plays priorities to the selection of a queue whose pool has some workers, and returns what each schedules and revalues.
func pool(workers uint32) func(p *eventsv1.Priority) (scheduled, revalued []string) {
	play, first := player(New("main", joined)), true
	return func(p *eventsv1.Priority) (scheduled, revalued []string) {
		if first {
			p.Delta.Mainline = &eventsv1.Mainline{Head: "m", Analyzed: true}
			p.Delta.Settings = &eventsv1.QueueSettings{Hash: "s", Workers: 1, Best: 100, PoolWorkers: workers, Steps: &eventsv1.StepPolicy{}}
			first = false
		}
		for _, i := range play(p) {
			if b := i.GetBuildScheduled(); b != nil {
				scheduled = append(scheduled, b.Change.Change.Change)
			}
			if b := i.GetBuildRevalued(); b != nil {
				revalued = append(revalued, fmt.Sprint(strings.Contains(b.Build, "large"), " ", b.Value))
			}
		}
		return scheduled, revalued
	}
}

// pending is a change that affects so many targets, and the build of it.
func pending(name string, position int64, targets int, value float64) (*eventsv1.Node, *eventsv1.RankedBuild) {
	c := &eventsv1.ChangeRef{Change: name, Revision: 1}
	class := &eventsv1.Class{}
	for i := range targets {
		class.Targets = append(class.Targets, &eventsv1.TargetVersion{Target: fmt.Sprint(name, i), Part: 1})
	}
	return &eventsv1.Node{Change: c, Position: position, Analyzed: true, Classes: []*eventsv1.Class{class}}, &eventsv1.RankedBuild{Change: c, Needed: 1, Value: value}
}

func TestM26aASmallBuildIsScheduledThoughALargeOneHasMoreStepsThanWorkersComeTo(t *testing.T) {
	play := pool(4)
	large, largeBuild := pending("large", 1, 500, 1)
	small, smallBuild := pending("small", 2, 1, 1)
	scheduled, _ := play(&eventsv1.Priority{
		Delta:   &eventsv1.GraphDelta{Nodes: []*eventsv1.Node{large, small}},
		Ranking: &eventsv1.Ranking{Best: []*eventsv1.RankedBuild{largeBuild, smallBuild}},
	})
	if got := strings.Join(scheduled, " "); got != "large small" {
		t.Errorf("scheduled: %s", got)
	}
}

func TestM26aABuildWaitsWhileBetterOnesHaveStepsEnough(t *testing.T) {
	play := pool(4)
	d, best := &eventsv1.GraphDelta{}, []*eventsv1.RankedBuild{}
	for i := range 60 {
		n, b := pending(fmt.Sprint("small", i), int64(i+1), 1, 1)
		d.Nodes, best = append(d.Nodes, n), append(best, b)
	}
	large, largeBuild := pending("large", 61, 5, 1)
	d.Nodes, best = append(d.Nodes, large), append(best, largeBuild)
	scheduled, _ := play(&eventsv1.Priority{Delta: d, Ranking: &eventsv1.Ranking{Best: best}})
	if len(scheduled) != stepsPerWorker*4 || scheduled[len(scheduled)-1] != "small47" {
		t.Errorf("scheduled: %v", scheduled)
	}
	gone := &eventsv1.GraphDelta{}
	for i := range 58 {
		gone.Gone = append(gone.Gone, &eventsv1.NodeGone{Change: d.Nodes[i].Change, How: eventsv1.GoneHow_GONE_HOW_CANCELLED})
	}
	scheduled, _ = play(&eventsv1.Priority{Delta: gone, Ranking: &eventsv1.Ranking{Best: best[58:]}})
	if got := strings.Join(scheduled, " "); got != "small58 small59 large" {
		t.Errorf("once the others are gone: %s", got)
	}
}

func TestM33WorkersAreToldWhatABuildIsWorthWhenThatChangesByHalf(t *testing.T) {
	play := pool(4)
	large, b := pending("large", 1, 5, 0.5)
	play(&eventsv1.Priority{Delta: &eventsv1.GraphDelta{Nodes: []*eventsv1.Node{large}}, Ranking: &eventsv1.Ranking{Best: []*eventsv1.RankedBuild{b}}})
	for _, step := range []struct {
		value float64
		want  string
	}{{0.6, ""}, {0.75, "true 0.75"}, {0.6, ""}, {0.51, ""}, {0.5, "true 0.5"}, {0.001, "true 0.001"}, {1, "true 1"}} {
		now := &eventsv1.RankedBuild{Change: b.Change, Needed: step.value, Value: step.value}
		_, revalued := play(&eventsv1.Priority{Ranking: &eventsv1.Ranking{Best: []*eventsv1.RankedBuild{now}}})
		if got := strings.Join(revalued, ", "); got != step.want {
			t.Errorf("worth %v: %q, want %q", step.value, got, step.want)
		}
	}
}

// TestABuildGoesOnWhileAChangeThatWasMovedAheadOfItIsAnalysed: until then its own node holds nothing.
func TestABuildGoesOnWhileAChangeThatWasMovedAheadOfItIsAnalysed(t *testing.T) {
	s := New("main", joined)
	n, b := pending("running", 1, 3, 1)
	s.Apply(&eventsv1.Priority{Position: 1, Delta: &eventsv1.GraphDelta{
		Nodes: []*eventsv1.Node{n}, Mainline: &eventsv1.Mainline{Head: "m", Analyzed: true},
		Settings: &eventsv1.QueueSettings{Hash: "s", Best: 9, PoolWorkers: 1, Steps: &eventsv1.StepPolicy{}},
	}, Ranking: &eventsv1.Ranking{Best: []*eventsv1.RankedBuild{b}}})
	s.Fold(s.Decide())
	s.Apply(&eventsv1.Priority{Position: 2, Delta: &eventsv1.GraphDelta{Nodes: []*eventsv1.Node{
		{Change: &eventsv1.ChangeRef{Change: "hotfix", Revision: 1}, Position: 0}, {Change: n.Change, Position: 1},
	}}, Ranking: &eventsv1.Ranking{}})
	if d := s.Decide(); d != nil {
		t.Errorf("decided: %v", d)
	}
}
