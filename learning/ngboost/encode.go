package ngboost

import (
	"fmt"
	"math"

	"landfall.build/learning/internal/seal"
)

// Errors of [Unmarshal]; each is wrapped with what is wrong. A model that meets
// one is not usable, and reading it again will not help.
var (
	// ErrNotAModel occurs when the bytes do not begin as a model of this package.
	ErrNotAModel = seal.ErrNotAModel
	// ErrVersion occurs when a newer program wrote the model.
	ErrVersion = seal.ErrVersion
	// ErrTruncated occurs when bytes are missing or left over.
	ErrTruncated = seal.ErrTruncated
	// ErrCorrupt occurs when the bytes do not match their hash.
	ErrCorrupt = seal.ErrCorrupt
	// ErrTooLarge occurs above 64 MiB.
	ErrTooLarge = seal.ErrTooLarge
	// ErrAbsurd occurs when intact bytes hold what no training produces, such as
	// a number that is not finite or a feature that does not exist.
	ErrAbsurd = seal.ErrAbsurd
)

const (
	magic   = "NGBm"
	version = 1
	// maxName is the longest name of a feature, in bytes.
	maxName = 1024
)

// MarshalBinary writes the model: header, names, trees, and the SHA-256 of all
// that at the end. 500 rounds of depth 3 take about 120 kB. Equal models give
// equal bytes.
func (m *Model) MarshalBinary() ([]byte, error) {
	var w seal.Writer
	w.Uint8(uint8(m.distribution))
	w.Uint8(uint8(m.rule))
	w.Uint8(uint8(m.depth))
	w.Float64(m.mu)
	w.Float64(m.s)
	w.Texts(m.features)
	for k := range m.gains {
		w.Floats(m.gains[k])
	}
	writeTrees(&w, m.Rounds(), m.nodes, m.leaves)
	sealed, err := seal.Close(magic, version, w.Bytes)
	if err != nil {
		return nil, fmt.Errorf("ngboost: model: %w", err)
	}
	return sealed, nil
}

// Hash is the hexadecimal SHA-256 of the model's bytes: its name.
func (m *Model) Hash() (string, error) {
	sealed, err := m.MarshalBinary()
	if err != nil {
		return "", err
	}
	return seal.Hash(sealed), nil
}

// Unmarshal reads what MarshalBinary wrote and accepts nothing else: every
// number is checked, so that [Model.Predict] gives finite parameters and cannot
// fail on a row of the right width.
func Unmarshal(sealed []byte) (*Model, error) {
	_, payload, err := seal.Open(magic, version, sealed)
	if err != nil {
		return nil, fmt.Errorf("ngboost: model: %w", err)
	}
	r := seal.NewReader(payload)
	m := &Model{distribution: Distribution(r.Uint8()), rule: Rule(r.Uint8()), depth: int(r.Uint8())}
	if m.distribution > LogNormal || m.rule > CRPS || m.depth < 1 || m.depth > MaxDepth {
		r.Refuse("distribution %d, rule %d, depth %d", m.distribution, m.rule, m.depth)
	}
	m.mu, m.s = r.Finite("start of mu"), r.Finite("start of log sigma")
	m.features = r.Texts("features", MaxFeatures, maxName)
	for k := range m.gains {
		m.gains[k] = r.Floats("gains", MaxFeatures)
		if len(m.gains[k]) != len(m.features) {
			r.Refuse("%d gains for %d features", len(m.gains[k]), len(m.features))
		}
	}
	if len(m.features) == 0 {
		r.Refuse("no features")
	}
	m.nodes, m.leaves = readTrees(r, 2, m.depth, len(m.features))
	if mu, sigma := furthest(m.mu, m.leaves, m.depth, 0, 2), furthest(m.s, m.leaves, m.depth, 1, 2); !finite(mu) || !finite(sigma) {
		r.Refuse("mu may reach %g, log sigma %g", mu, sigma)
	}
	if err := r.Close(); err != nil {
		return nil, fmt.Errorf("ngboost: model: %w", err)
	}
	return m, nil
}

// writeTrees writes the number of rounds, then the nodes of all trees, then their leaves.
func writeTrees(w *seal.Writer, rounds int, nodes []node, leaves []float64) {
	w.Uint32(uint32(rounds))
	for _, n := range nodes {
		w.Float32(n.threshold)
		w.Uint32(n.slot)
	}
	for _, v := range leaves {
		w.Float64(v)
	}
}

// readTrees reads what writeTrees wrote of a model with so many trees in each
// round, and refuses trees that no row could be predicted by. It returns nil after an error.
func readTrees(r *seal.Reader, each, depth, features int) (nodes []node, leaves []float64) {
	if r.Err() != nil {
		return nil, nil
	}
	inner, outer := 1<<depth-1, 1<<depth
	rounds := r.Count("rounds", MaxRounds, each*(8*inner+8*outer))
	nodes = make([]node, rounds*each*inner)
	for k := range nodes {
		nodes[k] = node{threshold: r.Float32(), slot: r.Uint32()}
		if n := nodes[k]; !finite(float64(n.threshold)) || int64(n.slot) >= 2*int64(features) {
			r.Refuse("node %d asks for slot %d of %d features above %g", k, n.slot, features, n.threshold)
		}
	}
	leaves = make([]float64, rounds*each*outer)
	for k := range leaves {
		leaves[k] = r.Finite("leaf")
	}
	return nodes, leaves
}

// furthest is how far from zero a sum may come that begins at start and takes a
// leaf of every each-th tree from the first on. A model in which it is no number
// is refused: some path through its trees leaves their range.
func furthest(start float64, leaves []float64, depth, first, each int) float64 {
	outer := 1 << depth
	sum := math.Abs(start)
	for t := first; t*outer < len(leaves); t += each {
		largest := 0.0
		for _, v := range leaves[t*outer : (t+1)*outer] {
			largest = max(largest, math.Abs(v))
		}
		sum += largest
	}
	return sum
}
