package course

import (
	"math"
	"slices"
)

// Result is the result of a simulation. Times are in seconds.
type Result struct {
	Policy string
	// Turnaround is from a change's arrival until it was decided, Wait the same less the time that its own
	// build takes; both are sorted.
	Turnaround, Wait []float64
	// Landed and Rejected count changes, RedCommits those that landed although the trace has them red there.
	Landed, Rejected, RedCommits int
	// Cancelled counts those whose authors cancelled them; they count in no other figure but those of builds.
	Cancelled int
	// Builds counts those that took a worker, Aborted those that lost it again, and failed batches of several,
	// Refused the decisions that the land guard did not let take effect, Passed the changes that landed before one ahead
	// of them.
	Builds, Aborted, Refused, Passed int
	// Waited counts the changes that had something ahead of them when they arrived.
	Waited int
	// WorkerHours is how long workers were busy, Hours how long it took from the first arrival to the last
	// decision.
	WorkerHours, Hours float64
	// Plans is how often the queue planned.
	Plans int64
	// Timeline shows the queue over time; at most 512 moments.
	Timeline []Moment
	// Coverage measures the estimates; zero for policies that have none.
	Coverage Coverage

	landedNumbers bits
	busy          int64
	first         int64
	last          int64
}

// Decided counts the changes that landed or were rejected.
func (r *Result) Decided() int { return r.Landed + r.Rejected }

// Throughput is how many changes were decided in an hour.
func (r *Result) Throughput() float64 { return float64(r.Decided()) / r.Hours }

// BuildsPerChange is the number of builds begun for each change.
func (r *Result) BuildsPerChange() float64 { return float64(r.Builds) / float64(max(1, r.Decided())) }

// AbortedShare is the share of builds without a result; see Aborted.
func (r *Result) AbortedShare() float64 { return float64(r.Aborted) / float64(max(1, r.Builds)) }

// BypassRate is the share of the changes with something ahead that did not wait for all of it.
func (r *Result) BypassRate() float64 { return float64(r.Passed) / float64(max(1, r.Waited)) }

// Percentile returns the p-th percentile of sorted values: the smallest that p per cent do not exceed.
func Percentile(sorted []float64, p float64) float64 {
	if len(sorted) == 0 {
		return math.NaN()
	}
	i := int(math.Ceil(p/100*float64(len(sorted)))) - 1
	return sorted[min(max(i, 0), len(sorted)-1)]
}

// bits is a set of small numbers.
type bits []uint64

func (b bits) has(n int) bool { return n/64 < len(b) && b[n/64]&(1<<(n%64)) != 0 }

func (b *bits) add(n int) {
	for len(*b) <= n/64 {
		*b = append(*b, 0)
	}
	(*b)[n/64] |= 1 << (n % 64)
}

func (r *Result) decided(c *course, p *pending, landed bool) {
	if r.Decided() == 0 {
		r.first = p.Arrival
	}
	r.first, r.last = min(r.first, p.Arrival), c.clock
	r.Coverage.judge(p.told, c.clock, c.o.Round.Microseconds())
	turnaround := c.clock - p.Arrival
	r.Turnaround = append(r.Turnaround, float64(turnaround)/1e6)
	r.Wait = append(r.Wait, float64(turnaround-p.Duration)/1e6)
	if len(p.ahead) > 0 {
		r.Waited++
	}
	if landed {
		r.Landed++
		r.landedNumbers.add(p.Number)
	} else {
		r.Rejected++
	}
}

// finish settles the figures once nothing is pending.
func (r *Result) finish(c *course) {
	r.Plans, r.Timeline = c.plans, c.timeline.moments
	slices.Sort(r.Turnaround)
	slices.Sort(r.Wait)
	r.Hours, r.WorkerHours = float64(r.last-r.first)/3.6e9, float64(r.busy)/3.6e9
}
