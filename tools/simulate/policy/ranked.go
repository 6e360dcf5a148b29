package policy

import (
	"landfall.build/engine/ranking"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/tools/simulate/forecast"
	"landfall.build/tools/simulate/trace"
)

// ranked is a policy that has the production prioritizer search: the policies of the three papers are
// special cases of its formula (M14).
type ranked struct{ search *ranking.Ranking }

func newLandfall(Settings) Policy { return ranked{ranking.New()} }

// newRanked follows the model as stated, as the papers do.
func newRanked(Settings) Policy { return ranked{ranking.NewFundingAll()} }

func (r ranked) Plan(p *eventsv1.Profile) *eventsv1.Priority {
	r.search.Apply(p)
	out := r.search.Decide()
	r.search.Fold(out)
	return out
}

// Estimates says when each pending change will be decided.
func (r ranked) Estimates(best *eventsv1.Ranking, queue string, stampUS int64) []*eventsv1.Estimate {
	return r.search.Estimates(best, queue, stampUS)
}

// evenly is a forecast that knows nothing: every path is as likely as any other of its depth.
func evenly(f forecast.Forecast) forecast.Forecast { return even{f} }

type even struct{ forecast.Forecast }

func (even) Success(*trace.Change) float64                { return 0.5 }
func (even) Conflict(behind, ahead *trace.Change) float64 { return 0 }

// fromArrival is the 2025 paper's reading of M11: a change finishes at its arrival plus its duration,
// whenever its builds began. With all builds said to begin now, F compares the means alone, so a mean
// that counts from the trace's beginning gives exactly that.
func fromArrival(f forecast.Forecast) forecast.Forecast { return arriving{f} }

type arriving struct{ forecast.Forecast }

func (a arriving) Duration(c *trace.Change) (mean, std float64) {
	mean, std = a.Forecast.Duration(c)
	return float64(c.Arrival) + mean, std
}
