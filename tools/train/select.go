package train

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"landfall.build/learning/calibration"
	"landfall.build/learning/logistic"
)

// column is the column that a feature was bent from, or itself.
func column(feature string) string {
	name, _, _ := strings.Cut(feature, " above ")
	return name
}

// columns is data with some of its features.
func columns(d logistic.Data, names []string) logistic.Data {
	at := make([]int, len(names))
	for i, name := range names {
		at[i] = slices.Index(d.Features, name)
	}
	out := logistic.Data{Outcomes: d.Outcomes, Features: names, Rows: make([][]float64, len(d.Rows))}
	for i, row := range d.Rows {
		out.Rows[i] = pick(row, at)
	}
	return out
}

func predict(m *logistic.Model, rows [][]float64) ([]float64, error) {
	out := make([]float64, len(rows))
	for i, row := range rows {
		p, err := m.Predict(row)
		if err != nil {
			return nil, err
		}
		out[i] = p
	}
	return out, nil
}

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

// byWeight are a model's features, those that matter most first.
func byWeight(m *logistic.Model) (names []string, weights []float64) {
	order := make([]int, len(m.Features()))
	for i := range order {
		order[i] = i
	}
	all := m.Weights()
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(math.Abs(all[b]), math.Abs(all[a])) })
	return pick(m.Features(), order), pick(all, order)
}
