package train

import (
	"cmp"
	"math"
	"slices"

	"landfall.build/learning/calibration"
	"landfall.build/learning/logistic"
)

func measure(probabilities []float64, outcomes []bool) (OutcomeTest, error) {
	m, err := calibration.Measure(probabilities, outcomes)
	if err != nil {
		return OutcomeTest{}, err
	}
	yes := 0
	for _, o := range outcomes {
		if o {
			yes++
		}
	}
	return OutcomeTest{
		AUC: finite(m.AUC), LogLoss: finite(m.LogLoss), Brier: finite(m.Brier), ECE: finite(m.ECE), Accuracy: finite(m.Accuracy),
		Share: float64(yes) / float64(len(outcomes)),
	}, nil
}

// byWeight returns a model's features and weights, the largest first.
func byWeight(m *logistic.Model) (names []string, weights []float64) {
	order := make([]int, len(m.Features()))
	for i := range order {
		order[i] = i
	}
	all := m.Weights()
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(math.Abs(all[b]), math.Abs(all[a])) })
	return pick(m.Features(), order), pick(all, order)
}
