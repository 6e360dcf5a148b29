package ngboost

import (
	"fmt"
	"math"
)

// onStack is the number of features up to which a prediction needs no memory
// beyond the stack.
const onStack = 512

// maxLogSigma bounds s, so that σ and σ² neither overflow nor vanish.
const maxLogSigma = 350

// Predict returns the distribution of a row; NaN is a missing feature, and
// numbers beyond float32 count as its largest. It allocates nothing for up to
// 512 features. The error is [ErrShape], when the row has not one value for
// each of the model's features. Mu is finite and Sigma above zero, but moments
// of a LogNormal far from its training may overflow to +∞.
func (m *Model) Predict(row []float64) (Prediction, error) {
	if len(row) != len(m.features) {
		return Prediction{}, fmt.Errorf("%w: the row has %d features, the model has %d", ErrShape, len(row), len(m.features))
	}
	var mu, s float64
	if len(row) <= onStack {
		var slots [2 * onStack]float32
		fillSlots(slots[:], row)
		if m.depth == 3 {
			mu, s = m.sumDepth3(&slots)
		} else {
			mu, s = m.sum(slots[:])
		}
	} else {
		slots := make([]float32, 2*len(row))
		fillSlots(slots, row)
		mu, s = m.sum(slots)
	}
	s = min(max(s, -maxLogSigma), maxLogSigma)
	return Prediction{Distribution: m.distribution, Mu: mu, Sigma: math.Exp(s)}, nil
}

// fillSlots writes a row as nodes read it: first with missing as +∞, then
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
		position = 2*position + 1 + int(above(slots[n.slot], n.threshold))
	}
	return position - len(nodes)
}

// sumDepth3 is sum for the usual depth. It has no branch that depends on the
// row, since half of those would be mispredicted, and the masks spare bounds
// checks: they change no index that occurs.
func (m *Model) sumDepth3(slots *[2 * onStack]float32) (mu, s float64) {
	const mask = 2*onStack - 1
	mu, s = m.mu, m.s
	nodes, leaves := m.nodes, m.leaves
	for len(leaves) >= 16 && len(nodes) >= 14 {
		t, u := (*[7]node)(nodes), (*[7]node)(nodes[7:])
		a := above(slots[t[0].slot&mask], t[0].threshold)
		b := above(slots[u[0].slot&mask], u[0].threshold)
		a = 2*a + above(slots[t[1+a&1].slot&mask], t[1+a&1].threshold)
		b = 2*b + above(slots[u[1+b&1].slot&mask], u[1+b&1].threshold)
		a = 2*a + above(slots[t[3+a&3].slot&mask], t[3+a&3].threshold)
		b = 2*b + above(slots[u[3+b&3].slot&mask], u[3+b&3].threshold)
		mu += (*[8]float64)(leaves)[a&7]
		s += (*[8]float64)(leaves[8:])[b&7]
		nodes, leaves = nodes[14:], leaves[16:]
	}
	return mu, s
}

// above is one when v > threshold, without a branch.
func above(v, threshold float32) uint {
	var result uint
	if v > threshold {
		result = 1
	}
	return result
}
