package ranking

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"landfall.build/events/seedtest"
	eventsv1 "landfall.build/events/v1"
)

// queueOf is a model in which all benefits are one and nothing is known: p and the members of each change.
func queueOf(p []float64, ahead ...[]int) *model {
	m := &model{p: p, ahead: ahead, r: map[[2]int]float64{}, required: map[[2]int]bool{}, unmerged: map[[2]int]bool{}}
	for range p {
		m.benefit, m.held = append(m.benefit, 1), append(m.held, false)
		m.known, m.mean = append(m.known, map[uint]bool{}), append(m.mean, 60)
	}
	return m
}

// needs returns P_needed of all builds, by the changes in their trees counted from one: B1.3 of the papers is "1.3".
func (m *model) needs() map[string]float64 {
	r := NewFundingAll()
	r.Apply(m.profile(0, 1<<12))
	needs := map[string]float64{}
	for _, b := range r.Decide().GetRanking().Best {
		var tree []string
		for _, c := range append(b.Assumed, b.Change) {
			var i int
			fmt.Sscanf(c.Change, "c%d", &i)
			tree = append(tree, fmt.Sprint(i+1))
		}
		needs[strings.Join(tree, ".")] = b.Needed
	}
	return needs
}

func sameNeeds(t *testing.T, what string, got, want map[string]float64) {
	t.Helper()
	for b, w := range want {
		if g, there := got[b]; w > 0 && (!there || math.Abs(g-w) > 1e-12) {
			t.Errorf("%s: B%s is needed with %v, want %v", what, b, g, w)
		}
	}
	for b := range got {
		if want[b] == 0 {
			t.Errorf("%s: nobody needs B%s", what, b)
		}
	}
}

// TestM6TheChanceOnTopOfWhatLanded is p(j)·Π(1−r(j,k)) over what landed, whatever did not; with one k it is
// p(j) − c(j,k), equation 4 of the 2019 paper. That some members surely land, and the others surely do not, leaves
// the one path on which they do.
func TestM6TheChanceOnTopOfWhatLanded(t *testing.T) {
	r := seedtest.Random(t)
	for range 500 {
		n := 1 + r.IntN(6)
		var p []float64
		var ahead [][]int
		var all []int
		for k := range n {
			p, ahead, all = append(p, float64(r.IntN(2))), append(ahead, nil), append(all, k)
		}
		p = append(p, 0.1+0.8*r.Float64(), 1)
		m := queueOf(p, append(ahead, all, append(append([]int{}, all...), n))...)
		want, landed := p[n], ""
		for k := range n {
			x := r.Float64()
			m.r[[2]int{n, k}] = x
			if p[k] == 1 {
				want *= 1 - x
				landed += fmt.Sprint(k+1, ".")
			}
		}
		needs := m.needs()
		lands, fails := needs[fmt.Sprint(landed, n+1, ".", n+2)], needs[fmt.Sprint(landed, n+2)]
		if math.Abs(lands-want) > 1e-12 || math.Abs(fails-(1-want)) > 1e-12 {
			t.Fatalf("lands with %g, fails with %g, want %g: %+v", lands, fails, want, m)
		}
	}
	const success, both = 0.8, 0.2 // green alone, and green alone but red with the other
	m := queueOf([]float64{1, success, 1}, nil, []int{0}, []int{0, 1})
	m.r[[2]int{1, 0}] = both / success
	sameNeeds(t, "equation 4", m.needs(), map[string]float64{"1": 1, "1.2": 1, "1.2.3": success - both, "1.3": 1 - (success - both)})
}

// TestM14TheFiguresOfThe2019Paper: of three changes that all conflict seven builds (figure 5), of two independent ones
// with a third behind both six, four of them the third's (figure 6), of one with two independent ones behind it
// five (figure 7).
func TestM14TheFiguresOfThe2019Paper(t *testing.T) {
	p := []float64{0.9, 0.8, 0.7}
	conflict := func(m *model) map[string]float64 {
		m.r[[2]int{1, 0}] = 0.2 / 0.8 // c(2,1) = 0.2
		return m.needs()
	}
	sameNeeds(t, "figure 5", conflict(queueOf(p, nil, []int{0}, []int{0, 1})), map[string]float64{
		"1":   1,
		"1.2": 0.9, "2": 1 - 0.9,
		"1.2.3": 0.9 * (0.8 - 0.2), "1.3": 0.9 * (1 - (0.8 - 0.2)), "2.3": (1 - 0.9) * 0.8, "3": (1 - 0.9) * (1 - 0.8),
	})
	sameNeeds(t, "figure 6", queueOf(p, nil, nil, []int{0, 1}).needs(), map[string]float64{
		"1": 1, "2": 1,
		"1.2.3": 0.9 * 0.8, "1.3": 0.9 * (1 - 0.8), "2.3": (1 - 0.9) * 0.8, "3": (1 - 0.9) * (1 - 0.8),
	})
	sameNeeds(t, "figure 7", conflict(queueOf(p, nil, []int{0}, []int{0})), map[string]float64{
		"1":   1,
		"1.2": 0.9, "2": 1 - 0.9,
		"1.3": 0.9, "3": 1 - 0.9,
	})
}

// TestM14TheFiveOrderingsOfThe2025Paper: which builds of three changes are needed, by who finishes first.
func TestM14TheFiveOrderingsOfThe2025Paper(t *testing.T) {
	const p1, p2 = 0.9, 0.8
	waits2 := map[string]float64{"1.2": p1, "2": 1 - p1}
	bypasses2 := map[string]float64{"1.2": 1, "2": 1}
	waits3 := map[string]float64{"1.2.3": p1 * p2, "1.3": p1 * (1 - p2), "2.3": (1 - p1) * p2, "3": (1 - p1) * (1 - p2)}
	passes2 := map[string]float64{"1.2.3": p1, "1.3": p1, "2.3": 1 - p1, "3": 1 - p1}
	passesBoth := map[string]float64{"1.2.3": 1, "1.3": 1, "2.3": 1, "3": 1}
	for _, x := range []struct {
		what string
		// rank is when each of the three finishes.
		rank           [3]float64
		second, thirds map[string]float64
	}{
		{"case 1: one after the other", [3]float64{1, 2, 3}, waits2, waits3},
		{"case 2: the second before the first", [3]float64{2, 1, 3}, bypasses2, waits3},
		{"case 3: the third before the second", [3]float64{1, 3, 2}, waits2, passes2},
		{"case 4: the last first", [3]float64{3, 2, 1}, bypasses2, passesBoth},
		{"case 5: the third before both", [3]float64{2, 3, 1}, waits2, passesBoth},
	} {
		m := queueOf([]float64{p1, p2, 0.7}, nil, []int{0}, []int{0, 1})
		m.bypass = 0.5
		for i, rank := range x.rank {
			m.mean[i] = 1000 * rank // seventy deviations apart
		}
		want := map[string]float64{"1": 1}
		for _, of := range []map[string]float64{x.second, x.thirds} {
			for b, w := range of {
				want[b] = w
			}
		}
		sameNeeds(t, x.what, m.needs(), want)
	}
}

// coupled is a queue whose best path encodes a hard problem on a graph: one change behind n others, of which
// each surely fails with those of its neighbours that landed.
func coupled(n int) *eventsv1.Profile {
	r := rand.New(rand.NewPCG(3, uint64(n)))
	m := queueOf(make([]float64, n+1), make([][]int, n+1)...)
	for i := range n {
		m.p[i] = 0.5
		for k := range i {
			if r.IntN(8) == 0 {
				m.ahead[i] = append(m.ahead[i], k)
				m.r[[2]int{i, k}] = 1
			}
		}
		m.ahead[n] = append(m.ahead[n], i)
	}
	m.benefit[n] = 1e30 // its builds are those that are asked for
	return m.profile(0, 64)
}

// TestM18ASearchThatRunsOutOfItsBudgetSaysSo, stops, and says the same each time.
func TestM18ASearchThatRunsOutOfItsBudgetSaysSo(t *testing.T) {
	plan := func(n int) (*eventsv1.Ranking, int) {
		r := eager()
		r.Apply(coupled(n))
		best := r.Decide().GetRanking()
		visited := 0
		for _, c := range r.pending {
			if c.search != nil {
				visited += c.search.visited
			}
		}
		return best, visited
	}
	if best, _ := plan(10); !best.Exact || len(best.Best) != 64 {
		t.Errorf("of 10 members: exact %v, %d builds", best.Exact, len(best.Best))
	}
	best, visited := plan(120)
	if best.Exact || visited == 0 || visited > searchNodes {
		t.Errorf("of 120 members: exact %v after %d nodes", best.Exact, visited)
	}
	for i := 1; i < len(best.Best); i++ {
		if best.Best[i].Value > best.Best[i-1].Value {
			t.Errorf("build %d is worth more than the one before it", i)
		}
	}
	if again, _ := plan(120); !sameRanking(best, again) {
		t.Error("the second time the best are others")
	}
}
