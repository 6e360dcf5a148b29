package train

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"landfall.build/learning/fitted"
)

// OutcomeOptions are those of `landfall train outcome`.
type OutcomeOptions struct {
	CSV, Target, Time string
	// Ended is a column of when the target was known, if not empty: nothing is then learned from what was not known yet.
	Ended string
	// TestShare is the share of the rows, the newest, that are used for testing alone.
	TestShare float64
	// Model is a file to write the model to, if not empty.
	Model string
}

// OutcomeReport is what `landfall train outcome --json` prints.
type OutcomeReport struct {
	Test OutcomeTest `json:"test"`
	// Features that the regression has after elimination, those that matter most first; Importance is how much of what the trees
	// explain each feature explains.
	Features   []string  `json:"features"`
	Weights    []float64 `json:"weights"`
	Importance []Weight  `json:"importance"`
	Seconds    float64   `json:"seconds"`
	Rows       RowCounts `json:"rows"`
	Chosen     Chosen    `json:"chosen"`
}

// RowCounts are how many rows were fitted, how many of these, the newest, choices were made by first, and how many are tested.
type RowCounts struct {
	Train  int `json:"train"`
	Choose int `json:"choose"`
	Test   int `json:"test"`
}

// Chosen is what was chosen on the newest windows of the rows that are not tested on.
type Chosen struct {
	L2 float64 `json:"l2"`
	// Kept is how many features the regression has after elimination.
	Kept       int  `json:"kept"`
	Calibrated bool `json:"calibrated"`
	// Trees is the share of boosted trees in the log-odds, Rounds how many.
	Trees  float64 `json:"trees"`
	Rounds int     `json:"rounds"`
	// LogLoss of all windows, each predicted by what was fitted to the rows before it.
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

// Outcome trains the probability of a yes-or-no target as package bytime does, on the rows before the test part.
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
	columns := fitted.Columns{Target: o.Target, Time: o.Time, Ended: o.Ended}
	if older, err = ended(t, columns, older, test); err != nil {
		return nil, err
	}
	stop := progress(ctx, log, fmt.Sprintf("training on %d rows of %d columns", len(older), len(t.Columns)))
	defer stop()
	m, chosen, err := fitted.TrainOutcome(ctx, t.Pick(older), columns)
	if err != nil {
		return nil, err
	}
	if err := keep(o.Model, m); err != nil {
		return nil, err
	}
	probabilities, err := m.Predict(t.Pick(test))
	if err != nil {
		return nil, err
	}
	out := &OutcomeReport{
		Rows: RowCounts{len(older), chosen.Windows, len(test)}, Seconds: time.Since(began).Seconds(),
		Chosen: Chosen{L2: chosen.L2, Kept: len(chosen.Kept), Calibrated: chosen.Calibration != nil, Trees: chosen.Trees, Rounds: chosen.Rounds, LogLoss: chosen.LogLoss},
	}
	if out.Test, err = measure(probabilities, pick(outcomes, test)); err != nil {
		return nil, err
	}
	out.Features, out.Weights = byWeight(m.Model().Regression())
	if trees, _ := m.Model().Trees(); trees != nil {
		importance := trees.Importance()
		for i, name := range trees.Features() {
			out.Importance = append(out.Importance, Weight{name, importance[i]})
		}
		slices.SortStableFunc(out.Importance, func(a, b Weight) int { return cmp.Compare(b.Weight, a.Weight) })
	}
	return out, nil
}
