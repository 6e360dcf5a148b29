package ranking

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"google.golang.org/protobuf/proto"

	"landfall.build/engine/memberset"
	eventsv1 "landfall.build/events/v1"
)

// model is a queue as M6 to M18 speak of it: numbers, no events. Each change meets all of its members
// in one class of targets, so that every path has a version of its own.
type model struct {
	p        []float64
	benefit  []float64
	r        map[[2]int]float64 // behind, ahead
	ahead    [][]int
	required map[[2]int]bool
	unmerged map[[2]int]bool
	held     []bool
	known    []map[uint]bool // by the members of the path: green or red
	mean     []float64       // seconds; all deviate by 10
	bypass   float64         // θ, 0 for none
	paused   bool
	pool     bool
	// What was worked out once.
	marginals map[int]float64
	befores   map[[2]int]float64
}

// eager is a ranking in which no path waits: as M16 has it, each is worth a worker from the threshold on.
func eager() *Ranking {
	r := New()
	r.leastLoss = 0
	return r
}

func randomModel(r *rand.Rand, n int) *model {
	m := &model{r: map[[2]int]float64{}, required: map[[2]int]bool{}, unmerged: map[[2]int]bool{}, paused: r.IntN(12) == 0, pool: r.IntN(2) == 0}
	if r.IntN(2) == 0 {
		m.bypass = []float64{0.1, 0.5, 0.9}[r.IntN(3)]
	}
	dense := 1 + r.IntN(4)
	for i := range n {
		m.p = append(m.p, []float64{0, 1, 0.5, r.Float64(), r.Float64()}[r.IntN(5)])
		m.benefit = append(m.benefit, []float64{1, 1, 4}[r.IntN(3)])
		m.mean = append(m.mean, float64(20+r.IntN(60)))
		m.held = append(m.held, r.IntN(8) == 0)
		var ahead []int
		for k := range i {
			if n <= maxSmall && r.IntN(4) >= dense || n > maxSmall && r.IntN(8) == 0 {
				continue
			}
			ahead = append(ahead, k)
			m.r[[2]int{i, k}] = []float64{0, 0.05, r.Float64()}[r.IntN(3)]
			switch r.IntN(12) {
			case 0:
				m.required[[2]int{i, k}] = true
			case 1:
				m.unmerged[[2]int{i, k}], m.r[[2]int{i, k}] = true, 1
			}
		}
		m.ahead = append(m.ahead, ahead)
		known := map[uint]bool{}
		for s := range uint(1) << len(ahead) {
			if r.IntN(10) == 0 {
				known[s] = r.IntN(3) != 0
			}
		}
		m.known = append(m.known, known)
	}
	return m
}

// path is S as a set of changes.
type path map[int]bool

func (m *model) bits(i int, s path) (set uint) {
	for x, k := range m.ahead[i] {
		if s[k] {
			set |= 1 << x
		}
	}
	return set
}

// outcome is what is known of (i, S): M25 with M5 and M5a.
func (m *model) outcome(i int, s path) (green, known bool) {
	for _, k := range m.ahead[i] {
		if m.unmerged[[2]int{i, k}] && s[k] || m.required[[2]int{i, k}] && !s[k] {
			return false, true
		}
	}
	green, known = m.known[i][m.bits(i, s)]
	return green, known
}

// marginal is m(j) of M7.
func (m *model) marginal(j int) float64 {
	x, known := m.marginals[j]
	if !known {
		if m.marginals == nil {
			m.marginals = map[int]float64{}
		}
		x = m.marginalFrom(j)
		m.marginals[j] = x
	}
	return x
}

func (m *model) marginalFrom(j int) float64 {
	if len(m.ahead[j]) == 0 {
		if green, known := m.known[j][0]; known && !green {
			return 0
		} else if known && !m.held[j] && !m.paused {
			return 1
		}
	}
	p := m.p[j]
	for _, k := range m.ahead[j] {
		r := m.r[[2]int{j, k}]
		if m.required[[2]int{j, k}] {
			p *= m.marginal(k) * (1 - r)
		} else {
			p *= 1 - m.marginal(k)*r
		}
	}
	return p
}

// lands is q(j|S) inside path (i, S) with what M9 makes of it.
func (m *model) lands(i, j int, s path) float64 {
	inside := true
	for _, k := range m.ahead[j] {
		if !slices.Contains(m.ahead[i], k) {
			inside = false
		} else if m.unmerged[[2]int{j, k}] && s[k] || m.required[[2]int{j, k}] && !s[k] {
			return 0
		}
	}
	if green, known := m.outcome(j, s); inside && known && !green {
		return 0
	} else if inside && known && !m.held[j] && !m.paused {
		return 1
	}
	q := m.p[j]
	for _, k := range m.ahead[j] {
		r, member := m.r[[2]int{j, k}], slices.Contains(m.ahead[i], k)
		switch required := m.required[[2]int{j, k}]; {
		case !member && required:
			q *= m.marginal(k) * (1 - r)
		case !member:
			q *= 1 - m.marginal(k)*r
		case s[k] && !required:
			q *= 1 - r
		}
	}
	return q
}

// before is F(i,j) where j is bypassable, and not too many others are of those that i meets in the same class:
// here, all of them.
func (m *model) before(i, j int) float64 {
	f, known := m.befores[[2]int{i, j}]
	if !known {
		if m.befores == nil {
			m.befores = map[[2]int]float64{}
		}
		f = m.beforeOf(i, j)
		m.befores[[2]int{i, j}] = f
	}
	return f
}

func (m *model) beforeOf(i, j int) float64 {
	n := 0
	for _, k := range m.ahead[i] {
		if m.finishes(i, k) > 0 {
			n++
		}
	}
	if n > m.maxFunded() && len(m.known[i]) < 1<<len(m.ahead[i]) {
		return 0
	}
	return m.finishes(i, j)
}

// maxFunded is how many members of one class a change may pass.
func (m *model) maxFunded() int {
	if m.pool {
		return 2
	}
	return 1
}

// finishes is F(i,j) of M11 where j is bypassable (M13), else 0.
func (m *model) finishes(i, j int) float64 {
	if m.bypass == 0 || m.required[[2]int{i, j}] {
		return 0
	}
	if m.held[j] {
		return 1
	}
	f := 0.5 * math.Erfc(-(m.mean[j]-m.mean[i])/math.Hypot(10, 10)/math.Sqrt2)
	if f < m.bypass {
		return 0
	}
	return f
}

// needed is M14.
func (m *model) needed(i int, s path) float64 {
	product := 1.0
	for _, j := range m.ahead[i] {
		o := m.lands(i, j, s)
		if !s[j] {
			o = 1 - o
		}
		f := m.before(i, j)
		product *= f + (1-f)*o
	}
	return product
}

// likely is how likely the path comes about: M14 with F = 0.
func (m *model) likely(i int, s path) float64 {
	product := 1.0
	for _, j := range m.ahead[i] {
		o := m.lands(i, j, s)
		if !s[j] {
			o = 1 - o
		}
		product *= o
	}
	return product
}

type worth struct {
	i             int
	s             path
	needed, value float64
	rejects       int
}

// dead reports whether the evidence rules the path out, whatever F is (M9).
func (m *model) dead(i int, s path) bool {
	for _, j := range m.ahead[i] {
		o := m.lands(i, j, s)
		certain := m.decided(i, j, s)
		if certain && (s[j] && o == 0 || !s[j] && o == 1) {
			return true
		}
	}
	return false
}

// decided reports whether q(j|S) is evidence.
func (m *model) decided(i, j int, s path) bool {
	for _, k := range m.ahead[j] {
		if slices.Contains(m.ahead[i], k) && (m.unmerged[[2]int{j, k}] && s[k] || m.required[[2]int{j, k}] && !s[k]) {
			return true
		}
	}
	for _, k := range m.ahead[j] {
		if !slices.Contains(m.ahead[i], k) {
			return false
		}
	}
	green, known := m.outcome(j, s)
	return known && (!green || !m.held[j] && !m.paused)
}

// eachPath calls f for all 2^|A| of them.
func (m *model) eachPath(i int, f func(s path)) {
	for set := range uint(1) << len(m.ahead[i]) {
		s := path{}
		for x, k := range m.ahead[i] {
			if set&(1<<x) != 0 {
				s[k] = true
			}
		}
		f(s)
	}
}

// best is M15 to M18 by looking at every path; benefit falls with how many are ahead (decision 0027).
func (m *model) best(threshold float64) (list []worth) {
	for i := range m.p {
		m.eachPath(i, func(s path) {
			needed := m.needed(i, s)
			if _, known := m.outcome(i, s); known || needed <= 0 || m.dead(i, s) || needed < threshold && len(m.ahead[i]) > 0 {
				return
			}
			likely := m.likely(i, s)
			list = append(list, worth{i, s, needed, m.benefit[i] / math.Sqrt(float64(1+len(m.ahead[i]))) * likely, len(m.ahead[i]) - len(s)})
		})
	}
	slices.SortFunc(list, func(a, b worth) int {
		switch {
		case a.value != b.value:
			return -int(math.Copysign(1, a.value-b.value))
		case a.i != b.i:
			return a.i - b.i
		case a.needed != b.needed:
			return -int(math.Copysign(1, a.needed-b.needed))
		case a.rejects != b.rejects:
			return a.rejects - b.rejects
		}
		for _, k := range m.ahead[a.i] {
			if a.s[k] != b.s[k] {
				if a.s[k] {
					return -1
				}
				return 1
			}
		}
		return 0
	})
	return list
}

// profile puts the model into one input.
func (m *model) profile(threshold float64, best uint32) *eventsv1.Profile {
	ref := func(i int) *eventsv1.ChangeRef {
		return &eventsv1.ChangeRef{Change: fmt.Sprintf("c%d", i), Revision: 1}
	}
	settings := &eventsv1.QueueSettings{Hash: "s", Threshold: threshold, Best: best}
	if m.pool {
		settings.PoolWorkers = 4
	}
	if m.bypass > 0 {
		settings.BypassThreshold = proto.Float64(m.bypass)
	}
	out := &eventsv1.Profile{StampUs: 1_000_000, Delta: &eventsv1.GraphDelta{
		Settings: settings, Mainline: &eventsv1.Mainline{Head: "m", Analyzed: true, Paused: m.paused}}}
	for i := range m.p {
		n := &eventsv1.Node{Change: ref(i), Position: int64(i + 1), Analyzed: true, Benefit: m.benefit[i]}
		k := &eventsv1.Class{Targets: []*eventsv1.TargetVersion{{Target: "t", Part: 1}}}
		for x, j := range m.ahead[i] {
			n.Ahead = append(n.Ahead, &eventsv1.Ahead{Change: ref(j), Conflicts: true, Required: m.required[[2]int{i, j}], MergeConflict: m.unmerged[[2]int{i, j}]})
			k.Members = append(k.Members, uint32(x))
			out.Pairs = append(out.Pairs, &eventsv1.PairPrediction{Behind: ref(i), Ahead: ref(j), Conflict: m.r[[2]int{i, j}]})
		}
		if m.held[i] {
			n.Holds = []*eventsv1.Hold{{Name: "h"}}
		}
		for s, green := range m.known[i] {
			set := memberset.New(len(m.ahead[i]))
			for x := range m.ahead[i] {
				if s&(1<<x) != 0 {
					set.Add(x)
				}
			}
			o := &eventsv1.Outcome{Members: set.Bytes(), State: eventsv1.OutcomeState_OUTCOME_STATE_RED}
			if green {
				o.State = eventsv1.OutcomeState_OUTCOME_STATE_GREEN
			}
			k.Outcomes = append(k.Outcomes, o)
		}
		n.Classes = []*eventsv1.Class{k}
		out.Delta.Nodes = append(out.Delta.Nodes, n)
		out.Predictions = append(out.Predictions, &eventsv1.Prediction{
			Change: ref(i), Success: m.p[i], DurationMeanUs: m.mean[i] * 1e6, DurationStdUs: 10e6})
	}
	return out
}
