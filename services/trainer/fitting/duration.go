package fitting

import (
	"context"
	"fmt"
	"math"
	"slices"

	"landfall.build/engine/features"
	"landfall.build/engine/prediction"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/learning/bytime"
	"landfall.build/learning/ngboost"
	"landfall.build/services/trainer/dataset"
)

// How durations are boosted.
const (
	rounds          = 250
	rate            = 0.03
	patience        = 40
	rowFraction     = 0.5
	featureFraction = 0.5
	leastLeaf       = 10
	// minFinished is how many builds must have run to their end.
	minFinished = 100
)

var medianAt = features.IndexOfChange(features.MedianSeconds)

// median returns what a row's duration is relative to.
func median(r dataset.Row) float64 { return float64(r.Vector[medianAt]) }

// fitDuration boosts the ratio of the seconds to the rolling median (M29): as a LogNormal, with aborted builds as lower bounds, and as a
// Normal, without them. It keeps the one that is likelier on windows of the training rows, fitted to all of them and with the spread
// of the errors on those windows.
func fitDuration(ctx context.Context, p parts) (*candidate, error) {
	if len(finished(p.training)) < minFinished || len(finished(p.test)) < minTestRows {
		return nil, fmt.Errorf("%w: too few builds that ran to their end", ErrTooLittle)
	}
	index := usable(eventsv1.ModelKind_MODEL_KIND_DURATION, p.training)
	if len(index) == 0 {
		return nil, fmt.Errorf("%w: no feature is known and differs", ErrTooLittle)
	}
	data := ngboost.Data{Rows: matrix(eventsv1.ModelKind_MODEL_KIND_DURATION, index, p.training, false), Features: namesOf(eventsv1.ModelKind_MODEL_KIND_DURATION, index)}
	for _, r := range p.training {
		data.Target, data.Censored = append(data.Target, r.Target/median(r)), append(data.Censored, r.Censored)
	}
	var best *ngboost.Model
	var chosen *bytime.DistributionReport
	for _, distribution := range []ngboost.Distribution{ngboost.LogNormal, ngboost.Normal} {
		m, report, err := bytime.Distribution(ctx, data, timesOf(p.training), ngboost.Config{
			Distribution: distribution, Rounds: rounds, LearningRate: rate, Patience: patience, RowFraction: rowFraction, ColumnFraction: featureFraction, MinLeaf: leastLeaf,
			Method: ngboost.Histogram,
		})
		if err != nil {
			return nil, err
		}
		if chosen == nil || report.NLL < chosen.NLL {
			best, chosen = m, report
		}
	}
	spread := spreadOf(finished(p.training))
	importance, _ := best.Importance()
	c := &candidate{
		algorithm: fmt.Sprintf("NGBoost %s, %d rounds, spread × %.2f, of the ratio to the rolling median", best.Distribution(), best.Rounds(), chosen.Factor), trainingRows: len(p.training), choosingRows: chosen.Windows,
		model: &eventsv1.Model{Features: best.Features()}, weights: sortedWeights(best.Features(), importance), until: untilOf(p.training),
		score: scoreModelDuration, figures: durationFigures, calibrationOf: quantiles,
		asPublished: func(r dataset.Row) scored {
			return scoreDuration(r, ngboost.Prediction{Distribution: ngboost.Normal, Mu: r.Predicted, Sigma: math.Max(r.Std, 1e-3)})
		},
		rolling: func(r dataset.Row) scored {
			return scoreDuration(r, ngboost.Prediction{Distribution: ngboost.LogNormal, Mu: math.Log(median(r)), Sigma: spread})
		},
	}
	var err error
	c.model.Predictor, err = best.MarshalBinary()
	return c, err
}

// finished returns the builds that ran to their end.
func finished(rows []dataset.Row) []dataset.Row {
	return slices.DeleteFunc(slices.Clone(rows), func(r dataset.Row) bool { return r.Censored })
}

// spreadOf returns the spread of the baseline: that of the logarithm of the seconds around the rolling median.
func spreadOf(rows []dataset.Row) float64 {
	sum := 0.0
	for _, r := range rows {
		d := math.Log(r.Target / median(r))
		sum += d * d
	}
	return math.Max(math.Sqrt(sum/float64(len(rows))), 0.01)
}

// scoreModelDuration judges what the queue uses of a model, its mean and deviation, as the distribution that it was fitted as.
func scoreModelDuration(m *prediction.Model, r dataset.Row) (scored, error) {
	mean, std, known, err := m.Duration(r.Vector)
	if err != nil || !known {
		return scored{}, fmt.Errorf("%w (%v)", prediction.ErrAbsurd, err)
	}
	if m.Distribution() == ngboost.Normal {
		return scoreDuration(r, ngboost.Prediction{Distribution: ngboost.Normal, Mu: mean, Sigma: math.Max(std, 1e-3)}), nil
	}
	variance := math.Log1p(std * std / (mean * mean))
	return scoreDuration(r, ngboost.Prediction{Distribution: ngboost.LogNormal, Mu: math.Log(mean) - variance/2, Sigma: math.Max(math.Sqrt(variance), 1e-3)}), nil
}

// scoreDuration returns the negative logarithm of a distribution's density at what was observed; for an aborted build, that of the
// probability of taking longer.
func scoreDuration(r dataset.Row, d ngboost.Prediction) scored {
	j := scored{row: r, predicted: d.RelativePoint(), below: d.Below(r.Target)}
	if r.Censored {
		j.loss = -math.Log(math.Max(1-j.below, 1e-9))
		return j
	}
	low, high := d.Interval(0.9)
	j.covered = low <= r.Target && r.Target <= high
	j.loss = math.Min(d.NLL(r.Target), 50)
	return j
}

func durationFigures(of []scored) map[string]float64 {
	var loss, relative, covered, n float64
	for _, j := range of {
		loss += j.loss
		if j.row.Censored {
			continue
		}
		n++
		relative += math.Abs(j.predicted-j.row.Target) / j.row.Target
		if j.covered {
			covered++
		}
	}
	return map[string]float64{"nll": loss / float64(len(of)), "mape": relative / n, "coverage90": covered / n}
}

// quantiles returns, for each tenth of the predicted distributions, how often what was observed lay below it.
func quantiles(of []scored) (out []Bin) {
	var below []float64
	for _, j := range of {
		if !j.row.Censored {
			below = append(below, j.below)
		}
	}
	slices.Sort(below)
	for q := 1; q < 10; q++ {
		at, _ := slices.BinarySearch(below, float64(q)/10)
		out = append(out, Bin{Predicted: float64(q) / 10, Observed: float64(at) / float64(len(below)), Rows: len(below)})
	}
	return out
}
