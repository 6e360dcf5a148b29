package calibration

import (
	"fmt"
	"math"
	"slices"
)

// Metrics are how good probabilities are.
type Metrics struct {
	Rows int
	// LogLoss is the mean negative log-likelihood in nats; probabilities count
	// as at least 1e-15 away from 0 and 1.
	LogLoss float64
	// Brier is the mean squared difference of probability and outcome.
	Brier float64
	// AUC is the probability that a true outcome has the higher probability of
	// a true and a false one; NaN with one class.
	AUC float64
	// Accuracy is the share of outcomes on the side of one half that was predicted.
	Accuracy float64
	// ECE is the expected calibration error over ten bins of equal width.
	ECE float64
}

// Bin is one bin of a reliability diagram, of probabilities from Low (included)
// to High (excluded, but for the last).
type Bin struct {
	Low, High float64
	Rows      int
	// Predicted is the mean probability, Observed the share of true outcomes;
	// both zero in an empty bin.
	Predicted, Observed float64
}

// Measure computes all metrics.
func Measure(probabilities []float64, outcomes []bool) (Metrics, error) {
	bins, err := Reliability(probabilities, outcomes, 10)
	if err != nil {
		return Metrics{}, err
	}
	m := Metrics{Rows: len(outcomes), AUC: auc(probabilities, outcomes), ECE: ExpectedError(bins)}
	n := float64(len(outcomes))
	for i, p := range probabilities {
		outcome, likelihood := 0.0, 1-p
		if outcomes[i] {
			outcome, likelihood = 1, p
		}
		m.LogLoss -= math.Log(max(likelihood, 1e-15)) / n
		m.Brier += (p - outcome) * (p - outcome) / n
		if (p >= 0.5) == outcomes[i] {
			m.Accuracy += 1 / n
		}
	}
	return m, nil
}

// Reliability groups rows into count bins of equal width, from 1 to 1,000.
func Reliability(probabilities []float64, outcomes []bool, count int) ([]Bin, error) {
	if err := check(probabilities, outcomes); err != nil {
		return nil, err
	}
	if count < 1 || count > 1000 {
		return nil, fmt.Errorf("%w: %d bins, from 1 to 1000", ErrShape, count)
	}
	bins := make([]Bin, count)
	for k := range bins {
		bins[k].Low, bins[k].High = float64(k)/float64(count), float64(k+1)/float64(count)
	}
	for i, p := range probabilities {
		b := &bins[min(int(p*float64(count)), count-1)]
		b.Rows++
		b.Predicted += p
		if outcomes[i] {
			b.Observed++
		}
	}
	for k := range bins {
		if rows := float64(bins[k].Rows); rows > 0 {
			bins[k].Predicted /= rows
			bins[k].Observed /= rows
		}
	}
	return bins, nil
}

// ExpectedError is the mean distance of predicted and observed, by rows; zero
// without rows.
func ExpectedError(bins []Bin) float64 {
	var sum, rows float64
	for _, b := range bins {
		sum += float64(b.Rows) * math.Abs(b.Predicted-b.Observed)
		rows += float64(b.Rows)
	}
	if rows == 0 {
		return 0
	}
	return sum / rows
}

// auc is the rank statistic of Mann and Whitney; ties count half.
func auc(probabilities []float64, outcomes []bool) float64 {
	order := make([]int, len(probabilities))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return compare(probabilities[a], probabilities[b]) })
	var ranks, yes float64
	for start := 0; start < len(order); {
		end := start
		tied := 0.0
		for end < len(order) && probabilities[order[end]] == probabilities[order[start]] {
			if outcomes[order[end]] {
				tied++
			}
			end++
		}
		ranks += tied * float64(start+end+1) / 2
		yes += tied
		start = end
	}
	no := float64(len(order)) - yes
	return (ranks - yes*(yes+1)/2) / (yes * no)
}
