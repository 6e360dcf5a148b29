package train

import (
	"math"

	"landfall.build/learning/fitted"
	"landfall.build/learning/ngboost"
	"landfall.build/learning/table"
)

// judgeRows predicts the rows of which something can be said, and compares.
func judgeRows(m *fitted.Distribution, t *table.Table, target string) (*DurationTest, error) {
	came, err := t.Target(target)
	if err != nil {
		return nil, err
	}
	predicted, known, err := m.Predict(t)
	if err != nil {
		return nil, err
	}
	var said []ngboost.Prediction
	var truth []float64
	for i, is := range known {
		if is {
			said, truth = append(said, predicted[i]), append(truth, came[i])
		}
	}
	return judge(said, truth), nil
}

// judge compares predictions with what came true. The relative error is that of the one number that the predicted
// distribution says is best for it.
func judge(predicted []ngboost.Prediction, target []float64) *DurationTest {
	var nll, squares, relative, covered float64
	relatives := 0
	for i, p := range predicted {
		y := target[i]
		nll += p.NLL(y)
		squares += (p.Mean() - y) * (p.Mean() - y)
		if y != 0 {
			relative += math.Abs(p.RelativePoint()-y) / math.Abs(y)
			relatives++
		}
		if low, high := p.Interval(0.9); low <= y && y <= high {
			covered++
		}
	}
	n := float64(len(predicted))
	return &DurationTest{
		Rows: len(predicted), NLL: finite(nll / n), RMSE: finite(math.Sqrt(squares / n)), MAPE: finite(relative / float64(relatives)), Coverage90: finite(covered / n),
	}
}
