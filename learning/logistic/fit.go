package logistic

import (
	"errors"
	"fmt"
	"math"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/optimize"
)

// Fit finds the weights that minimise the log loss plus the L2 penalty. It has
// one minimum, so equal data give equal models up to rounding.
func Fit(data Data, config Config) (*Model, error) {
	config, err := config.withDefaults()
	if err != nil {
		return nil, err
	}
	if err := data.check(); err != nil {
		return nil, err
	}
	design, model, err := standardise(data)
	if err != nil {
		return nil, err
	}
	objective := newObjective(design, data.Outcomes, config.L2)
	weights, err := objective.minimise(config)
	if err != nil {
		return nil, err
	}
	model.intercept = weights[len(design.columns)]
	for k, column := range design.columns {
		if column.missing {
			model.missing[column.feature] = weights[k] / column.deviation
			// The intercept was fitted with the mark centred on its mean.
			model.intercept -= weights[k] * column.mean / column.deviation
		} else {
			model.weights[column.feature] = weights[k]
		}
	}
	return model, nil
}

// design is the standardised table: one column for each feature that varies,
// and one for each feature that is sometimes missing, marking where.
type design struct {
	rows    int
	columns []column
	values  []float64 // row by row
}

type column struct {
	feature         int
	missing         bool
	mean, deviation float64
}

func standardise(data Data) (design, *Model, error) {
	width := len(data.Rows[0])
	model := &Model{
		features: make([]string, width), mean: make([]float64, width), deviation: make([]float64, width),
		weights: make([]float64, width), missing: make([]float64, width),
	}
	d := design{rows: len(data.Rows)}
	for f := range width {
		model.features[f] = data.featureName(f)
		mean, deviation, present := moments(data.Rows, f)
		model.mean[f], model.deviation[f] = mean, deviation
		if deviation > 0 {
			d.columns = append(d.columns, column{feature: f, mean: mean, deviation: deviation})
		}
		if share := 1 - float64(present)/float64(d.rows); share > 0 && share < 1 {
			d.columns = append(d.columns, column{feature: f, missing: true, mean: share, deviation: math.Sqrt(share * (1 - share))})
		}
	}
	if len(d.columns) == 0 {
		return design{}, nil, fmt.Errorf("%w: %d rows, %d features", ErrConstantFeatures, d.rows, width)
	}
	if d.rows*len(d.columns) > MaxCells {
		return design{}, nil, fmt.Errorf("%w: %d rows × %d columns, at most %d cells", ErrShape, d.rows, len(d.columns), MaxCells)
	}
	d.values = make([]float64, d.rows*len(d.columns))
	for i, row := range data.Rows {
		to := d.values[i*len(d.columns) : (i+1)*len(d.columns)]
		for k, c := range d.columns {
			to[k] = c.standardised(row[c.feature])
		}
	}
	return d, model, nil
}

func (c column) standardised(v float64) float64 {
	isMissing := v != v
	switch {
	case c.missing && isMissing:
		return (1 - c.mean) / c.deviation
	case c.missing:
		return -c.mean / c.deviation
	case isMissing:
		return 0
	}
	return (v - c.mean) / c.deviation
}

// moments returns mean and population standard deviation of a column's present
// values. A deviation that is rounding only counts as zero.
func moments(rows [][]float64, f int) (mean, deviation float64, present int) {
	for _, row := range rows {
		if v := row[f]; v == v {
			present++
			mean += (v - mean) / float64(present)
		}
	}
	if present == 0 {
		return 0, 0, 0
	}
	for _, row := range rows {
		if v := row[f]; v == v {
			deviation += (v - mean) * (v - mean) / float64(present)
		}
	}
	deviation = math.Sqrt(deviation)
	if deviation <= 1e-12*math.Abs(mean) {
		deviation = 0
	}
	return mean, deviation, present
}

// objective is the penalised mean log loss by weights, the intercept last.
type objective struct {
	table    blas64.General
	outcomes []float64
	l2       float64 // divided by the number of rows

	// The optimiser asks for value and gradient of the same point in turn.
	at       []float64
	value    float64
	gradient []float64
	odds     []float64
}

func newObjective(d design, outcomes []bool, l2 float64) *objective {
	width := len(d.columns)
	o := &objective{
		table:    blas64.General{Rows: d.rows, Cols: width, Stride: width, Data: d.values},
		outcomes: make([]float64, d.rows), l2: l2 / float64(d.rows),
		gradient: make([]float64, width+1), odds: make([]float64, d.rows),
	}
	for i, outcome := range outcomes {
		if outcome {
			o.outcomes[i] = 1
		}
	}
	return o
}

// evaluate fills value and gradient for a point.
func (o *objective) evaluate(point []float64) {
	if o.at != nil && equal(o.at, point) {
		return
	}
	o.at = append(o.at[:0], point...)
	width := o.table.Cols
	weights := blas64.Vector{N: width, Inc: 1, Data: point[:width]}
	residuals := blas64.Vector{N: o.table.Rows, Inc: 1, Data: o.odds}
	for i := range o.odds {
		o.odds[i] = point[width]
	}
	blas64.Gemv(blas.NoTrans, 1, o.table, weights, 1, residuals)
	o.value, o.gradient[width] = 0, 0
	n := float64(o.table.Rows)
	for i, odds := range o.odds {
		o.value += (max(odds, 0) - odds*o.outcomes[i] + math.Log1p(math.Exp(-math.Abs(odds)))) / n
		o.odds[i] = (probability(odds) - o.outcomes[i]) / n
		o.gradient[width] += o.odds[i]
	}
	blas64.Gemv(blas.Trans, 1, o.table, residuals, 0, blas64.Vector{N: width, Inc: 1, Data: o.gradient[:width]})
	for k, w := range point[:width] {
		o.value += o.l2 * w * w / 2
		o.gradient[k] += o.l2 * w
	}
}

func equal(a, b []float64) bool {
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

func (o *objective) minimise(config Config) ([]float64, error) {
	problem := optimize.Problem{
		Func: func(x []float64) float64 {
			o.evaluate(x)
			return o.value
		},
		Grad: func(gradient, x []float64) {
			o.evaluate(x)
			copy(gradient, o.gradient)
		},
	}
	start := make([]float64, len(o.gradient))
	settings := &optimize.Settings{
		GradientThreshold: config.Gradient,
		MajorIterations:   config.Iterations,
		Converger:         optimize.NeverTerminate{},
	}
	result, err := optimize.Minimize(problem, start, settings, &optimize.LBFGS{})
	if result == nil {
		return nil, fmt.Errorf("%w: %w", ErrNotConverged, err)
	}
	o.evaluate(result.X)
	// A line search that finds no lower point near the minimum ends in an
	// error; what counts is how flat the place is.
	steepest := 0.0
	for _, g := range o.gradient {
		steepest = max(steepest, math.Abs(g))
	}
	if !(steepest <= 100*config.Gradient) {
		cause := err
		if cause == nil {
			cause = errors.New(result.Status.String())
		}
		return nil, fmt.Errorf("%w after %d iterations: gradient %g: %w", ErrNotConverged, result.MajorIterations, steepest, cause)
	}
	return result.X, nil
}
