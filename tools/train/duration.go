package train

import (
	"context"
	"fmt"
	"io"
	"time"

	"landfall.build/learning/ngboost"
	"landfall.build/learning/table"
)

// DurationOptions are those of `landfall train duration`.
type DurationOptions struct {
	CSV, Target  string
	Distribution string
	Rounds       int
	Rate         float64
	// Exact looks at every midpoint; else features are put into bins.
	Exact bool
	// TestRows is a file that names the rows to test on. Without, TestShare of the rows, the newest by the
	// column Time, are tested on; without either, none are.
	TestRows, Time string
	TestShare      float64
	// Over is a column that the target is learned relative to, such as a rolling median, if not empty.
	Over string
	// Tune trains on the oldest rows, ends at the round that is best on newer ones, and fits the spread to the
	// newest before the test part, since a model is too sure of times after its training.
	Tune bool
}

// DurationReport is what `landfall train duration --json` prints.
type DurationReport struct {
	// TrainLoss is the mean loss of the training rows before each round's step.
	TrainLoss []float64     `json:"train_loss"`
	Test      *DurationTest `json:"test"`
	Seconds   float64       `json:"seconds"`
	TrainRows int           `json:"train_rows"`
	// Rounds that the model has: all, or with Tune those up to the best.
	Rounds   int      `json:"rounds"`
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

// Duration trains a distribution of a target above nothing, such as seconds.
func Duration(ctx context.Context, o DurationOptions, log io.Writer) (*DurationReport, error) {
	distribution, err := ngboost.ParseDistribution(o.Distribution)
	if err != nil {
		return nil, err
	}
	t, err := readTable(o.CSV)
	if err != nil {
		return nil, err
	}
	target, err := t.Target(o.Target)
	if err != nil {
		return nil, err
	}
	older, test, err := o.split(t)
	if err != nil {
		return nil, err
	}
	by, older, test, err := scaleOf(t, o.Over, older, test)
	if err != nil {
		return nil, err
	}
	features := t.Without(o.Target, o.Time)
	older, validate, newest := o.tuning(older)
	encoder, rows, dropped, err := table.FitEncoder(features.Pick(older), by.ratios(target, older), table.Encoding{})
	if err != nil {
		return nil, err
	}
	if len(dropped) > 0 {
		fmt.Fprintf(log, "left out, since they never change in training: %s\n", clip(fmt.Sprint(dropped)))
	}
	config := ngboost.Config{Distribution: distribution, Rounds: o.Rounds, LearningRate: o.Rate, Method: ngboost.Histogram}
	if o.Exact {
		config.Method = ngboost.Exact
	}
	data := func(rows []int) (ngboost.Data, error) {
		encoded, err := encoder.Encode(features.Pick(rows))
		return ngboost.Data{Rows: encoded, Target: by.ratios(target, rows), Features: encoder.Features()}, err
	}
	var validation *ngboost.Data
	if o.Tune {
		newer, err := data(validate)
		if err != nil {
			return nil, err
		}
		validation, config.Patience, config.RowFraction = &newer, patience, tunedFraction
	}
	began := time.Now()
	stop := progress(ctx, log, fmt.Sprintf("training on %d rows of %d features", len(rows), len(encoder.Features())))
	model, report, err := ngboost.Train(ctx, ngboost.Data{Rows: rows, Target: by.ratios(target, older), Features: encoder.Features()}, validation, config)
	stop()
	if err != nil {
		return nil, err
	}
	if o.Tune {
		recent, err := data(newest)
		if err != nil {
			return nil, err
		}
		if model, err = rescaled(model, recent); err != nil {
			return nil, err
		}
	}
	out := &DurationReport{Rounds: model.Rounds(), TrainLoss: report.TrainingLoss, Seconds: time.Since(began).Seconds(), TrainRows: len(rows)}
	importance, _ := model.Importance()
	for i, name := range model.Features() {
		out.Features = append(out.Features, Weight{name, importance[i]})
	}
	if len(test) == 0 {
		return out, nil
	}
	unseen, err := data(test)
	if err != nil {
		return nil, err
	}
	predicted, err := predictions(model, unseen.Rows, by, test)
	if err != nil {
		return nil, err
	}
	out.Test = judge(predicted, pick(target, test))
	return out, nil
}

// patience is how many rounds without a better validation loss end tuned training, tunedFraction the share of the
// rows that each of its rounds sees.
const (
	patience      = 50
	tunedFraction = 0.5
)

// tuning parts the rows before the test part, oldest first: to train, to choose the round, to fit the spread.
func (o DurationOptions) tuning(older []int) (train, validate, newest []int) {
	if !o.Tune {
		return older, nil, nil
	}
	tenth := len(older) / 10
	a, b := len(older)-3*tenth, len(older)-tenth
	return older[:a], older[a:b], older[b:]
}

func rescaled(m *ngboost.Model, newest ngboost.Data) (*ngboost.Model, error) {
	factor, err := ngboost.FitScale(m, newest)
	if err != nil {
		return nil, err
	}
	return m.Rescaled(factor)
}

// split gives the rows to train on and those to test on.
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
