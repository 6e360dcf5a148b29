// Package logistic is L2-regularised logistic regression for tables with
// missing values: columns are standardised, missing values count as the mean,
// and every column that had any in training gets a second weight for being
// missing. Recursive feature elimination is in [Eliminate]. The fit is gonum's
// L-BFGS.
package logistic

import (
	"errors"
	"fmt"
	"math"
	"slices"
)

// Bounds of what is fitted, stored and loaded.
const (
	// MaxFeatures is the largest number of columns.
	MaxFeatures = 1 << 16
	// MinRows is the fewest rows to fit.
	MinRows = 20
	// MaxCells is the largest rows × columns to fit, missing marks included.
	MaxCells = 1 << 28
)

// Errors of the data given to [Fit]; each is wrapped with the row, the feature
// or the count it is about. None is worth a retry with the same data.
var (
	// ErrTooFewRows occurs below MinRows.
	ErrTooFewRows = errors.New("logistic: too few rows")
	// ErrShape occurs when rows, outcomes and names do not fit together or exceed a bound.
	ErrShape = errors.New("logistic: data of the wrong shape")
	// ErrFeature occurs when a feature is infinite, or too large to square.
	ErrFeature = errors.New("logistic: feature out of range")
	// ErrOneClass occurs when all outcomes are equal and there is nothing to tell apart.
	ErrOneClass = errors.New("logistic: only one class")
	// ErrConstantFeatures occurs when no feature takes two different values.
	ErrConstantFeatures = errors.New("logistic: every feature is constant")
	// ErrNotConverged occurs when the optimiser ends away from a minimum.
	ErrNotConverged = errors.New("logistic: not converged")
)

// Data is a table of features with yes-or-no outcomes. Nothing in it is changed or kept.
type Data struct {
	// Rows holds one slice per row, all of equal length; NaN is missing.
	Rows [][]float64
	// Outcomes has one entry per row.
	Outcomes []bool
	// Features names the columns; nil names them x0, x1, …
	Features []string
}

// Config is how to fit. Zero fields mean the defaults.
type Config struct {
	// L2 is λ in Σ loss + λ/2·Σ w², over standardised columns; the intercept is
	// free. 1 when zero.
	L2 float64
	// Iterations bounds the optimiser; 500 when zero.
	Iterations int
	// Gradient is the largest component of the mean gradient at which the fit
	// counts as converged; 1e-6 when zero.
	Gradient float64
}

func (c Config) withDefaults() (Config, error) {
	if c.L2 == 0 {
		c.L2 = 1
	}
	if c.Iterations == 0 {
		c.Iterations = 500
	}
	if c.Gradient == 0 {
		c.Gradient = 1e-6
	}
	var problems []error
	if !(c.L2 > 0) || math.IsInf(c.L2, 0) {
		problems = append(problems, fmt.Errorf("logistic: L2 is %g: use a finite number above zero", c.L2))
	}
	if c.Iterations < 1 {
		problems = append(problems, fmt.Errorf("logistic: iterations is %d: use 1 or more", c.Iterations))
	}
	if !(c.Gradient > 0) || c.Gradient > 0.01 {
		problems = append(problems, fmt.Errorf("logistic: gradient is %g: use above 0 to 0.01", c.Gradient))
	}
	return c, errors.Join(problems...)
}

func (d Data) featureName(column int) string {
	if d.Features != nil {
		return d.Features[column]
	}
	return fmt.Sprintf("x%d", column)
}

func (d Data) check() error {
	if len(d.Rows) < MinRows {
		return fmt.Errorf("%w: %d, at least %d", ErrTooFewRows, len(d.Rows), MinRows)
	}
	width := len(d.Rows[0])
	switch {
	case len(d.Outcomes) != len(d.Rows):
		return fmt.Errorf("%w: %d rows but %d outcomes", ErrShape, len(d.Rows), len(d.Outcomes))
	case d.Features != nil && len(d.Features) != width:
		return fmt.Errorf("%w: %d columns but %d names", ErrShape, width, len(d.Features))
	case width == 0 || width > MaxFeatures:
		return fmt.Errorf("%w: %d features, from 1 to %d", ErrShape, width, MaxFeatures)
	}
	for f, name := range d.Features {
		if len(name) > maxName {
			return fmt.Errorf("%w: the name of column %d has %d bytes, at most %d", ErrShape, f, len(name), maxName)
		}
	}
	for i, row := range d.Rows {
		if len(row) != width {
			return fmt.Errorf("%w: row %d has %d features, row 0 has %d", ErrShape, i, len(row), width)
		}
		for f, v := range row {
			if math.Abs(v) > 1e150 {
				return fmt.Errorf("%w: row %d, %q is %g", ErrFeature, i, d.featureName(f), v)
			}
		}
	}
	yes := 0
	for _, outcome := range d.Outcomes {
		if outcome {
			yes++
		}
	}
	if yes == 0 || yes == len(d.Outcomes) {
		return fmt.Errorf("%w: %d of %d outcomes are true", ErrOneClass, yes, len(d.Outcomes))
	}
	return nil
}

// Model gives the probability that an outcome is true. It never changes, and
// may be used by any number of goroutines at once.
type Model struct {
	features []string
	// mean and deviation standardise a column; a column that was constant has
	// deviation zero and no weight.
	mean, deviation []float64
	weights         []float64
	// missing is what a missing value adds; absent columns have zero.
	missing   []float64
	intercept float64
}

// Features returns the names of the columns, in the order [Model.Predict] expects.
func (m *Model) Features() []string { return slices.Clone(m.features) }

// Weights returns each feature's weight by standard deviation: by how much the
// log-odds rise when the feature rises by one standard deviation of the
// training rows. A constant feature has zero.
func (m *Model) Weights() []float64 { return slices.Clone(m.weights) }

// MissingWeights returns what the log-odds change when a feature is missing
// rather than at its mean.
func (m *Model) MissingWeights() []float64 { return slices.Clone(m.missing) }

// Predict returns the probability of a true outcome, between 0 and 1. It
// allocates nothing. The error is [ErrShape], when the row has not one value
// for each feature.
func (m *Model) Predict(row []float64) (float64, error) {
	if len(row) != len(m.features) {
		return 0, fmt.Errorf("%w: the row has %d features, the model has %d", ErrShape, len(row), len(m.features))
	}
	odds := m.intercept
	for f, v := range row {
		switch {
		case m.deviation[f] == 0:
			// Nothing was learned of a constant column, unless some of it was missing.
			if v != v {
				odds += m.missing[f]
			}
		case v != v:
			odds += m.missing[f]
		default:
			odds += m.weights[f] * min(max((v-m.mean[f])/m.deviation[f], -farthest), farthest)
		}
	}
	return probability(odds), nil
}

// farthest bounds a standardised value: infinity in a row gives a probability,
// not NaN, and one absurd count does not decide alone forever.
const farthest = 1e6

// probability is the logistic function, without overflow on either side.
func probability(odds float64) float64 {
	if odds >= 0 {
		return 1 / (1 + math.Exp(-odds))
	}
	e := math.Exp(odds)
	return e / (1 + e)
}
