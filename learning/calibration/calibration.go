// Package calibration turns scores into probabilities that mean what they say,
// by isotonic regression or Platt's scaling, and measures how good probabilities
// are: log loss, Brier score, area under the ROC curve, accuracy, expected
// calibration error and the bins of a reliability diagram.
//
// A map must be fitted on rows the model was not trained on, and judged on rows
// neither has seen.
package calibration

import (
	"errors"
	"fmt"
	"math"
)

// Errors of everything in this package; each is wrapped with what it is about.
var (
	// ErrShape occurs when probabilities and outcomes differ in number.
	ErrShape = errors.New("calibration: data of the wrong shape")
	// ErrTooFewRows occurs below MinRows for a fit, and without any row for a measure.
	ErrTooFewRows = errors.New("calibration: too few rows")
	// ErrProbability occurs when a probability is not between 0 and 1.
	ErrProbability = errors.New("calibration: not a probability")
	// ErrOneClass occurs when all outcomes are equal and there is nothing to fit.
	ErrOneClass = errors.New("calibration: only one class")
)

// MinRows is the fewest rows to fit a map to.
const MinRows = 20

// A Map turns a model's probability into a calibrated one; [Isotonic] and
// [Platt] are such. Maps never change and never fall: a higher probability
// never becomes the lower one.
type Map interface {
	// Calibrate gives a probability strictly between 0 and 1. What is not a
	// probability counts as the nearest one, and NaN as one half.
	Calibrate(probability float64) float64
}

func check(probabilities []float64, outcomes []bool) error {
	if len(probabilities) != len(outcomes) {
		return fmt.Errorf("%w: %d probabilities, %d outcomes", ErrShape, len(probabilities), len(outcomes))
	}
	if len(outcomes) == 0 {
		return fmt.Errorf("%w: none given", ErrTooFewRows)
	}
	for i, p := range probabilities {
		if !(p >= 0 && p <= 1) {
			return fmt.Errorf("%w: row %d is %g", ErrProbability, i, p)
		}
	}
	return nil
}

func checkFit(probabilities []float64, outcomes []bool) error {
	if err := check(probabilities, outcomes); err != nil {
		return err
	}
	if len(outcomes) < MinRows {
		return fmt.Errorf("%w: %d, at least %d", ErrTooFewRows, len(outcomes), MinRows)
	}
	if yes := count(outcomes); yes == 0 || yes == len(outcomes) {
		return fmt.Errorf("%w: %d of %d outcomes are true", ErrOneClass, yes, len(outcomes))
	}
	return nil
}

func count(outcomes []bool) (yes int) {
	for _, outcome := range outcomes {
		if outcome {
			yes++
		}
	}
	return yes
}

// within reads anything as a probability.
func within(p float64) float64 {
	if math.IsNaN(p) {
		return 0.5
	}
	return min(max(p, 0), 1)
}
