package fitting

import (
	"context"
	"fmt"
	"math"

	eventsv1 "landfall.build/events/v1"
	"landfall.build/learning/calibration"
	"landfall.build/learning/logistic"
	"landfall.build/services/profiler/features"
	"landfall.build/services/profiler/prediction"
	"landfall.build/services/trainer/dataset"
)

// strengths of the penalty that are tried.
var strengths = []float64{1, 10, 100}

// fitProbability fits a logistic regression: how strongly weights are held down and which features are kept is chosen on
// the rows to choose by, then all older rows are fitted; a calibration is kept if it helps (M28).
func fitProbability(ctx context.Context, kind eventsv1.ModelKind, p parts) (*candidate, error) {
	older := append(append([]dataset.Row(nil), p.training...), p.choosing...)
	for _, rows := range [][]dataset.Row{p.training, p.choosing, p.newest} {
		if yes := shareOfYes(rows); yes == 0 || yes == 1 {
			return nil, fmt.Errorf("%w: all of %d rows came out the same", ErrTooLittle, len(rows))
		}
	}
	index := usable(kind, p.training)
	if len(index) == 0 {
		return nil, fmt.Errorf("%w: no feature is known and differs", ErrTooLittle)
	}
	data := func(index []int, rows []dataset.Row) logistic.Data {
		return logistic.Data{Rows: matrix(kind, index, rows, true), Outcomes: outcomesOf(rows), Features: namesOf(kind, index)}
	}
	training, choosing := data(index, p.training), data(index, p.choosing)
	strength, best := 0.0, math.Inf(1)
	for _, l2 := range strengths {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		m, err := logistic.Fit(training, logistic.Config{L2: l2})
		if err != nil {
			return nil, err
		}
		figures, err := measure(m, choosing)
		if err != nil {
			return nil, err
		}
		if figures.LogLoss < best {
			strength, best = l2, figures.LogLoss
		}
	}
	chosen, _, err := logistic.Eliminate(ctx, training, choosing, logistic.Config{L2: strength}, logistic.Elimination{Share: 0.15, Tolerance: 0.001})
	if err != nil {
		return nil, err
	}
	kept := indexOf(kind, chosen.Features())
	said, err := predictAll(chosen, data(kept, p.choosing))
	if err != nil {
		return nil, err
	}
	m, err := logistic.Fit(data(kept, older), logistic.Config{L2: strength})
	if err != nil {
		return nil, err
	}
	c := &candidate{
		algorithm: fmt.Sprintf("logistic regression, L2 %g, %d of %d features", strength, len(kept), len(prediction.SchemaOf(kind))), training: len(p.training), choosing: len(p.choosing),
		model: &eventsv1.Model{Features: m.Features()}, weights: sortedWeights(m.Features(), m.Weights()), until: untilOf(older),
		ask: askProbability, figures: probabilityFigures, calibrationOf: reliability,
		asLogged: func(r dataset.Row) judged { return judgeProbability(r, r.Predicted) },
		rolling:  rollingShare(kind, shareOfYes(older)),
	}
	if c.model.Predictor, err = m.MarshalBinary(); err != nil {
		return nil, err
	}
	if platt := calibration.FitPlattIfBetter(said, choosing.Outcomes); platt != nil {
		c.algorithm += ", Platt's calibration"
		if c.model.Calibration, err = platt.MarshalBinary(); err != nil {
			return nil, err
		}
	}
	return c, nil
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

func indexOf(kind eventsv1.ModelKind, names []string) (index []int) {
	for _, name := range names {
		if kind == eventsv1.ModelKind_MODEL_KIND_CONFLICT {
			index = append(index, features.IndexOfPair(name))
		} else {
			index = append(index, features.IndexOfChange(name))
		}
	}
	return index
}

func predictAll(m *logistic.Model, d logistic.Data) ([]float64, error) {
	out := make([]float64, len(d.Rows))
	for i, row := range d.Rows {
		var err error
		if out[i], err = m.Predict(row); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func measure(m *logistic.Model, d logistic.Data) (calibration.Metrics, error) {
	said, err := predictAll(m, d)
	if err != nil {
		return calibration.Metrics{}, err
	}
	return calibration.Measure(said, d.Outcomes)
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
