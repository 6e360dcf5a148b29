package train

import (
	"context"
	"fmt"
	"io"
	"time"

	"landfall.build/learning/fitted"
	"landfall.build/learning/ngboost"
	"landfall.build/learning/table"
)

// DurationOptions are those of `landfall train duration`.
type DurationOptions struct {
	CSV, Target  string
	Distribution string
	Rounds       int
	Rate         float64
	// Exact tries every midpoint between values; else features are put into bins.
	Exact bool
	// TestRows is a file that names the rows to test on. Without, TestShare of the rows, the newest by the
	// column Time, are tested on; without either, none are.
	TestRows, Time string
	TestShare      float64
	// Ended is as that of OutcomeOptions; it needs Time.
	Ended string
	// Over is a column that the target is learned relative to, such as a rolling median, if not empty.
	Over string
	// Tune trains as many of the rounds as are best on the newest windows before the test part, and fits the spread to them,
	// since a model is too sure of times after its training.
	Tune bool
	// Model is a file to write the model to, if not empty.
	Model string
}

// DurationReport is what `landfall train duration --json` prints.
type DurationReport struct {
	// TrainLoss is the mean loss of the training rows before each round's step.
	TrainLoss []float64     `json:"train_loss"`
	Test      *DurationTest `json:"test"`
	Seconds   float64       `json:"seconds"`
	TrainRows int           `json:"train_rows"`
	// Rounds that the model has: all, or with Tune those up to the best.
	Rounds int `json:"rounds"`
	// Spread is what the spread was multiplied by; 1 without Tune.
	Spread   float64  `json:"spread"`
	Features []Weight `json:"features"`
}

// DurationTest is how good predictions of the test rows are. A figure that is not finite is null.
type DurationTest struct {
	Rows       int      `json:"rows"`
	NLL        *float64 `json:"nll"`
	RMSE       *float64 `json:"rmse"`
	MAPE       *float64 `json:"mape"`
	Coverage90 *float64 `json:"coverage90"`
}

// Weight is how much a feature matters: its share of what splits explain, or its weight by standard deviation.
type Weight struct {
	Name   string  `json:"name"`
	Weight float64 `json:"weight"`
}

// Duration trains a distribution of a number, such as the seconds of a build, and judges it on the test rows. Progress is
// written to log.
func Duration(ctx context.Context, o DurationOptions, log io.Writer) (*DurationReport, error) {
	distribution, err := ngboost.ParseDistribution(o.Distribution)
	if err != nil {
		return nil, err
	}
	t, err := readTable(o.CSV)
	if err != nil {
		return nil, err
	}
	if _, err := t.Target(o.Target); err != nil {
		return nil, err
	}
	older, test, err := o.split(t)
	if err != nil {
		return nil, err
	}
	columns := fitted.Columns{Target: o.Target, Time: o.Time, Ended: o.Ended}
	if older, err = ended(t, columns, older, test); err != nil {
		return nil, err
	}
	config := ngboost.Config{Distribution: distribution, Rounds: o.Rounds, LearningRate: o.Rate, Method: ngboost.Histogram}
	if o.Exact {
		config.Method = ngboost.Exact
	}
	began := time.Now()
	stop := progress(ctx, log, fmt.Sprintf("training on %d rows of %d columns", len(older), len(t.Columns)))
	m, trained, err := fitted.TrainDistribution(ctx, t.Pick(older), fitted.DistributionOptions{
		Columns: columns, Over: o.Over, Tune: o.Tune, Config: config,
	})
	stop()
	if err != nil {
		return nil, err
	}
	if len(trained.Dropped) > 0 {
		fmt.Fprintf(log, "left out, since they never change in training: %s\n", clip(fmt.Sprint(trained.Dropped)))
	}
	if err := keep(o.Model, m); err != nil {
		return nil, err
	}
	model := m.Model()
	out := &DurationReport{Rounds: model.Rounds(), Spread: trained.Spread, TrainLoss: trained.Losses, Seconds: time.Since(began).Seconds(), TrainRows: trained.Rows}
	importance, _ := model.Importance()
	for i, name := range model.Features() {
		out.Features = append(out.Features, Weight{name, importance[i]})
	}
	if len(test) == 0 {
		return out, nil
	}
	out.Test, err = judgeRows(m, t.Pick(test), o.Target)
	return out, err
}

// split returns the rows to train on and those to test on.
func (o DurationOptions) split(t *table.Table) (older, test []int, err error) {
	switch {
	case o.TestRows != "":
		if test, err = readRows(o.TestRows, t.Rows); err != nil {
			return nil, nil, err
		}
		return others(test, t.Rows), test, nil
	case o.Time != "":
		return t.SplitByTime(o.Time, o.TestShare)
	}
	return others(nil, t.Rows), nil, nil
}
