package bytime

import (
	"context"
	"fmt"
	"math"
	"slices"

	"landfall.build/learning/calibration"
	"landfall.build/learning/logistic"
	"landfall.build/learning/ngboost"
)

// OutcomeData has rows with outcomes, oldest first.
type OutcomeData struct {
	// Rows have one value for each feature; NaN is missing. Counts should be logarithms, for the regression.
	Rows     [][]float64
	Outcomes []bool
	Features []string
	Times
}

// OutcomeReport has the settings that were chosen, and how good they were on the windows.
type OutcomeReport struct {
	// L2 is the penalty of the regression, Kept are its features after elimination.
	L2   float64
	Kept []string
	// Rounds is the number of trees, Trees their share of the log-odds; both are 0 if the trees were left out.
	Rounds int
	Trees  float64
	// Windows is the number of rows in the windows, LogLoss the loss of the chosen settings on them, before calibration.
	Windows int
	LogLoss float64
	// Calibration is nil if it does not help. It is not part of the model.
	Calibration *calibration.Platt
}

var (
	penalties  = []float64{1, 10, 100}
	treeShares = []float64{0, 0.25, 0.5, 0.75, 1}
)

// Settings of the trees: shallow, slow to learn, and each on a part of the rows and features, so that a few rounds more or less matter
// little.
const (
	treeRounds   = 400
	treePatience = 80
	treeRate     = 0.04
	treeDepth    = 3
	treeLeaf     = 20
	treeRows     = 0.5
	treeFeatures = 0.4
)

// eliminated is the share of the features that each step of the elimination drops, tolerated how much more log loss is accepted for fewer
// features.
const (
	eliminated = 0.15
	tolerated  = 0.0005
)

// Outcome trains the probability of an event. It chooses the penalty, the features of the regression, the number of trees, their share and
// whether a calibration helps on the newest four tenths of the rows, in four windows, each predicted by models of the rows known before
// it. Then it fits both learners to all rows. It returns ErrShape, ErrTooFewRows, an error of the learners, or that of ctx; none is
// worth a retry with the same rows.
func Outcome(ctx context.Context, d OutcomeData) (*OutcomeModel, *OutcomeReport, error) {
	if len(d.Outcomes) != len(d.Rows) {
		return nil, nil, fmt.Errorf("%w: %d rows, %d outcomes", ErrShape, len(d.Rows), len(d.Outcomes))
	}
	folds, err := d.folds(len(d.Rows))
	if err != nil {
		return nil, nil, err
	}
	var truth []bool
	for _, f := range folds {
		truth = append(truth, pick(d.Outcomes, f.window)...)
	}
	report := &OutcomeReport{Windows: len(truth)}
	if report.L2, err = d.choosePenalty(ctx, folds, truth); err != nil {
		return nil, nil, err
	}
	// Features are eliminated by the newest half of the windows: the last fifth of the rows.
	half := folds[len(folds)/2]
	newest := fold{known: half.known, window: span(half.window[0], len(d.Rows))}
	slim, _, err := logistic.Eliminate(ctx, d.regression(newest.known), d.regression(newest.window), regression(report.L2), logistic.Elimination{Share: eliminated, Tolerance: tolerated})
	if err != nil {
		return nil, nil, err
	}
	report.Kept = slim.Features()
	kept := d.only(report.Kept)
	byRegression, err := kept.predictByRegression(ctx, folds, report.L2)
	if err != nil {
		return nil, nil, err
	}
	byTrees, rounds, err := d.predictByTrees(ctx, folds)
	if err != nil {
		return nil, nil, err
	}
	report.Trees, report.LogLoss = chooseShare(byRegression, byTrees, truth)
	report.Calibration = calibrationOf(blend(byRegression, byTrees, report.Trees), truth, folds)

	all := span(0, len(d.Rows))
	m := &OutcomeModel{features: d.Features, share: report.Trees}
	if m.weights, err = logistic.Fit(kept.regression(all), regression(report.L2)); err != nil {
		return nil, nil, err
	}
	if report.Trees > 0 {
		report.Rounds = rounds
		if m.trees, _, err = ngboost.TrainOutcome(ctx, d.boosting(all), nil, treesOf(rounds)); err != nil {
			return nil, nil, err
		}
	}
	return m, report, m.connect()
}

// iterations suffice for nearly collinear columns under the weakest penalty.
const iterations = 3000

func regression(l2 float64) logistic.Config { return logistic.Config{L2: l2, Iterations: iterations} }

func treesOf(rounds int) ngboost.Config {
	return ngboost.Config{
		Rounds: rounds, LearningRate: treeRate, Depth: treeDepth, MinLeaf: treeLeaf, RowFraction: treeRows, ColumnFraction: treeFeatures, Method: ngboost.Histogram,
	}
}

// only returns the rows with some of the features.
func (d OutcomeData) only(names []string) OutcomeData {
	index := make([]int, len(names))
	for k, name := range names {
		index[k] = slices.Index(d.Features, name)
	}
	out := OutcomeData{Outcomes: d.Outcomes, Features: names, Times: d.Times, Rows: make([][]float64, len(d.Rows))}
	for i, row := range d.Rows {
		out.Rows[i] = pick(row, index)
	}
	return out
}

func (d OutcomeData) regression(rows []int) logistic.Data {
	return logistic.Data{Rows: pick(d.Rows, rows), Outcomes: pick(d.Outcomes, rows), Features: d.Features}
}

func (d OutcomeData) boosting(rows []int) ngboost.Data {
	out := ngboost.Data{Rows: pick(d.Rows, rows), Features: d.Features, Target: make([]float64, len(rows))}
	for k, i := range rows {
		if d.Outcomes[i] {
			out.Target[k] = 1
		}
	}
	return out
}

// choosePenalty returns the penalty that is best on all windows.
func (d OutcomeData) choosePenalty(ctx context.Context, folds []fold, truth []bool) (penalty float64, err error) {
	least := math.Inf(1)
	for _, l2 := range penalties {
		odds, err := d.predictByRegression(ctx, folds, l2)
		if err != nil {
			return 0, err
		}
		if loss := logLossOf(odds, truth); loss < least {
			penalty, least = l2, loss
		}
	}
	return penalty, nil
}

// predictByRegression returns the probabilities in all windows, by regressions on the rows known before each.
func (d OutcomeData) predictByRegression(ctx context.Context, folds []fold, l2 float64) (out []float64, err error) {
	for _, f := range folds {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		m, err := logistic.Fit(d.regression(f.known), regression(l2))
		if err != nil {
			return nil, err
		}
		for _, i := range f.window {
			p, err := m.Predict(d.Rows[i])
			if err != nil {
				return nil, err
			}
			out = append(out, p)
		}
	}
	return out, nil
}

// predictByTrees returns the probabilities in all windows, by the number of trees that is best over all of them.
func (d OutcomeData) predictByTrees(ctx context.Context, folds []fold) (out []float64, rounds int, err error) {
	losses := make([]float64, treeRounds) // by round, over all windows
	for _, f := range folds {
		newer := d.boosting(f.window)
		trial := treesOf(treeRounds)
		trial.Patience = treePatience
		_, report, err := ngboost.TrainOutcome(ctx, d.boosting(f.known), &newer, trial)
		if err != nil {
			return nil, 0, err
		}
		// A trial that ended early keeps its last loss.
		last := len(report.ValidationNLL) - 1
		for k := range losses {
			losses[k] += report.ValidationNLL[min(k, last)] * float64(len(f.window))
		}
	}
	rounds = 1 + lowest(losses)
	for _, f := range folds {
		m, _, err := ngboost.TrainOutcome(ctx, d.boosting(f.known), nil, treesOf(rounds))
		if err != nil {
			return nil, 0, err
		}
		for _, i := range f.window {
			p, err := m.Predict(d.Rows[i])
			if err != nil {
				return nil, 0, err
			}
			out = append(out, p)
		}
	}
	return out, rounds, nil
}

func lowest(values []float64) (at int) {
	for k, v := range values {
		if v < values[at] {
			at = k
		}
	}
	return at
}

// chooseShare returns the share of the trees that is best, with its log loss.
func chooseShare(byRegression, byTrees []float64, truth []bool) (share, loss float64) {
	loss = math.Inf(1)
	for _, s := range treeShares {
		if l := logLossOf(blend(byRegression, byTrees, s), truth); l < loss {
			share, loss = s, l
		}
	}
	return share, loss
}

func blend(byRegression, byTrees []float64, share float64) []float64 {
	out := make([]float64, len(byRegression))
	for i := range out {
		out[i] = mixed(byRegression[i], byTrees[i], share)
	}
	return out
}

func logLossOf(probabilities []float64, truth []bool) float64 {
	sum := 0.0
	for i, p := range probabilities {
		if !truth[i] {
			p = 1 - p
		}
		sum -= math.Log(max(p, 1e-15))
	}
	return sum / float64(len(probabilities))
}

// calibrationOf returns a calibration fitted to all windows, or nil unless each window but the first is better with the calibration of
// the windows before it. A calibration that helps in one window often harms in the next.
func calibrationOf(probabilities []float64, truth []bool, folds []fold) *calibration.Platt {
	from := 0
	for k, f := range folds {
		to := from + len(f.window)
		if k > 0 {
			trial, err := calibration.FitPlatt(probabilities[:from], truth[:from])
			if err != nil {
				return nil // too few rows, or one outcome only
			}
			mapped := make([]float64, 0, to-from)
			for _, p := range probabilities[from:to] {
				mapped = append(mapped, trial.Calibrate(p))
			}
			if logLossOf(mapped, truth[from:to]) >= logLossOf(probabilities[from:to], truth[from:to]) {
				return nil
			}
		}
		from = to
	}
	whole, err := calibration.FitPlatt(probabilities, truth)
	if err != nil {
		return nil
	}
	return whole
}
