package logistic

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
)

// Elimination is how [Eliminate] drops features.
type Elimination struct {
	// Share of the features left is dropped in each step, at least one; 0.1 when zero.
	Share float64
	// Fewest is how many features to go down to; 1 when zero.
	Fewest int
	// Tolerance is how much more log loss on the validation data is accepted for
	// fewer features; zero takes the smallest loss.
	Tolerance float64
}

// Step is one model of an elimination.
type Step struct {
	// Features are those it was fitted with, in the order of the data.
	Features []string
	// LogLoss is the mean log loss on the validation data.
	LogLoss float64
}

// Eliminate fits a model to all features, drops those with the smallest
// weights, and repeats. It returns the model with the fewest features whose
// validation loss is within the tolerance of the smallest, and all steps, the
// largest first. The model expects rows with its own features only:
// [Model.Features] names them. Validation rows should be newer than training
// rows, and neither may be the rows the result is judged by. When ctx ends, so
// does the elimination, before its next fit, with the error of ctx.
func Eliminate(ctx context.Context, training, validation Data, config Config, elimination Elimination) (*Model, []Step, error) {
	if elimination.Share == 0 {
		elimination.Share = 0.1
	}
	elimination.Fewest = max(elimination.Fewest, 1)
	if !(elimination.Share > 0 && elimination.Share < 1) || elimination.Tolerance < 0 {
		return nil, nil, fmt.Errorf("logistic: elimination of a share of %g with tolerance %g: use above 0 to below 1, and from 0",
			elimination.Share, elimination.Tolerance)
	}
	if err := training.check(); err != nil {
		return nil, nil, err
	}
	if len(validation.Rows) == 0 || len(validation.Rows) != len(validation.Outcomes) {
		return nil, nil, fmt.Errorf("%w: %d validation rows, %d outcomes", ErrShape, len(validation.Rows), len(validation.Outcomes))
	}
	for i, row := range validation.Rows {
		if len(row) != len(training.Rows[0]) {
			return nil, nil, fmt.Errorf("%w: validation row %d has %d features, training has %d", ErrShape, i, len(row), len(training.Rows[0]))
		}
	}
	left := make([]int, len(training.Rows[0]))
	for f := range left {
		left[f] = f
	}
	var steps []Step
	var models []*Model
	for {
		if err := ctx.Err(); err != nil {
			return nil, nil, err
		}
		model, err := Fit(training.columns(left), config)
		if err != nil {
			return nil, nil, fmt.Errorf("elimination with %d features: %w", len(left), err)
		}
		loss, err := model.meanLogLoss(validation.columns(left))
		if err != nil {
			return nil, nil, err
		}
		steps, models = append(steps, Step{Features: model.Features(), LogLoss: loss}), append(models, model)
		drop := min(max(1, int(elimination.Share*float64(len(left)))), len(left)-elimination.Fewest)
		if drop <= 0 {
			break
		}
		left = model.strongest(left, len(left)-drop)
	}
	return models[choose(steps, elimination.Tolerance)], steps, nil
}

// choose returns the last step within tolerance of the best.
func choose(steps []Step, tolerance float64) int {
	best := math.Inf(1)
	for _, s := range steps {
		best = min(best, s.LogLoss)
	}
	for k := len(steps) - 1; k > 0; k-- {
		if steps[k].LogLoss <= best+tolerance {
			return k
		}
	}
	return 0
}

// columns is the data with some features only.
func (d Data) columns(keep []int) Data {
	out := Data{Rows: make([][]float64, len(d.Rows)), Outcomes: d.Outcomes, Features: make([]string, len(keep))}
	cells := make([]float64, len(d.Rows)*len(keep))
	for i, row := range d.Rows {
		to := cells[i*len(keep) : (i+1)*len(keep)]
		for k, f := range keep {
			to[k] = row[f]
		}
		out.Rows[i] = to
	}
	for k, f := range keep {
		out.Features[k] = d.featureName(f)
	}
	return out
}

// strongest returns the count features of left with the largest weights, in order.
func (m *Model) strongest(left []int, count int) []int {
	order := make([]int, len(left))
	for k := range order {
		order[k] = k
	}
	strength := func(k int) float64 { return math.Hypot(m.weights[k], m.missing[k]) }
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(strength(b), strength(a)) })
	kept := make([]int, count)
	for k, o := range order[:count] {
		kept[k] = left[o]
	}
	slices.Sort(kept)
	return kept
}

func (m *Model) meanLogLoss(data Data) (float64, error) {
	var sum float64
	for i, row := range data.Rows {
		p, err := m.Predict(row)
		if err != nil {
			return 0, err
		}
		if !data.Outcomes[i] {
			p = 1 - p
		}
		sum -= math.Log(max(p, 1e-15))
	}
	return sum / float64(len(data.Rows)), nil
}
