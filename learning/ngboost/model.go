package ngboost

import (
	"fmt"
	"math"
	"slices"
)

// Model predicts a distribution for a row. It never changes, and may be used
// by any number of goroutines.
type Model struct {
	distribution Distribution
	rule         Rule
	features     []string
	depth        int
	mu, s        float64 // before the first round

	// The trees stand one after the other, that of μ before that of s in each
	// round; leaves already hold the step with its sign, length and learning rate.
	nodes  []node
	leaves []float64
	// gains is the squared error removed by each feature's splits, for μ and s.
	gains [2][]float64
}

func newModel(c Config, features []string, mu, s float64) *Model {
	m := &Model{distribution: c.Distribution, rule: c.Rule, features: features, depth: c.Depth, mu: mu, s: s}
	for k := range m.gains {
		m.gains[k] = make([]float64, len(features))
	}
	return m
}

func (m *Model) append(trees [2]tree) {
	for _, t := range trees {
		m.nodes = append(m.nodes, t.nodes...)
		m.leaves = append(m.leaves, t.leaves...)
	}
}

func (m *Model) truncate(rounds int) {
	m.nodes = slices.Clip(m.nodes[:rounds*2*(1<<m.depth-1)])
	m.leaves = slices.Clip(m.leaves[:rounds*2*(1<<m.depth)])
}

// Distribution is the family predicted.
func (m *Model) Distribution() Distribution { return m.distribution }

// Features gives the names of the columns, in the order [Model.Predict] expects.
func (m *Model) Features() []string { return slices.Clone(m.features) }

// Rounds is the number of boosting rounds held.
func (m *Model) Rounds() int { return len(m.leaves) / (2 << m.depth) }

// Depth is the depth of the trees.
func (m *Model) Depth() int { return m.depth }

// Importance gives each feature's share of the squared error removed by splits,
// for the trees of μ and for those of s = log σ. Each sums to one, or is all
// zero when nothing was split. Rounds dropped by early stopping count too.
func (m *Model) Importance() (mu, s []float64) {
	return shares(m.gains[0]), shares(m.gains[1])
}

func shares(gains []float64) []float64 {
	var total float64
	for _, g := range gains {
		total += g
	}
	out := make([]float64, len(gains))
	if total > 0 && finite(total) {
		for i, g := range gains {
			out[i] = g / total
		}
	}
	return out
}

// onStack is the number of features up to which a prediction needs no memory
// beyond the stack.
const onStack = 512

// Predict gives the distribution of a row; NaN is a missing feature, and
// numbers beyond float32 count as its largest. It allocates nothing for up to
// 512 features. The error is [ErrShape], when the row has not one value for
// each of the model's features.
func (m *Model) Predict(row []float64) (Prediction, error) {
	if len(row) != len(m.features) {
		return Prediction{}, fmt.Errorf("%w: the row has %d features, the model has %d", ErrShape, len(row), len(m.features))
	}
	var buffer [2 * onStack]float32
	slots := buffer[:]
	if len(row) > onStack {
		slots = make([]float32, 2*len(row))
	}
	fillSlots(slots, row)
	mu, s := m.sum(slots)
	return Prediction{Distribution: m.distribution, Mu: mu, Sigma: math.Exp(s)}, nil
}

// fillSlots writes a row as nodes look at it: first with missing as +∞, then
// once more with missing as −∞.
func fillSlots(slots []float32, row []float64) {
	high, low := slots[:len(row)], slots[len(row):2*len(row)]
	for f, wide := range row {
		v := float32(min(max(wide, -math.MaxFloat32), math.MaxFloat32))
		high[f], low[f] = v, v
		if v != v {
			high[f], low[f] = float32(math.Inf(1)), float32(math.Inf(-1))
		}
	}
}

// sum adds up the leaves a row falls into.
func (m *Model) sum(slots []float32) (mu, s float64) {
	mu, s = m.mu, m.s
	if m.depth == 3 {
		nodes, leaves := m.nodes, m.leaves
		for len(leaves) >= 16 && len(nodes) >= 14 {
			mu += leaves[leafOfDepth3((*[7]node)(nodes), slots)]
			s += leaves[8+leafOfDepth3((*[7]node)(nodes[7:]), slots)&7]
			nodes, leaves = nodes[14:], leaves[16:]
		}
		return mu, s
	}
	inner, outer := 1<<m.depth-1, 1<<m.depth
	for t := 0; t*outer < len(m.leaves); t += 2 {
		mu += m.leaves[t*outer+leafOf(m.nodes[t*inner:(t+1)*inner], slots)]
		s += m.leaves[(t+1)*outer+leafOf(m.nodes[(t+1)*inner:(t+2)*inner], slots)]
	}
	return mu, s
}

func leafOf(nodes []node, slots []float32) int {
	position := 0
	for position < len(nodes) {
		n := nodes[position]
		position = 2*position + 1
		if slots[n.slot] > n.threshold {
			position++
		}
	}
	return position - len(nodes)
}

// leafOfDepth3 is leafOf for the usual depth, unrolled.
func leafOfDepth3(nodes *[7]node, slots []float32) int {
	var a, b, c int
	if slots[nodes[0].slot] > nodes[0].threshold {
		a = 1
	}
	n := nodes[1+a]
	if slots[n.slot] > n.threshold {
		b = 1
	}
	n = nodes[3+2*a+b]
	if slots[n.slot] > n.threshold {
		c = 1
	}
	return 4*a + 2*b + c
}

// Rescaled is the model with every σ multiplied by factor, above zero.
// [FitScale] finds the factor that suits newer data.
func (m *Model) Rescaled(factor float64) (*Model, error) {
	shift := math.Log(factor)
	if !finite(shift) {
		return nil, fmt.Errorf("ngboost: scale factor %g: use a finite number above zero", factor)
	}
	scaled := *m
	scaled.s += shift
	return &scaled, nil
}
