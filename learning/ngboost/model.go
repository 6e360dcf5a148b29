package ngboost

import (
	"fmt"
	"math"
	"slices"
)

// Model predicts a distribution for a row. It never changes, and may be used
// by any number of goroutines at once.
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

// Features returns the names of the columns, in the order [Model.Predict] expects.
func (m *Model) Features() []string { return slices.Clone(m.features) }

// Rounds is the number of boosting rounds held.
func (m *Model) Rounds() int { return len(m.leaves) / (2 << m.depth) }

// Depth is the depth of the trees.
func (m *Model) Depth() int { return m.depth }

// Importance returns each feature's share of the squared error removed by splits,
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
