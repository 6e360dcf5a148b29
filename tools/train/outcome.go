package train

import (
	"context"
	"fmt"
	"io"
	"math"
	"slices"
	"time"

	"landfall.build/learning/calibration"
	"landfall.build/learning/logistic"
	"landfall.build/learning/table"
)

// OutcomeOptions are those of `landfall train outcome`.
type OutcomeOptions struct {
	CSV, Target, Time string
	// TestShare of the rows, the newest, is tested on and looked at for nothing else.
	TestShare float64
}

// OutcomeReport is what `landfall train outcome --json` prints.
type OutcomeReport struct {
	Test OutcomeTest `json:"test"`
	// Features that the model has after elimination, those that matter most first.
	Features []string  `json:"features"`
	Weights  []float64 `json:"weights"`
	Seconds  float64   `json:"seconds"`
	Rows     RowCounts `json:"rows"`
	Chosen   Chosen    `json:"chosen"`
}

// RowCounts are how many rows there were of each part.
type RowCounts struct {
	Train  int `json:"train"`
	Choose int `json:"choose"`
	Test   int `json:"test"`
}

// Chosen is what was chosen on the newest part of the rows that are not tested on.
type Chosen struct {
	L2         float64 `json:"l2"`
	Bent       bool    `json:"bent"`
	Calibrated bool    `json:"calibrated"`
	// Trees is the share of boosted trees in the log-odds, Rounds how many.
	Trees   float64 `json:"trees"`
	Rounds  int     `json:"rounds"`
	LogLoss float64 `json:"log_loss"`
}

// OutcomeTest is how good probabilities of the test rows are. A figure that is not finite is null.
type OutcomeTest struct {
	AUC      *float64 `json:"auc"`
	LogLoss  *float64 `json:"log_loss"`
	Brier    *float64 `json:"brier"`
	ECE      *float64 `json:"ece"`
	Accuracy *float64 `json:"accuracy"`
	// Share of true outcomes.
	Share float64 `json:"share"`
}

// chooseShare of the rows that are not tested on, the newest, are what choices are made by.
const chooseShare = 0.2

// part is rows with what came true.
type part struct {
	rows     [][]float64
	outcomes []bool
}

// Outcome trains the probability of a yes-or-no target. Everything is chosen on the newest fifth of the rows that
// come before the test part: how strongly weights are held down, whether features are bent, which of them are
// kept, how much boosted trees have to say, whether probabilities are calibrated. Then all rows before the test part are fitted.
func Outcome(ctx context.Context, o OutcomeOptions, log io.Writer) (*OutcomeReport, error) {
	began := time.Now()
	t, err := readTable(o.CSV)
	if err != nil {
		return nil, err
	}
	outcomes, err := t.Outcomes(o.Target)
	if err != nil {
		return nil, err
	}
	older, test, err := t.SplitByTime(o.Time, o.TestShare)
	if err != nil {
		return nil, err
	}
	cut := len(older) - int(math.Round(chooseShare*float64(len(older))))
	stop := progress(ctx, log, fmt.Sprintf("training on %d rows of %d columns", len(older), len(t.Columns)))
	defer stop()
	features := t.Without(o.Target, o.Time)
	early, choose, columns, err := encode(features, outcomes, older[:cut], older[cut:])
	if err != nil {
		return nil, err
	}
	all, newest, names, err := encode(features, outcomes, older, test)
	if err != nil {
		return nil, err
	}
	best, err := chooseModel(ctx, early, choose, columns)
	if err != nil {
		return nil, err
	}
	model, probabilities, err := best.refit(ctx, all, newest, names)
	if err != nil {
		return nil, err
	}
	out := &OutcomeReport{Rows: RowCounts{len(early.rows), len(choose.rows), len(newest.rows)}, Chosen: best.Chosen, Seconds: time.Since(began).Seconds()}
	if out.Test, err = measure(probabilities, newest.outcomes); err != nil {
		return nil, err
	}
	out.Features, out.Weights = byWeight(model)
	return out, nil
}

// encode makes features of two parts, as known from the first.
func encode(t *table.Table, outcomes []bool, known, other []int) (a, b part, names []string, err error) {
	a.outcomes, b.outcomes = pick(outcomes, known), pick(outcomes, other)
	target := make([]float64, len(known))
	for i, yes := range a.outcomes {
		if yes {
			target[i] = 1
		}
	}
	encoder, rows, _, err := table.FitEncoder(t.Pick(known), target, table.Encoding{})
	if err != nil {
		return a, b, nil, err
	}
	a.rows = rows
	b.rows, err = encoder.Encode(t.Pick(other))
	return a, b, encoder.Features(), err
}

// candidate is one way to fit.
type candidate struct {
	Chosen
	// kept are the features after elimination, by name.
	kept []string
	// platt is nil where probabilities are better as they are.
	platt *calibration.Platt
}

var strengths = []float64{1, 10, 100}

// chooseModel fits early rows in several ways and keeps the one that is best on the rows to choose by.
func chooseModel(ctx context.Context, early, choose part, names []string) (best candidate, err error) {
	best.LogLoss = math.Inf(1)
	var bestTrain, bestChoose logistic.Data
	for _, bent := range []bool{false, true} {
		b := fitBending(early.rows, names, !bent)
		training := logistic.Data{Rows: b.apply(early.rows), Outcomes: early.outcomes, Features: b.features()}
		validation := logistic.Data{Rows: b.apply(choose.rows), Outcomes: choose.outcomes, Features: b.features()}
		for _, l2 := range strengths {
			if ctx.Err() != nil {
				return best, ctx.Err()
			}
			m, err := logistic.Fit(training, logistic.Config{L2: l2})
			if err != nil {
				return best, err
			}
			probabilities, err := predict(m, validation.Rows)
			if err != nil {
				return best, err
			}
			figures, err := calibration.Measure(probabilities, choose.outcomes)
			if err != nil {
				return best, err
			}
			if figures.LogLoss < best.LogLoss {
				best.Chosen = Chosen{L2: l2, Bent: bent, LogLoss: figures.LogLoss}
				bestTrain, bestChoose = training, validation
			}
		}
	}
	m, _, err := logistic.Eliminate(ctx, bestTrain, bestChoose, logistic.Config{L2: best.L2}, logistic.Elimination{Share: 0.2})
	if err != nil {
		return best, err
	}
	best.kept = m.Features()
	probabilities, err := predict(m, columns(bestChoose, best.kept).Rows)
	if err != nil {
		return best, err
	}
	trees, err := fitTrees(ctx, early, names, &choose, treeRounds)
	if err != nil {
		return best, err
	}
	grown, err := predictTrees(trees, choose.rows)
	if err != nil {
		return best, err
	}
	if best.Trees, best.LogLoss, err = chooseTreeShare(probabilities, grown, choose.outcomes); err != nil {
		return best, err
	}
	best.Rounds = trees.Rounds()
	best.platt = calibration.FitPlattIfBetter(blend(probabilities, grown, best.Trees), choose.outcomes)
	best.Calibrated = best.platt != nil
	return best, nil
}

// refit fits all rows before the test part, in the way chosen, and predicts the test part.
func (c candidate) refit(ctx context.Context, all, test part, names []string) (*logistic.Model, []float64, error) {
	b := fitBending(all.rows, names, !c.Bent)
	data := logistic.Data{Rows: b.apply(all.rows), Outcomes: all.outcomes, Features: b.features()}
	kept := c.still(data.Features)
	m, err := logistic.Fit(columns(data, kept), logistic.Config{L2: c.L2})
	if err != nil {
		return nil, nil, err
	}
	newest := columns(logistic.Data{Rows: b.apply(test.rows), Features: b.features()}, kept)
	probabilities, err := predict(m, newest.Rows)
	if err != nil {
		return nil, nil, err
	}
	if c.Trees > 0 {
		trees, err := fitTrees(ctx, all, names, nil, c.Rounds)
		if err != nil {
			return nil, nil, err
		}
		grown, err := predictTrees(trees, test.rows)
		if err != nil {
			return nil, nil, err
		}
		probabilities = blend(probabilities, grown, c.Trees)
	}
	if c.platt != nil {
		for i, p := range probabilities {
			probabilities[i] = c.platt.Calibrate(p)
		}
	}
	return m, probabilities, nil
}

// still are the features kept that there are now. With more rows a knot may have moved, and has another name: a
// feature is kept if it, or a bend of the same column, was.
func (c candidate) still(names []string) []string {
	var out []string
	for _, name := range names {
		if slices.ContainsFunc(c.kept, func(kept string) bool {
			return column(kept) == column(name) && (kept == name || kept != column(kept) && name != column(name))
		}) {
			out = append(out, name)
		}
	}
	return out
}
