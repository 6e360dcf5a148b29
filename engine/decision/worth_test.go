package decision

import (
	"fmt"
	"math"
	"testing"

	"landfall.build/events/seedtest"
	eventsv1 "landfall.build/events/v1"
)

// waiting is a change that waits for others, with the build of it.
func waiting(name string, position int64, ahead ...string) (*eventsv1.Node, *eventsv1.RankedBuild) {
	n, b := pending(name, position, 1, 1)
	for _, a := range ahead {
		n.Ahead = append(n.Ahead, &eventsv1.Ahead{Change: &eventsv1.ChangeRef{Change: a, Revision: 1}, Conflicts: true})
	}
	return n, b
}

func inPool(workers uint32, nodes ...*eventsv1.Node) *Selection {
	s := New("main", joined)
	s.Apply(&eventsv1.Priority{Position: 1, Delta: &eventsv1.GraphDelta{
		Nodes: nodes, Mainline: &eventsv1.Mainline{Head: "m", Analyzed: true},
		Settings: &eventsv1.QueueSettings{Hash: "s", Best: 9, PoolWorkers: workers, Steps: &eventsv1.StepPolicy{}},
	}, Ranking: &eventsv1.Ranking{}})
	return s
}

func TestM15aABuildIsWorthMoreToAPoolIfOthersWaitForItsChange(t *testing.T) {
	first, firstBuild := waiting("first", 1)
	alone, aloneBuild := waiting("alone", 2)
	second, secondBuild := waiting("second", 3, "first")
	third, _ := waiting("third", 4, "first", "second")
	s := inPool(4, first, alone, second, third)
	if got, want := s.inPool(firstBuild), 1+0.5*1.5; math.Abs(got-want) > 1e-9 {
		t.Errorf("one change waits for the first alone, and one for it and another: %v, want %v", got, want)
	}
	if got := s.inPool(aloneBuild); got != 1 {
		t.Errorf("nobody waits for it: %v, want 1", got)
	}
	if got, want := s.inPool(secondBuild), (1+0.5*0.5)/math.Pow(2, 1.5); math.Abs(got-want) > 1e-9 {
		t.Errorf("it waits for one, and one waits for it and another: %v, want %v", got, want)
	}
	if s := inPool(0, first, second); s.inPool(firstBuild) != 1 {
		t.Errorf("builds that hold slots are worth %v, want what the ranking says", s.inPool(firstBuild))
	}
}

// TestM15aWorthFollowsWhoWaitsForWhom holds the factors that are kept to those computed anew, after random deltas.
func TestM15aWorthFollowsWhoWaitsForWhom(t *testing.T) {
	r := seedtest.Random(t)
	for range 50 {
		s := inPool(4)
		var names []string
		for i := range 60 {
			d := &eventsv1.GraphDelta{}
			switch {
			case len(names) > 3 && r.IntN(4) == 0: // one leaves
				at := r.IntN(len(names))
				how := []eventsv1.GoneHow{eventsv1.GoneHow_GONE_HOW_LANDED, eventsv1.GoneHow_GONE_HOW_REJECTED}[r.IntN(2)]
				d.Gone = []*eventsv1.NodeGone{{Change: &eventsv1.ChangeRef{Change: names[at], Revision: 1}, How: how}}
				names = append(names[:at], names[at+1:]...)
			default: // one comes, or waits for others than before
				at := len(names)
				if at > 0 && r.IntN(3) == 0 {
					at = r.IntN(at)
				} else {
					names = append(names, fmt.Sprint("c", i))
				}
				var ahead []string
				for _, a := range names[:at] {
					if r.IntN(2) == 0 {
						ahead = append(ahead, a)
					}
				}
				n, _ := waiting(names[at], int64(i), ahead...)
				d.Nodes = []*eventsv1.Node{n}
			}
			s.Apply(&eventsv1.Priority{Position: int64(i + 2), Delta: d, Ranking: &eventsv1.Ranking{}})
			for _, name := range names {
				n := s.graph.Node(name)
				if got, want := s.inPool(&eventsv1.RankedBuild{Change: n.Change, Value: 1}), s.graph.PoolFactor(n); got != want {
					t.Fatalf("%s is worth %v, computed anew %v", name, got, want)
				}
			}
		}
	}
}

func TestM15aABuildForABypassIsWorthHalfOfWhatItIsNeededFor(t *testing.T) {
	large, _ := waiting("large", 1)
	small, likely := waiting("small", 2, "large")
	s := inPool(4, large, small)
	likely.Value = 0.9
	bypass := &eventsv1.RankedBuild{Change: small.Change, Needed: 1, Value: 0.01}
	of := func(b *eventsv1.RankedBuild) float64 { return s.inPool(b) * math.Pow(2, 1.5) }
	if got := of(likely); math.Abs(got-0.9) > 1e-9 {
		t.Errorf("the likeliest path: %v, want what the ranking says", got)
	}
	if got, want := of(bypass), 0.5/math.Sqrt2; math.Abs(got-want) > 1e-9 {
		t.Errorf("the path without the large change: %v, want %v", got, want)
	}
}
