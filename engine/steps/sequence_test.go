package steps

import (
	"fmt"
	"slices"
	"testing"

	"landfall.build/events/seedtest"
	eventsv1 "landfall.build/events/v1"
)

func TestM27ADependencyComesBeforeWhatNeedsItHoweverShortItIs(t *testing.T) {
	q := New()
	for target, took := range map[string]int64{"lib": 1, "svc": 500, "web": 400, "odd": 300} {
		finish(q, target, 1, passed, took)
	}
	decide(q, scheduled("b", 1))
	p := &eventsv1.BuildPrepared{Build: "b", Outcome: eventsv1.PreparationOutcome_PREPARATION_OUTCOME_PREPARED}
	for _, target := range []string{"odd", "web", "svc", "lib"} {
		p.Versions = append(p.Versions, &eventsv1.TargetVersion{Target: target, Hash: "other"})
		p.Needs = append(p.Needs, &eventsv1.VersionNeeds{})
	}
	p.Needs[1].Versions, p.Needs[2].Versions = []uint32{3}, []uint32{3}
	q.Apply(p, Origin{})
	expect(t, "order", next(q, 0), "lib#1 svc#1 web#1 odd#1")
}

// Every dependency that is no part of a cycle comes first, nothing is lost, and without dependencies the order is the one by
// length.
func TestTheOrderOfABuildEqualsItsRuleOnRandomGraphs(t *testing.T) {
	r := seedtest.Random(t)
	for range 500 {
		q := New()
		n := 1 + r.IntN(12)
		var versions []*eventsv1.TargetVersion
		var needs []*eventsv1.VersionNeeds
		for i := range n {
			name := fmt.Sprintf("t%02d", r.Perm(100)[0])
			versions = append(versions, &eventsv1.TargetVersion{Target: name, Hash: fmt.Sprint("h", i), Trivial: r.IntN(8) == 0})
			needs = append(needs, &eventsv1.VersionNeeds{})
			if r.IntN(3) > 0 {
				finish(q, name, 1, passed, int64(r.IntN(5)))
			}
		}
		bare := q.ordered(versions, nil, nil)
		if !slices.IsSortedFunc(bare, func(a, b asked) int { return -int(q.predictedUs(a.Target)>>8 - q.predictedUs(b.Target)>>8) }) {
			t.Fatalf("not the longest first: %v", bare)
		}
		edges := map[[2]int]bool{}
		for range r.IntN(2 * n) {
			if a, b := r.IntN(n), r.IntN(n+1); a != b { // one place is out of range
				edges[[2]int{a, b}] = true
				needs[a].Versions = append(needs[a].Versions, uint32(b))
			}
		}
		reaches := closure(edges, n)
		list := q.ordered(versions, needs, nil)
		if len(list) != len(bare) {
			t.Fatalf("%d of %d versions", len(list), len(bare))
		}
		at := map[string]int{}
		for i, a := range list {
			at[a.Hash] = i
		}
		for e := range edges {
			from, to := fmt.Sprint("h", e[0]), fmt.Sprint("h", e[1])
			_, a := at[from]
			_, b := at[to]
			if e[1] < n && a && b && !reaches[[2]int{e[1], e[0]}] && at[from] < at[to] {
				t.Fatalf("%s comes before %s, which it depends on: %v, %v", from, to, list, edges)
			}
		}
	}
}

func closure(edges map[[2]int]bool, n int) map[[2]int]bool {
	reaches := map[[2]int]bool{}
	for e := range edges {
		reaches[e] = true
	}
	for k := range n {
		for a := range n {
			for b := range n {
				if reaches[[2]int{a, k}] && reaches[[2]int{k, b}] {
					reaches[[2]int{a, b}] = true
				}
			}
		}
	}
	return reaches
}
