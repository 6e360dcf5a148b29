package fitting

import (
	"context"
	"fmt"
	"math"
	"slices"

	eventsv1 "landfall.build/events/v1"
	"landfall.build/learning/bytime"
	"landfall.build/learning/ngboost"
	"landfall.build/services/profiler/features"
	"landfall.build/services/profiler/prediction"
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
	// fewestWhole builds that ran to their end are needed to learn durations.
	fewestWhole = 100
)

var medianAt = features.IndexOfChange(features.MedianSeconds)

// median is what a row's duration is relative to.
func median(r dataset.Row) float64 { return float64(r.Vector[medianAt]) }

// fitDuration boosts the ratio of the seconds to the rolling median, as a LogNormal, with aborted builds as lower bounds,
// and as a Normal, without them. The one that is likelier on windows of the older rows is kept, fitted to all of them; its
// spread is that of the errors on those windows (M29).
func fitDuration(ctx context.Context, p parts) (*candidate, error) {
	if len(whole(p.older)) < fewestWhole || len(whole(p.newest)) < fewestNewest {
		return nil, fmt.Errorf("%w: too few builds that ran to their end", ErrTooLittle)
	}
	index := usable(eventsv1.ModelKind_MODEL_KIND_DURATION, p.older)
	if len(index) == 0 {
		return nil, fmt.Errorf("%w: no feature is known and differs", ErrTooLittle)
	}
	data := ngboost.Data{Rows: matrix(eventsv1.ModelKind_MODEL_KIND_DURATION, index, p.older, false), Features: namesOf(eventsv1.ModelKind_MODEL_KIND_DURATION, index)}
	for _, r := range p.older {
		data.Target, data.Censored = append(data.Target, r.Target/median(r)), append(data.Censored, r.Censored)
	}
	var best *ngboost.Model
	var chosen *bytime.DistributionReport
	for _, distribution := range []ngboost.Distribution{ngboost.LogNormal, ngboost.Normal} {
		m, report, err := bytime.Distribution(ctx, data, timesOf(p.older), ngboost.Config{
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
	spread := spreadOf(whole(p.older))
	importance, _ := best.Importance()
	c := &candidate{
		algorithm: fmt.Sprintf("NGBoost %s, %d rounds, spread × %.2f, of the ratio to the rolling median", best.Distribution(), best.Rounds(), chosen.Factor), training: len(p.older), choosing: chosen.Windows,
		model: &eventsv1.Model{Features: best.Features()}, weights: sortedWeights(best.Features(), importance), until: untilOf(p.older),
		ask: askDuration, figures: durationFigures, calibrationOf: quantiles,
		asLogged: func(r dataset.Row) judged {
			return judgeDuration(r, ngboost.Prediction{Distribution: ngboost.Normal, Mu: r.Predicted, Sigma: math.Max(r.Std, 1e-3)})
		},
		rolling: func(r dataset.Row) judged {
			return judgeDuration(r, ngboost.Prediction{Distribution: ngboost.LogNormal, Mu: math.Log(median(r)), Sigma: spread})
		},
	}
	var err error
	c.model.Predictor, err = best.MarshalBinary()
	return c, err
}

// whole are the builds that ran to their end.
func whole(rows []dataset.Row) []dataset.Row {
	return slices.DeleteFunc(slices.Clone(rows), func(r dataset.Row) bool { return r.Censored })
}

// spreadOf is the spread of the logarithm of seconds about the rolling median: the baseline's.
func spreadOf(rows []dataset.Row) float64 {
	sum := 0.0
	for _, r := range rows {
		d := math.Log(r.Target / median(r))
		sum += d * d
	}
	return math.Max(math.Sqrt(sum/float64(len(rows))), 0.01)
}

// askDuration judges what the queue uses of a model, its mean and deviation, as the distribution that it was fitted as.
func askDuration(m *prediction.Model, r dataset.Row) (judged, error) {
	mean, std, known, err := m.Duration(r.Vector)
	if err != nil || !known {
		return judged{}, fmt.Errorf("%w (%v)", prediction.ErrAbsurd, err)
	}
	if m.Distribution() == ngboost.Normal {
		return judgeDuration(r, ngboost.Prediction{Distribution: ngboost.Normal, Mu: mean, Sigma: math.Max(std, 1e-3)}), nil
	}
	variance := math.Log1p(std * std / (mean * mean))
	return judgeDuration(r, ngboost.Prediction{Distribution: ngboost.LogNormal, Mu: math.Log(mean) - variance/2, Sigma: math.Max(math.Sqrt(variance), 1e-3)}), nil
}

// judgeDuration holds a distribution against what came true: the density, or for a build that was aborted the probability of
// taking longer.
func judgeDuration(r dataset.Row, d ngboost.Prediction) judged {
	j := judged{row: r, said: d.RelativePoint(), below: d.Below(r.Target)}
	if r.Censored {
		j.loss = -math.Log(math.Max(1-j.below, 1e-9))
		return j
	}
	low, high := d.Interval(0.9)
	j.covered = low <= r.Target && r.Target <= high
	j.loss = math.Min(d.NLL(r.Target), 50)
	return j
}

func durationFigures(of []judged) map[string]float64 {
	var loss, relative, covered, n float64
	for _, j := range of {
		loss += j.loss
		if j.row.Censored {
			continue
		}
		n++
		relative += math.Abs(j.said-j.row.Target) / j.row.Target
		if j.covered {
			covered++
		}
	}
	return map[string]float64{"nll": loss / float64(len(of)), "mape": relative / n, "coverage90": covered / n}
}

// quantiles says of tenths of the predicted distributions how often what came true lay below.
func quantiles(of []judged) (out []Bin) {
	var below []float64
	for _, j := range of {
		if !j.row.Censored {
			below = append(below, j.below)
		}
	}
	slices.Sort(below)
	for q := 1; q < 10; q++ {
		at, _ := slices.BinarySearch(below, float64(q)/10)
		out = append(out, Bin{Said: float64(q) / 10, CameTrue: float64(at) / float64(len(below)), Rows: len(below)})
	}
	return out
}
