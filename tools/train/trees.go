package train

import (
	"context"
	"math"

	"landfall.build/learning/calibration"
	"landfall.build/learning/ngboost"
)

// Bounds of the trees that go with a logistic regression.
const (
	treeRounds   = 400
	treeRate     = 0.03
	treeFraction = 0.5
)

// shares of the trees in the log-odds that are tried.
var shares = []float64{0, 0.2, 0.4, 0.6, 0.8, 1}

// fitTrees boosts trees to outcomes as numbers: their mean is a probability that follows what weights cannot, such
// as two features that only matter together. With newer rows it ends at the round that is best there.
func fitTrees(ctx context.Context, known part, names []string, newer *part, rounds int) (*ngboost.Model, error) {
	data := ngboost.Data{Rows: known.rows, Target: numbers(known.outcomes), Features: names}
	config := ngboost.Config{Rounds: rounds, LearningRate: treeRate, RowFraction: treeFraction, MinLeaf: 10, Method: ngboost.Histogram}
	var validation *ngboost.Data
	if newer != nil {
		validation, config.Patience = &ngboost.Data{Rows: newer.rows, Target: numbers(newer.outcomes), Features: names}, patience
	}
	m, _, err := ngboost.Train(ctx, data, validation, config)
	return m, err
}

func numbers(outcomes []bool) []float64 {
	out := make([]float64, len(outcomes))
	for i, yes := range outcomes {
		if yes {
			out[i] = 1
		}
	}
	return out
}

func predictTrees(m *ngboost.Model, rows [][]float64) ([]float64, error) {
	out := make([]float64, len(rows))
	for i, row := range rows {
		p, err := m.Predict(row)
		if err != nil {
			return nil, err
		}
		out[i] = p.Mean()
	}
	return out, nil
}

// blend mixes two probabilities of each row by their log-odds. What trees say may lie beyond 0 and 1.
func blend(weights, trees []float64, share float64) []float64 {
	out := make([]float64, len(weights))
	for i := range weights {
		odds := (1-share)*logOdds(weights[i]) + share*logOdds(trees[i])
		out[i] = 1 / (1 + math.Exp(-odds))
	}
	return out
}

func logOdds(p float64) float64 {
	p = min(max(p, 0.01), 0.99)
	return math.Log(p / (1 - p))
}

// chooseTreeShare gives the share of the trees that is best on rows, with its log loss.
func chooseTreeShare(weights, trees []float64, outcomes []bool) (share, logLoss float64, err error) {
	logLoss = math.Inf(1)
	for _, s := range shares {
		figures, err := calibration.Measure(blend(weights, trees, s), outcomes)
		if err != nil {
			return 0, 0, err
		}
		if figures.LogLoss < logLoss {
			share, logLoss = s, figures.LogLoss
		}
	}
	return share, logLoss, nil
}
