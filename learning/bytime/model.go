package bytime

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"landfall.build/learning/internal/seal"
	"landfall.build/learning/logistic"
	"landfall.build/learning/ngboost"
)

// OutcomeModel is a weighted mean of the log-odds of a logistic regression and of boosted trees. The regression extrapolates; the trees
// follow curves and interactions. It is immutable and safe for concurrent use.
type OutcomeModel struct {
	features []string
	// share is that of the trees, 0 if trees is nil.
	share   float64
	weights *logistic.Model
	trees   *ngboost.OutcomeModel
	// index has the indices of the regression's features.
	index []int
}

// Features returns the names of the columns, in the order [OutcomeModel.Predict] expects.
func (m *OutcomeModel) Features() []string { return slices.Clone(m.features) }

// Regression returns the logistic regression. It may use fewer features.
func (m *OutcomeModel) Regression() *logistic.Model { return m.weights }

// Trees returns the boosted trees, nil if they were left out, and their share of the log-odds.
func (m *OutcomeModel) Trees() (trees *ngboost.OutcomeModel, share float64) { return m.trees, m.share }

// errParts occurs if the two learners do not belong together.
var errParts = errors.New("bytime: the parts of a model do not fit")

// connect fills index, and checks that the parts belong together.
func (m *OutcomeModel) connect() error {
	if !(m.share >= 0 && m.share <= 1) || (m.trees == nil) != (m.share == 0) {
		return fmt.Errorf("%w: the share of the trees is %g", errParts, m.share)
	}
	if m.trees != nil && !slices.Equal(m.trees.Features(), m.features) {
		return fmt.Errorf("%w: the trees take other features", errParts)
	}
	for _, name := range m.weights.Features() {
		at := slices.Index(m.features, name)
		if at < 0 {
			return fmt.Errorf("%w: the regression takes %q", errParts, name)
		}
		m.index = append(m.index, at)
	}
	return nil
}

// onStack is the number of features up to which a prediction needs no memory beyond the stack.
const onStack = 512

// Predict returns the probability of a yes, between 0 and 1; NaN is a missing feature. It allocates nothing for up to 512
// features. The error is that of the learners, when the row has not one value for each feature.
func (m *OutcomeModel) Predict(row []float64) (float64, error) {
	if len(row) != len(m.features) {
		return 0, fmt.Errorf("%w: the row has %d features, the model has %d", ErrShape, len(row), len(m.features))
	}
	var fixed [onStack]float64
	some := fixed[:0]
	for _, i := range m.index {
		some = append(some, row[i])
	}
	p, err := m.weights.Predict(some)
	if err != nil || m.trees == nil {
		return p, err
	}
	q, err := m.trees.Predict(row)
	if err != nil {
		return 0, err
	}
	return mixed(p, q, m.share), nil
}

// maxLogOdds bounds the log-odds before they are averaged, so that neither learner outweighs the other by being certain.
const maxLogOdds = 7

func mixed(byRegression, byTrees, share float64) float64 {
	odds := (1-share)*logOdds(byRegression) + share*logOdds(byTrees)
	return 1 / (1 + math.Exp(-odds))
}

func logOdds(p float64) float64 {
	return min(max(math.Log(p)-math.Log1p(-p), -maxLogOdds), maxLogOdds)
}

const (
	magic   = "BYTo"
	version = 1
	maxName = 1024
)

// MarshalBinary writes the model, with the SHA-256 of what stands before at the end. Equal models give equal bytes.
func (m *OutcomeModel) MarshalBinary() ([]byte, error) {
	var w seal.Writer
	w.Texts(m.features)
	w.Float64(m.share)
	weights, err := m.weights.MarshalBinary()
	if err != nil {
		return nil, err
	}
	w.Text(string(weights))
	trees := []byte(nil)
	if m.trees != nil {
		if trees, err = m.trees.MarshalBinary(); err != nil {
			return nil, err
		}
	}
	w.Text(string(trees))
	sealed, err := seal.Close(magic, version, w.Bytes)
	if err != nil {
		return nil, fmt.Errorf("bytime: model: %w", err)
	}
	return sealed, nil
}

// ErrNotAModel occurs when bytes do not begin as a model of this package.
var ErrNotAModel = seal.ErrNotAModel

// Unmarshal reads what MarshalBinary wrote and accepts nothing else. The errors are those of [logistic.Unmarshal].
func Unmarshal(sealed []byte) (*OutcomeModel, error) {
	_, payload, err := seal.Open(magic, version, sealed)
	if err != nil {
		return nil, fmt.Errorf("bytime: model: %w", err)
	}
	r := seal.NewReader(payload)
	m := &OutcomeModel{features: r.Texts("features", logistic.MaxFeatures, maxName), share: r.Finite("share of the trees")}
	weights, trees := r.Text("regression", seal.MaxBytes), r.Text("trees", seal.MaxBytes)
	if err := r.Close(); err != nil {
		return nil, fmt.Errorf("bytime: model: %w", err)
	}
	if m.weights, err = logistic.Unmarshal([]byte(weights)); err != nil {
		return nil, fmt.Errorf("bytime: model: %w", err)
	}
	if trees != "" {
		if m.trees, err = ngboost.UnmarshalOutcome([]byte(trees)); err != nil {
			return nil, fmt.Errorf("bytime: model: %w", err)
		}
	}
	if err := m.connect(); err != nil {
		return nil, fmt.Errorf("bytime: model: %w: %w", seal.ErrAbsurd, err)
	}
	return m, nil
}
