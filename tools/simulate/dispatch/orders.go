package dispatch

// ByBuild is the order that production had by whole builds: the most valuable one first.
func ByBuild(b Build) float64 { return b.Value }

// ShortestWork has the build with the least work left for its worth go first (SRPT; Schrage 1968).
func ShortestWork(b Build) float64 { return b.Value / float64(max(1, b.Remaining)) }

// Aged has the least work left per worth go first (weighted shortest remaining work; Smith 1956), and what has waited long before
// what came just now.
func Aged(b Build) float64 {
	return b.Value * (agedFrom + float64(b.Waited)) / float64(max(1, b.Remaining))
}

// agedFrom is the head start of those that just arrived, in microseconds: waiting as long doubles what a build counts.
const agedFrom = 60e6
