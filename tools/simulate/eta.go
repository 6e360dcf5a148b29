package simulate

import (
	"fmt"

	"landfall.build/tools/simulate/course"
)

// ETA is how far the times can be trusted that people are told for when a change will be decided, over all seeds: of
// the intervals that are said to hold in half, and in nine tenths of the cases, the shares that did.
type ETA struct {
	Estimates int     `json:"estimates"`
	Unknown   int     `json:"unknown"`
	Within50  float64 `json:"within_50"`
	Within90  float64 `json:"within_90"`
	// Early and Late are the shares that were decided before and behind the wider interval.
	Early float64 `json:"early"`
	Late  float64 `json:"late"`
	// Width90 is the mean width of the wider interval, Off by how much the median was wrong, in seconds.
	Width90 float64 `json:"width_90_s"`
	Off     float64 `json:"off_s"`
}

// newETA is nil if nothing was estimated.
func newETA(results []*course.Result) *ETA {
	var all course.Coverage
	for _, r := range results {
		all.Add(r.Coverage)
	}
	if all.Told == 0 {
		return nil
	}
	n := float64(all.Told)
	return &ETA{
		Estimates: all.Told, Unknown: all.Unknown, Within50: all.Share50(), Within90: all.Share90(),
		Early: float64(all.Early) / n, Late: float64(all.Late) / n, Width90: all.Width90 / n, Off: all.Off / n,
	}
}

// held is two columns: how often either interval held.
func (e *ETA) held() string {
	if e == nil {
		return "\t"
	}
	return fmt.Sprintf("%.0f %%\t%.0f %%", 100*e.Within50, 100*e.Within90)
}
