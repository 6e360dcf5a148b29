package fitting

import (
	"context"
	"fmt"
	"math"

	"landfall.build/engine/features"
	"landfall.build/engine/prediction"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/learning/bytime"
	"landfall.build/learning/calibration"
	"landfall.build/services/trainer/dataset"
)

// fitProbability fits a logistic regression, and boosted trees beside it where they help (M28). Settings are chosen on windows of the
// training rows, each predicted by what had ended before it.
func fitProbability(ctx context.Context, kind eventsv1.ModelKind, p parts) (*candidate, error) {
	for _, rows := range [][]dataset.Row{p.training, p.test} {
		if yes := shareOfYes(rows); yes == 0 || yes == 1 {
			return nil, fmt.Errorf("%w: all of %d rows came out the same", ErrTooLittle, len(rows))
		}
	}
	index := usable(kind, p.training)
	if len(index) == 0 {
		return nil, fmt.Errorf("%w: no feature is known and differs", ErrTooLittle)
	}
	m, chosen, err := bytime.Outcome(ctx, bytime.OutcomeData{
		Rows: matrix(kind, index, p.training, true), Outcomes: outcomesOf(p.training), Features: namesOf(kind, index), Times: timesOf(p.training),
	})
	if err != nil {
		return nil, err
	}
	c := &candidate{
		algorithm: fmt.Sprintf("logistic regression, L2 %g, %d of %d features", chosen.L2, len(chosen.Kept), len(prediction.SchemaOf(kind))), trainingRows: len(p.training), choosingRows: chosen.Windows,
		model: &eventsv1.Model{Features: m.Features()}, weights: weightsOf(m), until: untilOf(p.training),
		score: scoreModelProbability, figures: probabilityFigures, calibrationOf: reliability,
		asPublished: func(r dataset.Row) scored { return scoreProbability(r, r.Predicted) },
		rolling:     rollingShare(kind, shareOfYes(p.training)),
	}
	if chosen.Trees > 0 {
		c.algorithm += fmt.Sprintf(", %g of the log-odds by %d boosted trees", chosen.Trees, chosen.Rounds)
	}
	if c.model.Predictor, err = m.MarshalBinary(); err != nil {
		return nil, err
	}
	if chosen.Calibration != nil {
		c.algorithm += ", Platt's calibration"
		if c.model.Calibration, err = chosen.Calibration.MarshalBinary(); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// weightsOf returns the weights of the regression, which have a sign; if the model is trees alone, their importances.
func weightsOf(m *bytime.OutcomeModel) []*eventsv1.ModelWeight {
	if trees, share := m.Trees(); share == 1 {
		return sortedWeights(trees.Features(), trees.Importance())
	}
	return sortedWeights(m.Regression().Features(), m.Regression().Weights())
}

func shareOfYes(rows []dataset.Row) float64 {
	n := 0.0
	for _, r := range rows {
		n += r.Target
	}
	return n / float64(len(rows))
}

func outcomesOf(rows []dataset.Row) []bool {
	out := make([]bool, len(rows))
	for i, r := range rows {
		out[i] = r.Target > 0.5
	}
	return out
}

// rollingShare is the baseline: the rolling share of the vector, or that of all training rows where it is missing.
func rollingShare(kind eventsv1.ModelKind, overall float64) func(dataset.Row) scored {
	at := features.IndexOfChange("queue_failure_rate_50")
	if kind == eventsv1.ModelKind_MODEL_KIND_CONFLICT {
		at = features.IndexOfPair(features.PairRate)
	}
	return func(r dataset.Row) scored {
		p := float64(r.Vector[at])
		if kind == eventsv1.ModelKind_MODEL_KIND_SUCCESS {
			p = 1 - p
		}
		if math.IsNaN(p) {
			p = overall
		}
		return scoreProbability(r, math.Max(minShare, math.Min(1-minShare, p)))
	}
}

// minShare keeps a share of 50 away from 0 and 1.
const minShare = 0.01

func scoreModelProbability(m *prediction.Model, r dataset.Row) (scored, error) {
	p, err := m.Probability(r.Vector)
	return scoreProbability(r, p), err
}

func scoreProbability(r dataset.Row, p float64) scored {
	bounded := math.Max(1e-6, math.Min(1-1e-6, p))
	loss := -math.Log(bounded)
	if r.Target < 0.5 {
		loss = -math.Log(1 - bounded)
	}
	return scored{row: r, predicted: p, loss: loss}
}

func probabilityFigures(of []scored) map[string]float64 {
	predicted, outcomes := make([]float64, len(of)), make([]bool, len(of))
	for i, j := range of {
		predicted[i], outcomes[i] = math.Max(0, math.Min(1, j.predicted)), j.row.Target > 0.5
	}
	m, err := calibration.Measure(predicted, outcomes)
	if err != nil {
		return nil // a published prediction was not a number
	}
	return map[string]float64{"log_loss": m.LogLoss, "brier": m.Brier, "auc": m.AUC, "ece": m.ECE}
}

func reliability(of []scored) (out []Bin) {
	predicted, outcomes := make([]float64, len(of)), make([]bool, len(of))
	for i, j := range of {
		predicted[i], outcomes[i] = j.predicted, j.row.Target > 0.5
	}
	bins, err := calibration.Reliability(predicted, outcomes, 10)
	if err != nil {
		return nil
	}
	for _, b := range bins {
		if b.Rows > 0 {
			out = append(out, Bin{b.Predicted, b.Observed, b.Rows})
		}
	}
	return out
}
