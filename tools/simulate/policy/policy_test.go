package policy

import (
	"slices"
	"strings"
	"testing"

	eventsv1 "landfall.build/events/v1"
	"landfall.build/tools/simulate/trace"
)

func ref(id string) *eventsv1.ChangeRef { return &eventsv1.ChangeRef{Change: id, Revision: 1} }

// node is a pending change that meets those ahead; of its one class nothing is known but what is said.
func node(position int64, id string, ahead []string, known ...*eventsv1.Outcome) *eventsv1.Node {
	n := &eventsv1.Node{Change: ref(id), Position: position, Analyzed: true}
	k := &eventsv1.Class{Targets: []*eventsv1.TargetVersion{{Target: id, Part: 1}}, Outcomes: known}
	for i, a := range ahead {
		n.Ahead = append(n.Ahead, &eventsv1.Ahead{Change: ref(a), Conflicts: true})
		k.Members = append(k.Members, uint32(i))
	}
	n.Classes = []*eventsv1.Class{k}
	return n
}

func plan(p Policy, nodes ...*eventsv1.Node) []string {
	var paths []string
	for _, b := range p.Plan(&eventsv1.Profile{Delta: &eventsv1.GraphDelta{Nodes: nodes}}).GetRanking().GetBest() {
		names := []string{b.Change.Change}
		for _, a := range b.Assumed {
			names = append(names, a.Change)
		}
		paths = append(paths, strings.Join(names, "+"))
	}
	return paths
}

func gone(p Policy, how eventsv1.GoneHow, ids ...string) {
	d := &eventsv1.GraphDelta{}
	for _, id := range ids {
		d.Gone = append(d.Gone, &eventsv1.NodeGone{Change: ref(id), How: how})
	}
	p.Plan(&eventsv1.Profile{Delta: d})
}

var red = &eventsv1.Outcome{State: eventsv1.OutcomeState_OUTCOME_STATE_RED}

func TestTheSingleQueueBuildsOnlyWhatMeetsNothing(t *testing.T) {
	got := plan(newSingleQueue(Settings{Workers: 5}), node(1, "a", nil), node(2, "b", []string{"a"}), node(3, "c", nil))
	if !slices.Equal(got, []string{"a", "c"}) {
		t.Errorf("%v", got)
	}
}

func TestTheOptimisticPolicyLeavesOutWhatFailed(t *testing.T) {
	p := newOptimistic(Settings{Workers: 5})
	got := plan(p, node(1, "a", nil), node(2, "b", []string{"a"}), node(3, "c", []string{"a", "b"}))
	if !slices.Equal(got, []string{"a", "b+a", "c+a+b"}) {
		t.Errorf("%v", got)
	}
	if got = plan(p, node(1, "a", nil, red)); !slices.Equal(got, []string{"b", "c+b"}) {
		t.Errorf("once a has failed: %v", got)
	}
}

func TestTheWindowIsZuuls(t *testing.T) {
	p := newOptimistic(Settings{Workers: 5}).(*optimistic)
	gone(p, eventsv1.GoneHow_GONE_HOW_LANDED, "x", "y")
	if p.window != 22 {
		t.Errorf("after two landings it is %d", p.window)
	}
	gone(p, eventsv1.GoneHow_GONE_HOW_REJECTED, "z")
	if p.window != 11 {
		t.Errorf("after a failure it is %d", p.window)
	}
	gone(p, eventsv1.GoneHow_GONE_HOW_REJECTED, "1", "2", "3", "4")
	if p.window != 3 {
		t.Errorf("after many failures it is %d", p.window)
	}
	got := plan(p, node(1, "a", nil), node(2, "b", nil), node(3, "c", nil), node(4, "d", []string{"a", "b", "c"}), node(5, "e", []string{"a"}))
	if !slices.Equal(got, []string{"a", "b", "c", "e+a"}) {
		t.Errorf("d has three ahead of it, as many as the window: %v", got)
	}
}

func TestABatchThatFailsIsHalvedAndItsSecondHalfWaits(t *testing.T) {
	p := newBisecting(Settings{Workers: 5}).(*bisecting)
	plan(p, node(1, "a", nil))
	got := plan(p, node(2, "b", []string{"a"}), node(3, "c", nil))
	if want := [][]string{{"a"}, {"c"}}; !slices.EqualFunc(p.Batches(), want, slices.Equal) {
		t.Errorf("b meets a, which runs: %v, %v", got, p.Batches())
	}
	p = newBisecting(Settings{Workers: 5}).(*bisecting)
	got = plan(p, node(1, "a", nil), node(2, "b", []string{"a"}), node(3, "c", []string{"a", "b"}), node(4, "d", []string{"c"}))
	if !slices.Equal(got, []string{"a", "b+a", "c+a+b", "d+c"}) {
		t.Errorf("%v", got)
	}
	p.Failed([]string{"a", "b", "c", "d"})
	if got = plan(p); !slices.Equal(got, []string{"a", "b+a"}) {
		t.Errorf("after the failure: %v", got)
	}
	p.Failed([]string{"a", "b"})
	gone(p, eventsv1.GoneHow_GONE_HOW_REJECTED, "a")
	if got = plan(p, node(2, "b", nil)); !slices.Equal(got, []string{"b"}) {
		t.Errorf("once the culprit is out: %v", got)
	}
}

func TestTheOracleBuildsThePathThatComesAbout(t *testing.T) {
	var truth trace.Truth
	changes := map[string]*trace.Change{}
	for i, c := range []trace.Change{{ID: "a", Green: true}, {ID: "b"}, {ID: "c", Green: true}} {
		c.Number = i
		changes[c.ID] = &c
		truth.Take(&c)
	}
	p := newOracle(Settings{Workers: 2, Truth: &truth, Lookup: func(id string) *trace.Change { return changes[id] }})
	got := plan(p, node(1, "a", nil, red), node(2, "b", []string{"a"}), node(3, "c", []string{"a", "b"}), node(4, "d", nil))
	if !slices.Equal(got, []string{"b+a", "c+a"}) {
		t.Errorf("%v; a is known, and there are two workers", got)
	}
}

func TestThePoliciesOfThePapersDifferInTheirTraits(t *testing.T) {
	passes := map[string]bool{"blrd-2023": true, "ci-at-scale-2025": true, "landfall": true}
	for _, name := range Names() {
		k, err := Named(name)
		if err != nil || k.Traits.Passes != passes[name] {
			t.Errorf("%s may pass: %v, %v", name, k.Traits.Passes, err)
		}
	}
	if _, err := Named("zuul"); err == nil {
		t.Error("there is a policy zuul")
	}
}
