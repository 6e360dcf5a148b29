// Package trace is the input of a simulation: changes with everything that no policy can alter: when each arrives, how long
// its build takes, whether it passes, its potential and its true conflicts. All of it belongs to the trace, so the changes that land are the same under every policy.
package trace

import (
	"math"
	"slices"
)

// Change of a trace. Times are microseconds from the trace's own beginning.
type Change struct {
	// Number is its place in the trace, from 0.
	Number int
	ID     string
	// Arrival never falls from one change to the next. Duration is what a build of it takes on one worker.
	Arrival, Duration int64
	// Green is its own outcome: whether it passes on a mainline that holds nothing that it breaks with.
	Green bool
	// Breaks are the numbers of earlier changes with which it truly conflicts: it fails wherever one of
	// them is in the tree. Ascending.
	Breaks []int
	// Cancelled is when its author cancels it, 0 for never. It then lands nowhere, whatever its builds say.
	Cancelled int64
	// Targets are those that it affects, with evidence by target (M24): two changes meet in those that both affect. nil: it
	// has one of its own, which all changes that it meets affect.
	Targets []int
	// Steps is how long a step of each of Targets takes; nil: all cost the same.
	Steps []int64
	// Fails is the target that fails if it is not Green, BreaksAt[i] the one in which it breaks with Breaks[i].
	Fails    int
	BreaksAt []int
}

// Step is how long its shortest step takes.
func (c *Change) Step() int64 {
	if len(c.Steps) > 0 {
		return slices.Min(c.Steps)
	}
	return c.Duration / int64(max(1, len(c.Targets)))
}

// Takes is how long the step of its i-th target takes.
func (c *Change) Takes(i int) int64 {
	if c.Steps != nil {
		return c.Steps[i]
	}
	return c.Step()
}

// Remembering is a trace whose targets were built before it begins.
type Remembering interface {
	// Ran has a run of each target.
	Ran() []Ran
}

// Ran is a run of a target. Duration is in microseconds.
type Ran struct {
	Target   int
	Duration int64
}

// Trace returns changes in the order in which they arrive. What it keeps does not grow with its length.
type Trace interface {
	// Next returns the next change, io.EOF after the last. Other errors are faults of the source.
	Next() (*Change, error)
	// Meet reports whether two changes are in potential conflict (M1). ahead arrived first. It may only be
	// asked of changes that Next gave.
	Meet(ahead, behind *Change) bool
	// Rates are the long-run frequencies that a forecast may know.
	Rates() Rates
}

// Rates describe a trace as a whole.
type Rates struct {
	// Green is how often a change passes by itself, Conflict how often a pair in potential conflict that
	// arrived within Near of each other truly conflicts. Pairs further apart never do.
	Green, Conflict float64
	// Near is in microseconds.
	Near int64
	// Mean and Std describe the durations of builds, in microseconds.
	Mean, Std float64
}

// Broken reports whether the change truly conflicts with an earlier one.
func (c *Change) Broken(earlier int) bool {
	for _, b := range c.Breaks {
		if b == earlier {
			return true
		}
	}
	return false
}

// Draw returns a number in [0, 1) that depends on its arguments alone: draws for a pair of changes need no memory, and no
// policy can shift them.
func Draw(seed uint64, stream, a, b int) float64 {
	x := mix(seed ^ mix(uint64(stream)+0x9e3779b97f4a7c15))
	x = mix(x ^ mix(uint64(a)+0x632be59bd9b4e019))
	x = mix(x ^ mix(uint64(b)+0xd1b54a32d192ed03))
	return float64(x>>11) / (1 << 53)
}

// Normal is a draw from the standard normal distribution.
func Normal(seed uint64, stream, a, b int) float64 {
	u := math.Max(Draw(seed, 2*stream, a, b), math.SmallestNonzeroFloat64)
	return math.Sqrt(-2*math.Log(u)) * math.Cos(2*math.Pi*Draw(seed, 2*stream+1, a, b))
}

// mix is SplitMix64's finaliser.
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
