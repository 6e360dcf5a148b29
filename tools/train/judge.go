package train

import (
	"fmt"
	"math"
	"slices"

	"landfall.build/learning/ngboost"
	"landfall.build/learning/table"
)

// scale is what each row's target is divided by: a column, or 1.
type scale []float64

// scaleOf reads the column that the target is learned relative to, such as a rolling median. The rows kept are those
// in which it is known and above zero.
func scaleOf(t *table.Table, name string, older, test []int) (s scale, keptOlder, keptTest []int, err error) {
	s = make(scale, t.Rows)
	for i := range s {
		s[i] = 1
	}
	if name == "" {
		return s, older, test, nil
	}
	c, err := t.Column(name)
	if err != nil {
		return nil, nil, nil, err
	}
	if c.Kind == table.Category {
		return nil, nil, nil, fmt.Errorf("%w: %q holds text; a target is divided by a number", table.ErrColumn, name)
	}
	s = c.Numbers
	unknown := func(i int) bool { return !(s[i] > 0) } // NaN too
	return s, slices.DeleteFunc(slices.Clone(older), unknown), slices.DeleteFunc(slices.Clone(test), unknown), nil
}

// ratios are targets as they are learned.
func (s scale) ratios(target []float64, rows []int) []float64 {
	out := make([]float64, len(rows))
	for i, row := range rows {
		out[i] = target[row] / s[row]
	}
	return out
}

// restored is a prediction in the target's own unit.
func restored(p ngboost.Prediction, by float64) ngboost.Prediction {
	if p.Distribution == ngboost.LogNormal {
		p.Mu += math.Log(by)
		return p
	}
	p.Mu, p.Sigma = p.Mu*by, p.Sigma*by
	return p
}

// predictions of rows, in the target's own unit.
func predictions(m *ngboost.Model, encoded [][]float64, s scale, rows []int) ([]ngboost.Prediction, error) {
	out := make([]ngboost.Prediction, len(rows))
	for i, row := range rows {
		p, err := m.Predict(encoded[i])
		if err != nil {
			return nil, err
		}
		out[i] = restored(p, s[row])
	}
	return out, nil
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
