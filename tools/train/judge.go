package train

import (
	"landfall.build/learning/fitted"
	"landfall.build/learning/ngboost"
	"landfall.build/learning/table"
)

// judgeRows measures the predictions of the rows that the model can predict.
func judgeRows(m *fitted.Distribution, t *table.Table, target string) (*DurationTest, error) {
	observed, err := t.Target(target)
	if err != nil {
		return nil, err
	}
	predicted, known, err := m.Predict(t)
	if err != nil {
		return nil, err
	}
	var predictions []ngboost.Prediction
	var targets []float64
	for i, is := range known {
		if is {
			predictions, targets = append(predictions, predicted[i]), append(targets, observed[i])
		}
	}
	x := ngboost.Measure(predictions, targets)
	return &DurationTest{Rows: x.Rows, NLL: finite(x.NLL), RMSE: finite(x.RMSE), MAPE: finite(x.MAPE), Coverage90: finite(x.Coverage90)}, nil
}
