package bytime

import (
	"context"
	"fmt"
	"math"

	"landfall.build/learning/ngboost"
)

// DistributionReport has the settings that were chosen for a distribution.
type DistributionReport struct {
	// Rounds is the number that is best over all windows, NLL the mean negative log-likelihood there, before the spread was scaled.
	Rounds int
	NLL    float64
	// Windows is the number of rows in the windows.
	Windows int
	// Factor is what the spread was multiplied by.
	Factor float64
	// TrainingLoss is by round.
	TrainingLoss []float64
}

// Distribution trains the distribution of a number from rows that are oldest first. It chooses the number of rounds, up to that of config,
// on the newest four tenths of the rows, in four windows, each predicted by a model of the rows known before it; and scales the spread
// to the errors there, since a model is too certain of what comes after its training. Then it fits all rows. LogNormal learns from
// censored rows; no setting is chosen by them. A trial that config.Patience ends keeps its last loss. The errors are as of [Outcome].
func Distribution(ctx context.Context, d ngboost.Data, times Times, config ngboost.Config) (*ngboost.Model, *DistributionReport, error) {
	config = config.WithDefaults()
	trial := config
	config.Patience = 0
	folds, err := times.folds(len(d.Rows))
	if err != nil {
		return nil, nil, err
	}
	losses, n := make([]float64, config.Rounds), 0.0
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
		// A trial that ended early keeps its last loss.
		last := len(report.ValidationNLL) - 1
		for k := range losses {
			losses[k] += report.ValidationNLL[min(k, last)] * float64(len(window.Rows))
		}
		n += float64(len(window.Rows))
	}
	if n == 0 {
		return nil, nil, fmt.Errorf("%w: none of the newest is whole", ErrTooFewRows)
	}
	best := lowest(losses)
	out := &DistributionReport{Rounds: best + 1, NLL: losses[best] / n, Windows: int(n)}
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

// covered is the share of the targets that intervals should cover.
const covered = 0.9

// spread returns the factor by which the spread must be multiplied: the geometric mean over the windows. In each window it is halfway
// between the factor that maximizes the likelihood, which a few outliers decide, and the one that makes intervals cover as much as
// they claim. A single window is no guide: the next often calls for the opposite.
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

// learnable returns the rows that a distribution can be fitted to.
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

// whole returns the rows that are not censored.
func whole(d ngboost.Data, rows []int) (out []int) {
	for _, i := range rows {
		if d.Censored == nil || !d.Censored[i] {
			out = append(out, i)
		}
	}
	return out
}
