package steps

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"landfall.build/engine/evidence"
	"landfall.build/events/seedtest"
)

// chain is how long the longest chain is that begins with a version; from are those before it.
func (s *twinState) chain(b *twinBuild, v evidence.Version, from ...evidence.Version) int64 {
	longest := int64(0)
	for _, dependant := range b.asks {
		if slices.Contains(b.needs[dependant], v) && !slices.Contains(from, dependant) {
			longest = max(longest, s.chain(b, dependant, append(slices.Clone(from), dependant)...))
		}
	}
	return s.us[v] + longest
}

// order returns what a build asks for in the order in which it is to be started.
func (s *twinState) order(b *twinBuild) []evidence.Version {
	key := func(v evidence.Version) (group int, weight float64) {
		weight = s.risk[v] / float64(s.us[v])
		if s.risk[v] >= 0.5 {
			return 0, weight
		}
		return 1, weight
	}
	byName := func(x, y evidence.Version) int {
		return cmp.Or(strings.Compare(x.Target, y.Target), strings.Compare(x.Hash, y.Hash))
	}
	chain := map[evidence.Version]int64{}
	for _, v := range b.asks {
		chain[v] = s.chain(b, v, v)
	}
	list := slices.SortedFunc(slices.Values(b.asks), func(x, y evidence.Version) int {
		g, w := key(x)
		h, u := key(y)
		return cmp.Or(cmp.Compare(g, h), cmp.Compare(u, w), byName(x, y))
	})
	// The end is as long as the work of each end within it is at most sixteen times its longest chain.
	end := len(list)
	for at := len(list) - 1; at >= 0 && s.risk[list[at]] < 0.5; at-- {
		work, longest := int64(0), int64(0)
		for _, v := range list[at:] {
			work, longest = work+s.us[v], max(longest, chain[v])
		}
		if work > 16*longest {
			break
		}
		end = at
	}
	slices.SortFunc(list[end:], func(x, y evidence.Version) int {
		return cmp.Or(cmp.Compare(chain[y], chain[x]), byName(x, y))
	})
	return list
}

func TestM34TheOrderOfALargeBuildEqualsItsTwins(t *testing.T) {
	r := rand.New(rand.NewPCG(seedtest.Of(t), 34))
	bent := 0
	for run := range 300 {
		d, b := &demand{}, &twinBuild{needs: map[Version][]Version{}}
		s := &twinState{us: map[Version]int64{}, risk: map[Version]float64{}}
		list := make([]asked, 1+r.IntN(160))
		var work int64
		for i := range list {
			v := Version{Target: fmt.Sprintf("//t%d", r.IntN(1000)), Hash: fmt.Sprint(i)}
			s.us[v], s.risk[v] = 1+int64(math.Exp(4+0.4*r.NormFloat64())), 0.01*float64(1+r.IntN(3))
			if r.IntN(20) == 0 {
				s.risk[v] = failedOnce
			}
			list[i] = asked{Version: v, want: &wanted{Version: v, us: s.us[v], risk: s.risk[v]}}
			if i > 0 && r.IntN(3) == 0 {
				of := max(0, i-1-r.IntN(10)) // chains are short, for the twin walks all of them
				list[i].needs = []int{of}
				b.needs[v] = []Version{list[of].Version}
			}
			b.asks = append(b.asks, v)
			work += s.us[v]
		}
		d.set(list, nil)
		d.open = make([]bool, len(list))
		d.sort()
		var got []Version
		for _, at := range d.order {
			got = append(got, list[at].Version)
		}
		if want := s.order(b); !slices.Equal(got, want) {
			t.Fatalf("run %d:\n got %v\nwant %v", run, got, want)
		}
		if work > 16*slices.Max(d.chains()) {
			bent++
		}
	}
	if bent < 100 {
		t.Errorf("only %d of 300 orders have both a search for a failure and an end", bent)
	}
}
