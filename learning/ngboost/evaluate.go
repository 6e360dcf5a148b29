package ngboost

import (
	"fmt"
	"math"
	"slices"
)

// Metrics are how good predictions are.
type Metrics struct {
	Rows int
	// NLL is the mean negative log-likelihood in nats; lower is better.
	NLL float64
	// RMSE is that of the predicted mean, in the target's unit.
	RMSE float64
	// MAPE is the mean of |point−y|/|y| over targets that are not zero, where
	// the point is Prediction.RelativePoint.
	MAPE float64
	// Coverage90 is the share of targets within the central 90 % interval.
	Coverage90 float64
}

// Measure compares predictions with the targets of rows that the model was not
// trained on.
func Measure(predicted []Prediction, target []float64) Metrics {
	m := Metrics{Rows: len(predicted)}
	n, relative := float64(len(predicted)), 0.0
	for i, p := range predicted {
		y := target[i]
		m.NLL += p.NLL(y)
		m.RMSE += (p.Mean() - y) * (p.Mean() - y)
		if low, high := p.Interval(0.9); low <= y && y <= high {
			m.Coverage90++
		}
		if y != 0 {
			relative++
			m.MAPE += math.Abs(p.RelativePoint()-y) / math.Abs(y)
		}
	}
	m.NLL, m.RMSE, m.MAPE, m.Coverage90 = m.NLL/n, math.Sqrt(m.RMSE/n), m.MAPE/relative, m.Coverage90/n
	return m
}

// FitScale returns the factor by which to multiply every σ so that the data's
// likelihood is largest, for [Model.Rescaled]. A model is overconfident about
// times after its training; the newest tenth of the data, kept out of
// training, shows by how much. Censored rows are left out.
func FitScale(m *Model, data Data) (float64, error) {
	predictions, target, err := predictAll(m, data)
	if err != nil {
		return 0, err
	}
	var squares, known float64
	for i, p := range predictions {
		if !data.censoredAt(i) {
			z := (target.target[i] - p.Mu) / p.Sigma
			squares += z * z
			known++
		}
	}
	if known < MinRows {
		return 0, fmt.Errorf("%w: %g uncensored to fit a scale to, at least %d", ErrTooFewRows, known, MinRows)
	}
	factor := math.Sqrt(squares / known)
	if !(factor > 0) || !finite(factor) {
		return 0, fmt.Errorf("%w: the scale that suits it is %g", ErrTarget, factor)
	}
	return factor, nil
}

func predictAll(m *Model, data Data) ([]Prediction, modelled, error) {
	if err := data.checkShape(); err != nil {
		return nil, modelled{}, err
	}
	target, err := data.model(m.distribution)
	if err != nil {
		return nil, modelled{}, err
	}
	predictions := make([]Prediction, len(data.Rows))
	for i, row := range data.Rows {
		if predictions[i], err = m.Predict(row); err != nil {
			return nil, modelled{}, err
		}
	}
	return predictions, target, nil
}

// FitCoverage returns the factor for every σ with which an interval of a share covers that share of some rows, for
// [Model.Rescaled]. [FitScale] suits the likelihood: where a few targets lie far out it makes intervals too wide for all
// others. Censored rows are left out.
func FitCoverage(m *Model, data Data, share float64) (float64, error) {
	if !(share > 0 && share < 1) {
		return 0, fmt.Errorf("ngboost: an interval that covers %g: use above 0 to below 1", share)
	}
	predictions, target, err := predictAll(m, data)
	if err != nil {
		return 0, err
	}
	var far []float64
	for i, p := range predictions {
		if !data.censoredAt(i) {
			far = append(far, math.Abs(target.target[i]-p.Mu)/p.Sigma)
		}
	}
	if len(far) < MinRows {
		return 0, fmt.Errorf("%w: %d uncensored to fit a scale to, at least %d", ErrTooFewRows, len(far), MinRows)
	}
	slices.Sort(far)
	// Between the two rows that the share falls between.
	at := share * float64(len(far)-1)
	low := int(at)
	reached := far[low]
	if low+1 < len(far) {
		reached += (at - float64(low)) * (far[low+1] - far[low])
	}
	factor := reached / (math.Sqrt2 * math.Erfinv(share))
	if !(factor > 0) || !finite(factor) {
		return 0, fmt.Errorf("%w: the scale that suits it is %g", ErrTarget, factor)
	}
	return factor, nil
}
