package fitting

import (
	"context"
	"fmt"
	"math"

	eventsv1 "landfall.build/events/v1"
	"landfall.build/learning/bytime"
	"landfall.build/learning/calibration"
	"landfall.build/services/profiler/features"
	"landfall.build/services/profiler/prediction"
	"landfall.build/services/trainer/dataset"
)

// fitProbability fits a logistic regression with boosted trees beside it; what there is to choose is chosen on windows of the
// older rows, each predicted by what had ended before it (M28).
func fitProbability(ctx context.Context, kind eventsv1.ModelKind, p parts) (*candidate, error) {
	for _, rows := range [][]dataset.Row{p.older, p.newest} {
		if yes := shareOfYes(rows); yes == 0 || yes == 1 {
			return nil, fmt.Errorf("%w: all of %d rows came out the same", ErrTooLittle, len(rows))
		}
	}
	index := usable(kind, p.older)
	if len(index) == 0 {
		return nil, fmt.Errorf("%w: no feature is known and differs", ErrTooLittle)
	}
	m, chosen, err := bytime.Outcome(ctx, bytime.OutcomeData{
		Rows: matrix(kind, index, p.older, true), Outcomes: outcomesOf(p.older), Features: namesOf(kind, index), Times: timesOf(p.older),
	})
	if err != nil {
		return nil, err
	}
	c := &candidate{
		algorithm: fmt.Sprintf("logistic regression, L2 %g, %d of %d features", chosen.L2, len(chosen.Kept), len(prediction.SchemaOf(kind))), training: len(p.older), choosing: chosen.Windows,
		model: &eventsv1.Model{Features: m.Features()}, weights: weightsOf(m), until: untilOf(p.older),
		ask: askProbability, figures: probabilityFigures, calibrationOf: reliability,
		asLogged: func(r dataset.Row) judged { return judgeProbability(r, r.Predicted) },
		rolling:  rollingShare(kind, shareOfYes(p.older)),
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

// weightsOf are those of the regression: they say in which direction. Where trees have all to say, the share of what they
// explain.
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

// rollingShare is the baseline: how many of the last came out so, as the vector has it; of all older rows where it has not.
func rollingShare(kind eventsv1.ModelKind, overall float64) func(dataset.Row) judged {
	at := features.IndexOfChange("queue_failure_rate_50")
	if kind == eventsv1.ModelKind_MODEL_KIND_CONFLICT {
		at = features.IndexOfPair(features.PairRate)
	}
	return func(r dataset.Row) judged {
		p := float64(r.Vector[at])
		if kind == eventsv1.ModelKind_MODEL_KIND_SUCCESS {
			p = 1 - p
		}
		if math.IsNaN(p) {
			p = overall
		}
		return judgeProbability(r, math.Max(rareLimit, math.Min(1-rareLimit, p)))
	}
}

// rareLimit keeps a share of 50 off 0 and 1: what was not among 50 is not impossible.
const rareLimit = 0.01

func askProbability(m *prediction.Model, r dataset.Row) (judged, error) {
	p, err := m.Probability(r.Vector)
	return judgeProbability(r, p), err
}

func judgeProbability(r dataset.Row, p float64) judged {
	sure := math.Max(1e-6, math.Min(1-1e-6, p))
	loss := -math.Log(sure)
	if r.Target < 0.5 {
		loss = -math.Log(1 - sure)
	}
	return judged{row: r, said: p, loss: loss}
}

func probabilityFigures(of []judged) map[string]float64 {
	said, outcomes := make([]float64, len(of)), make([]bool, len(of))
	for i, j := range of {
		said[i], outcomes[i] = math.Max(0, math.Min(1, j.said)), j.row.Target > 0.5
	}
	m, err := calibration.Measure(said, outcomes)
	if err != nil {
		return nil // a prediction in the log that was no number
	}
	return map[string]float64{"log_loss": m.LogLoss, "brier": m.Brier, "auc": m.AUC, "ece": m.ECE}
}

func reliability(of []judged) (out []Bin) {
	said, outcomes := make([]float64, len(of)), make([]bool, len(of))
	for i, j := range of {
		said[i], outcomes[i] = j.said, j.row.Target > 0.5
	}
	bins, err := calibration.Reliability(said, outcomes, 10)
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
