// Package fitted holds everything that turns a row of a table into a prediction: the encoding of the columns, their transformation, the
// model and its calibration. One program can train it, and another one can use it on any table with the same columns.
package fitted

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"landfall.build/learning/bytime"
	"landfall.build/learning/calibration"
	"landfall.build/learning/ngboost"
	"landfall.build/learning/table"
)

// ErrUsing occurs if a table does not fit the one that was trained on: a column is missing or of another kind, or no row is left to learn
// from.
var ErrUsing = errors.New("fitted: the table does not fit")

// Columns names the columns of a table that are no features.
type Columns struct {
	Target string
	// Time is when a prediction was needed, Ended when the target was known, in the same unit; both may be empty. With both, no row of a
	// window is predicted by one whose target was not known before the window began.
	Time, Ended string
}

// Times returns both times of each row, in thousandths of their unit; none if either is empty.
func (c Columns) Times(t *table.Table) (times bytime.Times, err error) {
	if c.Time == "" || c.Ended == "" {
		return times, nil
	}
	for _, of := range []struct {
		name string
		to   *[]int64
	}{{c.Time, &times.At}, {c.Ended, &times.Ended}} {
		values, err := t.Target(of.name)
		if err != nil {
			return times, err
		}
		for _, x := range values {
			*of.to = append(*of.to, int64(math.Round(1000*x)))
		}
	}
	return times, nil
}

// until returns the newest time of a table, NaN if it has none.
func (c Columns) until(t *table.Table) (float64, error) {
	if c.Time == "" {
		return math.NaN(), nil
	}
	times, err := t.Target(c.Time)
	if err != nil || len(times) == 0 {
		return math.NaN(), err
	}
	return slices.Max(times), nil
}

// Outcome predicts the probability of an event. It is immutable and safe for concurrent use.
type Outcome struct {
	encoder *table.Encoder
	// logScaled is set for the features whose logarithm is taken.
	logScaled   []bool
	model       *bytime.OutcomeModel
	calibration *calibration.Platt // nil: as it is
	until       float64
}

// TrainOutcome trains the probability of an event by package bytime, on all rows of a table, oldest first. The errors are those of
// packages table and bytime.
func TrainOutcome(ctx context.Context, t *table.Table, c Columns) (*Outcome, *bytime.OutcomeReport, error) {
	outcomes, err := t.Outcomes(c.Target)
	if err != nil {
		return nil, nil, err
	}
	m := &Outcome{}
	if m.until, err = c.until(t); err != nil {
		return nil, nil, err
	}
	times, err := c.Times(t)
	if err != nil {
		return nil, nil, err
	}
	encoder, rows, _, err := table.FitEncoder(t.Without(c.Target, c.Time, c.Ended), numbers(outcomes), table.Encoding{})
	if err != nil {
		return nil, nil, err
	}
	m.encoder, m.logScaled = encoder, longTails(rows)
	logScale(rows, m.logScaled)
	model, report, err := bytime.Outcome(ctx, bytime.OutcomeData{Rows: rows, Outcomes: outcomes, Features: encoder.Features(), Times: times})
	if err != nil {
		return nil, nil, err
	}
	m.model, m.calibration = model, report.Calibration
	return m, report, nil
}

// Model returns the model of the encoded features.
func (m *Outcome) Model() *bytime.OutcomeModel { return m.model }

// Until returns the newest time of the training rows, in seconds since 1970; NaN if they had none.
func (m *Outcome) Until() float64 { return m.until }

// Predict returns the probability of a yes of each row.
func (m *Outcome) Predict(t *table.Table) ([]float64, error) {
	rows, err := m.encoder.Encode(t)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUsing, err)
	}
	logScale(rows, m.logScaled)
	out := make([]float64, len(rows))
	for i, row := range rows {
		if out[i], err = m.model.Predict(row); err != nil {
			return nil, err
		}
		if m.calibration != nil {
			out[i] = m.calibration.Calibrate(out[i])
		}
	}
	return out, nil
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

// longTails reports, for each column, whether it is never negative and has a long tail, as counts, ages and sizes do.
func longTails(rows [][]float64) []bool {
	is := make([]bool, len(rows[0]))
	for k := range is {
		values := make([]float64, 0, len(rows))
		for _, row := range rows {
			if !math.IsNaN(row[k]) {
				values = append(values, row[k])
			}
		}
		slices.Sort(values)
		quantile := func(q float64) float64 { return values[int(q*float64(len(values)-1))] }
		is[k] = len(values) > 0 && values[0] >= 0 && quantile(0.99) > 8*max(quantile(0.5), 1)
	}
	return is
}

// logScale takes the logarithm of some columns, in place: the regression can then follow them.
func logScale(rows [][]float64, tails []bool) {
	for _, row := range rows {
		for k, is := range tails {
			if is {
				row[k] = math.Log1p(max(0, row[k]))
			}
		}
	}
}

// Distribution predicts the distribution of a number. It is immutable and safe for concurrent use.
type Distribution struct {
	encoder *table.Encoder
	model   *ngboost.Model
	// over is the column that the target is divided by, empty for none.
	over  string
	until float64
}

// DistributionOptions are those of TrainDistribution.
type DistributionOptions struct {
	Columns
	// Over is a column that the target is divided by, such as a rolling median, if not empty. Rows in which it is missing, or not above
	// zero, are left out.
	Over string
	// Tune chooses the number of rounds on windows of newer rows, and scales the spread to them (bytime.Distribution). Rows must then be
	// oldest first, and each round uses half of the rows and features.
	Tune   bool
	Config ngboost.Config
}

// Trained is the report of training a distribution.
type Trained struct {
	// Losses are the mean losses of the rows before each round's step.
	Losses []float64
	// Spread is the factor that the spread was multiplied by; 1 without Tune.
	Spread float64
	// Rows is the number of training rows; Dropped are the columns that are constant in them.
	Rows    int
	Dropped []string
}

// Settings of tuned distributions.
const (
	tunedRows     = 0.5
	tunedFeatures = 0.5
	tunedLeaf     = 10
)

// TrainDistribution trains a distribution on all rows of a table in which it can be learned. The errors are those of packages
// table, bytime and ngboost.
func TrainDistribution(ctx context.Context, t *table.Table, o DistributionOptions) (*Distribution, *Trained, error) {
	m := &Distribution{over: o.Over}
	scale, err := m.scale(t)
	if err != nil {
		return nil, nil, err
	}
	var known []int
	for i, x := range scale {
		if x > 0 {
			known = append(known, i)
		}
	}
	if len(known) == 0 && o.Over != "" {
		return nil, nil, fmt.Errorf("%w: %q is above zero in no row", ErrUsing, o.Over)
	}
	t = t.Pick(known)
	target, err := t.Target(o.Target)
	if err != nil {
		return nil, nil, err
	}
	if m.until, err = o.until(t); err != nil {
		return nil, nil, err
	}
	times, err := o.Times(t)
	if err != nil {
		return nil, nil, err
	}
	ratios := make([]float64, len(known))
	for i, row := range known {
		ratios[i] = target[i] / scale[row]
	}
	encoder, rows, dropped, err := table.FitEncoder(t.Without(o.Target, o.Time, o.Ended), ratios, table.Encoding{})
	if err != nil {
		return nil, nil, err
	}
	m.encoder = encoder
	data := ngboost.Data{Rows: rows, Target: ratios, Features: encoder.Features()}
	trained := &Trained{Spread: 1, Rows: len(rows), Dropped: dropped}
	if !o.Tune {
		model, report, err := ngboost.Train(ctx, data, nil, o.Config)
		if err != nil {
			return nil, nil, err
		}
		m.model, trained.Losses = model, report.TrainingLoss
		return m, trained, nil
	}
	o.Config.RowFraction, o.Config.ColumnFraction, o.Config.MinLeaf = tunedRows, tunedFeatures, tunedLeaf
	model, report, err := bytime.Distribution(ctx, data, times, o.Config)
	if err != nil {
		return nil, nil, err
	}
	m.model, trained.Losses, trained.Spread = model, report.TrainingLoss, report.Factor
	return m, trained, nil
}

// scale returns what each row's target is divided by.
func (m *Distribution) scale(t *table.Table) ([]float64, error) {
	if m.over == "" {
		return slices.Repeat([]float64{1}, t.Rows), nil
	}
	c, err := t.Column(m.over)
	if err != nil {
		return nil, err
	}
	if c.Kind == table.Category {
		return nil, fmt.Errorf("%w: %q holds text; a target is divided by a number", table.ErrColumn, m.over)
	}
	return c.Numbers, nil
}

// Model returns the model of the encoded features, whose target is divided by Over.
func (m *Distribution) Model() *ngboost.Model { return m.model }

// Until returns the newest time of the training rows, in seconds since 1970; NaN if they had none.
func (m *Distribution) Until() float64 { return m.until }

// Predict returns a distribution for each row in the target's own unit. known is false where what the target is relative to is
// not known, or not above zero: of such a row nothing can be said.
func (m *Distribution) Predict(t *table.Table) (predicted []ngboost.Prediction, known []bool, err error) {
	scale, err := m.scale(t)
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %w", ErrUsing, err)
	}
	rows, err := m.encoder.Encode(t)
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %w", ErrUsing, err)
	}
	predicted, known = make([]ngboost.Prediction, len(rows)), make([]bool, len(rows))
	for i, row := range rows {
		if known[i] = scale[i] > 0; !known[i] {
			continue
		}
		p, err := m.model.Predict(row)
		if err != nil {
			return nil, nil, err
		}
		predicted[i] = restored(p, scale[i])
	}
	return predicted, known, nil
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
