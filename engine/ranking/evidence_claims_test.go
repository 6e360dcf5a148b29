package ranking

import (
	"fmt"
	"testing"

	"landfall.build/engine/graph"
	"landfall.build/engine/memberset"
	"landfall.build/engine/ranking/rankingtest"
	"landfall.build/events/seedtest"
	eventsv1 "landfall.build/events/v1"
)

// landsOn is the path of a listed build.
func landsOn(n *graph.Node, b *eventsv1.RankedBuild) memberset.Set {
	set := memberset.New(len(n.Ahead))
	for _, a := range b.Assumed {
		set.Add(n.IndexOf(a.Change))
	}
	return set
}

// TestM5M5aWhatFailsWithoutABuildIsNotBuilt: paths with a member that a change does not merge with, and paths without one
// that it requires, are red by themselves, and no build of one is listed, on queues that change at random.
func TestM5M5aWhatFailsWithoutABuildIsNotBuilt(t *testing.T) {
	r := seedtest.Random(t)
	failing, listed := 0, 0
	for range 100 {
		q, ranking := rankingtest.New(r), New()
		for step := range 30 {
			p := q.Profile()
			if step == 0 {
				p.Delta.Settings = &eventsv1.QueueSettings{Best: 1000}
			}
			ranking.Apply(p)
			fails := func(n *graph.Node, s memberset.Set) bool {
				for j, a := range n.Ahead {
					if a.MergeConflict && s.Has(j) || a.Required && !s.Has(j) {
						return true
					}
				}
				return false
			}
			for _, n := range ranking.graph.Order() {
				for bits := range byte(1) << len(n.Ahead) {
					if s := memberset.FromBytes(len(n.Ahead), []byte{bits}); fails(n, s) {
						if failing++; n.Path(s) != graph.Red {
							t.Fatalf("%v: the path %b is %v", n.Node, bits, n.Path(s))
						}
					}
				}
			}
			for _, b := range ranking.best().Best {
				n := ranking.graph.NodeAt(b.Change)
				if s := landsOn(n, b); fails(n, s) {
					t.Fatalf("%v is listed: %v", b, n.Node)
				}
				listed++
			}
		}
	}
	if failing < 1000 || listed < 1000 {
		t.Errorf("only %d paths fail by themselves, and %d builds were listed", failing, listed)
	}
}

// TestM9OnlyEvidenceKills: that a is predicted to fail for sure makes the path on top of it worthless, but c is not decided
// without it; that a is red makes it dead.
func TestM9OnlyEvidenceKills(t *testing.T) {
	for _, red := range []bool{false, true} {
		m := queueOf([]float64{0, 0.9}, nil, []int{0})
		if red {
			m.known[0][0] = false
		}
		r := New()
		r.Apply(m.profile(0, 100))
		for _, b := range r.best().Best {
			if b.Change.Change == "c1" && len(b.Assumed) > 0 {
				t.Errorf("red %v: a build on top of what surely fails is listed", red)
			}
		}
		lands := memberset.New(1)
		lands.Add(0)
		if alive := r.graph.Live(r.graph.Node("c1"), graph.Constraint{Fixed: lands, Value: lands}); alive == red {
			t.Errorf("red %v: the path on top of it can come about: %v", red, alive)
		}
	}
}

// TestM25aOneBuildIsListedForAllPathsThatItSettles: whatever versions a path waits for, one build is listed for them, and no two
// builds of a change wait for the same. With classes that are settled many paths wait for the same.
func TestM25aOneBuildIsListedForAllPathsThatItSettles(t *testing.T) {
	r := seedtest.Random(t)
	paths, builds := 0, 0
	for range 200 {
		q, ranking := rankingtest.New(r), eager()
		for step := range 20 {
			p := q.Profile()
			if step == 0 {
				p.Delta.Settings = &eventsv1.QueueSettings{Best: 1000}
			}
			// Nothing is certain by prediction alone, so that every path that can come about is worth something.
			for _, x := range p.Predictions {
				x.Success = 0.05 + 0.9*x.Success
			}
			for _, x := range p.Pairs {
				x.Conflict *= 0.9
			}
			for _, n := range p.Delta.Nodes {
				n.MissingRequirement = ""
				for _, a := range n.Ahead {
					a.Required = false
				}
			}
			ranking.Apply(p)
			got := map[string]int{}
			for _, b := range ranking.best().Best {
				n := ranking.graph.NodeAt(b.Change)
				if n.Guard != nil {
					continue
				}
				versions, _ := n.Outstanding(landsOn(n, b))
				if key := fmt.Sprint(n.Change.Change, versions); got[key] > 0 {
					t.Fatalf("%s is waited for by two builds", key)
				} else {
					got[key]++
				}
				builds++
			}
			for _, n := range ranking.graph.Order() {
				c := ranking.changes[n.Change.Change]
				if n.Guard != nil || !n.Analyzed || n.Intended || n.MissingRequirement != "" || !c.buildable {
					continue
				}
				for bits := range byte(1) << len(n.Ahead) {
					s := memberset.FromBytes(len(n.Ahead), []byte{bits})
					all := memberset.New(len(n.Ahead))
					current := true
					for j := range n.Ahead {
						all.Add(j)
						current = current && (c.members[j].pending() != nil || !s.Has(j))
					}
					if !current || n.Path(s) != graph.Unknown || !ranking.graph.Live(n, graph.Constraint{Fixed: all, Value: s}) {
						continue
					}
					versions, targets := n.Outstanding(s)
					if len(targets) == 0 {
						continue
					}
					if paths++; got[fmt.Sprint(n.Change.Change, versions)] == 0 {
						t.Fatalf("nothing is listed for %v, which the path %b waits for: %v", versions, bits, n.Node)
					}
				}
			}
		}
	}
	if builds < 5000 || paths < builds*5/4 {
		t.Errorf("%d paths wait for %d builds", paths, builds)
	}
}
