package ngboost

import (
	"fmt"
	"math"
)

// Data is a table to train or evaluate on. Nothing in it is changed or kept.
type Data struct {
	// Rows holds one slice per row, all of equal length; NaN is missing.
	Rows [][]float64
	// Target has one finite number per row.
	Target []float64
	// Censored, when not nil, marks rows of which only a lower bound is known:
	// the true target is above Target (right-censoring). LogNormal only.
	Censored []bool
	// Features names the columns; nil names them x0, x1, …
	Features []string
}

// columns is the training table turned by column and cast to float32, the
// precision in which features are split and predicted on.
type columns struct {
	count  int // rows
	values [][]float32
	names  []string
}

// modelled is the target as the distribution's normal sees it: the target
// itself, or its logarithm.
type modelled struct {
	distribution Distribution
	target       []float64
	censored     []bool
}

func (d Data) censoredAt(row int) bool { return d.Censored != nil && d.Censored[row] }

func (d Data) featureName(column int) string {
	if d.Features != nil {
		return d.Features[column]
	}
	return fmt.Sprintf("x%d", column)
}

// checkShape verifies lengths and bounds, without looking at values.
func (d Data) checkShape() error {
	if len(d.Rows) == 0 {
		return fmt.Errorf("%w: none given", ErrTooFewRows)
	}
	width := len(d.Rows[0])
	switch {
	case len(d.Target) != len(d.Rows):
		return fmt.Errorf("%w: %d rows but %d targets", ErrShape, len(d.Rows), len(d.Target))
	case d.Censored != nil && len(d.Censored) != len(d.Rows):
		return fmt.Errorf("%w: %d rows but %d censoring marks", ErrShape, len(d.Rows), len(d.Censored))
	case d.Features != nil && len(d.Features) != width:
		return fmt.Errorf("%w: %d columns but %d names", ErrShape, width, len(d.Features))
	case width == 0:
		return fmt.Errorf("%w: no features", ErrShape)
	case width > MaxFeatures:
		return fmt.Errorf("%w: %d features, at most %d", ErrShape, width, MaxFeatures)
	case len(d.Rows)*width > MaxCells:
		return fmt.Errorf("%w: %d rows × %d features, at most %d cells", ErrShape, len(d.Rows), width, MaxCells)
	}
	for f, name := range d.Features {
		if len(name) > maxName {
			return fmt.Errorf("%w: the name of column %d has %d bytes, at most %d", ErrShape, f, len(name), maxName)
		}
	}
	for i, row := range d.Rows {
		if len(row) != width {
			return fmt.Errorf("%w: row %d has %d features, row 0 has %d", ErrShape, i, len(row), width)
		}
	}
	return nil
}

// columnise checks the values of the features and turns them.
func (d Data) columnise() (columns, error) {
	width := len(d.Rows[0])
	table := columns{count: len(d.Rows), values: make([][]float32, width), names: make([]string, width)}
	cells := make([]float32, width*len(d.Rows))
	for f := range width {
		column := cells[f*len(d.Rows) : (f+1)*len(d.Rows)]
		for i, row := range d.Rows {
			if v := row[f]; math.Abs(v) > math.MaxFloat32 {
				return columns{}, fmt.Errorf("%w: row %d, %q is %g", ErrFeature, i, d.featureName(f), v)
			}
			column[i] = float32(row[f])
		}
		table.values[f], table.names[f] = column, d.featureName(f)
	}
	return table, nil
}

// checkVaries refuses a table in which no split can part two rows.
func (c columns) checkVaries() error {
	for _, values := range c.values {
		for _, v := range values {
			if differs(v, values[0]) {
				return nil
			}
		}
	}
	return fmt.Errorf("%w: %d rows, %d features", ErrConstantFeatures, c.count, len(c.values))
}

// differs counts a missing value as different from a present one, since a split can part them.
func differs(a, b float32) bool { return a != b && (a == a || b == b) }

// model checks the target and takes its logarithm where the distribution wants it.
func (d Data) model(distribution Distribution) (modelled, error) {
	target := make([]float64, len(d.Target))
	for i, y := range d.Target {
		switch {
		case math.IsNaN(y) || math.IsInf(y, 0):
			return modelled{}, fmt.Errorf("%w: row %d is %g", ErrTarget, i, y)
		case distribution == LogNormal && y <= 0:
			return modelled{}, fmt.Errorf("%w: row %d is %g, and lognormal needs targets above zero", ErrTarget, i, y)
		case distribution == Normal && d.censoredAt(i):
			return modelled{}, fmt.Errorf("%w: row %d is censored, which only lognormal allows", ErrTarget, i)
		case distribution == LogNormal:
			target[i] = math.Log(y)
		default:
			target[i] = y
		}
	}
	return modelled{distribution: distribution, target: target, censored: d.Censored}, nil
}

// maxVariance keeps sums of squares over all rows and rounds finite.
const maxVariance = 1e250

// marginal is the start of boosting: the mean and the logarithm of the
// population standard deviation of the modelled target. Censored rows count as
// if they had ended where they were cut, as in the reference.
func (m modelled) marginal() (mu, s float64, err error) {
	n := float64(len(m.target))
	for _, t := range m.target {
		mu += t / n
	}
	var variance float64
	for _, t := range m.target {
		variance += (t - mu) * (t - mu) / n
	}
	if !(variance > 0) || math.Sqrt(variance) <= 1e-12*math.Abs(mu) {
		return 0, 0, fmt.Errorf("%w: all %d targets are equal", ErrTarget, len(m.target))
	}
	if !(variance < maxVariance) {
		return 0, 0, fmt.Errorf("%w: its variance is %g, at most %g", ErrTarget, variance, maxVariance)
	}
	return mu, math.Log(math.Sqrt(variance)), nil
}
