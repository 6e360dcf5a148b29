package simulate

import (
	"fmt"

	"landfall.build/tools/simulate/course"
)

// ETA measures the estimates of when a change is decided, over all seeds: the shares of the 50 % and the 90 % intervals
// that held.
type ETA struct {
	Estimates int     `json:"estimates"`
	Unknown   int     `json:"unknown"`
	Within50  float64 `json:"within_50"`
	Within90  float64 `json:"within_90"`
	// Early and Late are the shares that were decided before and after the wider interval.
	Early float64 `json:"early"`
	Late  float64 `json:"late"`
	// Width90 is the mean width of the wider interval, Off by how much the median was wrong, in seconds.
	Width90 float64 `json:"width_90_s"`
	Off     float64 `json:"off_s"`
}

// newETA returns nil if nothing was estimated.
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

// held returns two columns: how often each interval held.
func (e *ETA) held() string {
	if e == nil {
		return "\t"
	}
	return fmt.Sprintf("%.0f %%\t%.0f %%", 100*e.Within50, 100*e.Within90)
}
