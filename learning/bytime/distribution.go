package bytime

import (
	"context"
	"fmt"
	"math"

	"landfall.build/learning/ngboost"
)

// DistributionReport is what was chosen for a distribution.
type DistributionReport struct {
	// Rounds that are best on all windows, and the mean negative log-likelihood there, before the spread was changed.
	Rounds int
	NLL    float64
	// Windows is how many rows choices were made by.
	Windows int
	// Factor is what every spread was multiplied by.
	Factor float64
	// TrainingLoss of the model, by round.
	TrainingLoss []float64
}

// Distribution trains the distribution of a number, of rows that are oldest first. How many of the rounds of config are taken is
// chosen on the newest four tenths of the rows, in four windows; so is the spread, by the errors on each of them of what was
// fitted to the rows known before it, since a model is too sure of what comes after its training; then all rows are fitted.
// Censored rows are learned from where the distribution is LogNormal, and nothing is chosen by them. Patience of config ends trials, which then count as they were at last. The errors are as those of [Outcome].
func Distribution(ctx context.Context, d ngboost.Data, times Times, config ngboost.Config) (*ngboost.Model, *DistributionReport, error) {
	config = config.WithDefaults()
	trial := config
	config.Patience = 0
	folds, err := times.folds(len(d.Rows))
	if err != nil {
		return nil, nil, err
	}
	course, n := make([]float64, config.Rounds), 0.0
	for _, f := range folds {
		window := some(d, whole(d, f.window))
		window.Censored = nil
		if len(window.Rows) == 0 {
			continue
		}
		_, report, err := ngboost.Train(ctx, learnable(d, f.known, config), &window, trial)
		if err != nil {
			return nil, nil, err
		}
		// A trial that ended early stays where it was.
		last := len(report.ValidationNLL) - 1
		for k := range course {
			course[k] += report.ValidationNLL[min(k, last)] * float64(len(window.Rows))
		}
		n += float64(len(window.Rows))
	}
	if n == 0 {
		return nil, nil, fmt.Errorf("%w: none of the newest is whole", ErrTooFewRows)
	}
	best := lowest(course)
	out := &DistributionReport{Rounds: best + 1, NLL: course[best] / n, Windows: int(n)}
	config.Rounds = out.Rounds
	if out.Factor, err = spread(ctx, d, folds, config); err != nil {
		return nil, nil, err
	}
	m, report, err := ngboost.Train(ctx, learnable(d, span(0, len(d.Rows)), config), nil, config)
	if err != nil {
		return nil, nil, err
	}
	out.TrainingLoss = report.TrainingLoss
	m, err = m.Rescaled(out.Factor)
	return m, out, err
}

// covered is the share that intervals are made to cover.
const covered = 0.9

// spread is what the spreads have to be multiplied by, as the windows show: in each, halfway between what makes it likeliest,
// where a few targets that lie far out count for most, and what makes intervals cover as much as they say; of these the
// geometric mean. What a single window asks for is often the opposite of what the next one does.
func spread(ctx context.Context, d ngboost.Data, folds []fold, config ngboost.Config) (float64, error) {
	sum, n := 0.0, 0
	for _, f := range folds {
		window := some(d, whole(d, f.window))
		window.Censored = nil
		if len(window.Rows) < ngboost.MinRows {
			continue
		}
		m, _, err := ngboost.Train(ctx, learnable(d, f.known, config), nil, config)
		if err != nil {
			return 0, err
		}
		likely, err := ngboost.FitScale(m, window)
		if err != nil {
			return 0, err
		}
		covering, err := ngboost.FitCoverage(m, window, covered)
		if err != nil {
			return 0, err
		}
		sum += (math.Log(likely) + math.Log(covering)) / 2
		n++
	}
	if n == 0 {
		return 0, fmt.Errorf("%w: no window has %d that are whole", ErrTooFewRows, ngboost.MinRows)
	}
	return math.Exp(sum / float64(n)), nil
}

func some(d ngboost.Data, rows []int) ngboost.Data {
	out := ngboost.Data{Rows: pick(d.Rows, rows), Target: pick(d.Target, rows), Features: d.Features}
	if d.Censored != nil {
		out.Censored = pick(d.Censored, rows)
	}
	return out
}

// learnable are the rows that a distribution can be fitted to.
func learnable(d ngboost.Data, rows []int, config ngboost.Config) ngboost.Data {
	if config.Distribution == ngboost.Normal {
		rows = whole(d, rows)
	}
	out := some(d, rows)
	if config.Distribution == ngboost.Normal {
		out.Censored = nil
	}
	return out
}

// whole are the rows that are not censored.
func whole(d ngboost.Data, rows []int) (out []int) {
	for _, i := range rows {
		if d.Censored == nil || !d.Censored[i] {
			out = append(out, i)
		}
	}
	return out
}
