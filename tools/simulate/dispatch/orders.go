package dispatch

// ByBuild is the order that production had by whole builds: the most valuable one first.
func ByBuild(b Build) float64 { return b.Value }

// ByWorth is production's index (M33) for builds of which no two want the same version: worth, times how long the change has waited,
// over the work that is left.
func ByWorth(b Build) float64 {
	return b.Value * float64(patience*b.Mean+b.Waited) / float64(max(1, b.Remaining))
}

// patience is how many builds a wait is held to.
const patience = 16
