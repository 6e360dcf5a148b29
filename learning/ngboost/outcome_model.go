package ngboost

import (
	"fmt"
	"slices"

	"landfall.build/learning/internal/seal"
)

const (
	outcomeMagic   = "NGBo"
	outcomeVersion = 1
)

// OutcomeModel gives the probability that an outcome is 1. It never changes, and may be used by any number of goroutines at
// once.
type OutcomeModel struct {
	features []string
	depth    int
	start    float64 // log-odds before the first round
	nodes    []node
	leaves   []float64
	gains    []float64
}

func (m *OutcomeModel) truncate(rounds int) {
	m.nodes = slices.Clip(m.nodes[:rounds*(1<<m.depth-1)])
	m.leaves = slices.Clip(m.leaves[:rounds*(1<<m.depth)])
}

// Features returns the names of the columns, in the order [OutcomeModel.Predict] expects.
func (m *OutcomeModel) Features() []string { return slices.Clone(m.features) }

// Rounds is the number of boosting rounds held.
func (m *OutcomeModel) Rounds() int { return len(m.leaves) >> m.depth }

// Importance returns each feature's share of the squared error removed by splits, as [Model.Importance] does.
func (m *OutcomeModel) Importance() []float64 { return shares(m.gains) }

// Predict returns the probability of 1 for a row, above 0 and below 1; NaN is a missing feature. It allocates nothing for up
// to 512 features. The error is [ErrShape], when the row has not one value for each of the model's features.
func (m *OutcomeModel) Predict(row []float64) (float64, error) {
	if len(row) != len(m.features) {
		return 0, fmt.Errorf("%w: the row has %d features, the model has %d", ErrShape, len(row), len(m.features))
	}
	if len(row) <= onStack {
		var slots [2 * onStack]float32
		fillSlots(slots[:], row)
		return m.ask(slots[:]), nil
	}
	slots := make([]float32, 2*len(row))
	fillSlots(slots, row)
	return m.ask(slots), nil
}

// surestOdds bounds log-odds, so that a probability is never 0 or 1.
const surestOdds = 30

func (m *OutcomeModel) ask(slots []float32) float64 {
	odds := m.start
	inner, outer := 1<<m.depth-1, 1<<m.depth
	for t := 0; t*outer < len(m.leaves); t++ {
		odds += m.leaves[t*outer+leafOf(m.nodes[t*inner:(t+1)*inner], slots)]
	}
	return chance(min(max(odds, -surestOdds), surestOdds))
}

// MarshalBinary writes the model as [Model.MarshalBinary] does.
func (m *OutcomeModel) MarshalBinary() ([]byte, error) {
	var w seal.Writer
	w.Uint8(uint8(m.depth))
	w.Float64(m.start)
	w.Texts(m.features)
	w.Floats(m.gains)
	writeTrees(&w, m.Rounds(), m.nodes, m.leaves)
	sealed, err := seal.Close(outcomeMagic, outcomeVersion, w.Bytes)
	if err != nil {
		return nil, fmt.Errorf("ngboost: outcome model: %w", err)
	}
	return sealed, nil
}

// UnmarshalOutcome reads what [OutcomeModel.MarshalBinary] wrote and accepts nothing else, as [Unmarshal].
func UnmarshalOutcome(sealed []byte) (*OutcomeModel, error) {
	_, payload, err := seal.Open(outcomeMagic, outcomeVersion, sealed)
	if err != nil {
		return nil, fmt.Errorf("ngboost: outcome model: %w", err)
	}
	r := seal.NewReader(payload)
	m := &OutcomeModel{depth: int(r.Uint8()), start: r.Finite("start of the log-odds")}
	if m.depth < 1 || m.depth > MaxDepth {
		r.Refuse("depth %d", m.depth)
	}
	m.features = r.Texts("features", MaxFeatures, maxName)
	m.gains = r.Floats("gains", MaxFeatures)
	if len(m.features) == 0 || len(m.gains) != len(m.features) {
		r.Refuse("%d gains for %d features", len(m.gains), len(m.features))
	}
	m.nodes, m.leaves = readTrees(r, 1, m.depth, len(m.features))
	if odds := furthest(m.start, m.leaves, m.depth, 0, 1); !finite(odds) {
		r.Refuse("log-odds may reach %g", odds)
	}
	if err := r.Close(); err != nil {
		return nil, fmt.Errorf("ngboost: outcome model: %w", err)
	}
	return m, nil
}
