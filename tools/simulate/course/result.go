package course

import (
	"math"
	"slices"
)

// Result is the result of a simulation. Times are in seconds.
type Result struct {
	Policy string
	// Turnaround is from a change's arrival until it was decided, Wait the same less the time that its own
	// build takes, or on a pool the change alone; both are sorted.
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
	// Slowdown is a change's turnaround over what it takes alone on the pool, sorted; nil if there is none. Sizes has what is known
	// of the changes by their number of targets, Utilisation the share of the pool that was busy while a step could be started.
	Slowdown    []float64
	Sizes       []Size
	Utilisation float64
	// Steps counts the steps that workers of a pool began.
	Steps int
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

// Size has the changes of a range of numbers of targets. Times are in seconds, sorted.
type Size struct {
	From, To             int
	Turnaround, Slowdown []float64
	WorkerSeconds        float64

	busy int64
}

// sizes are the upper ends of the ranges; the last has none.
var sizes = []int{10, 30, 100, 300, 0}

// size returns the range of a change.
func (r *Result) size(p *pending) *Size {
	if r.Sizes == nil {
		from := 1
		for _, to := range sizes {
			r.Sizes = append(r.Sizes, Size{From: from, To: to})
			from = to + 1
		}
	}
	for i := range r.Sizes {
		if s := &r.Sizes[i]; s.To == 0 || len(p.Targets) <= s.To {
			return s
		}
	}
	panic("the last range has no end")
}

// worked counts what a worker of a pool did for a change, in microseconds.
func (r *Result) worked(p *pending, us int64) {
	r.busy += us
	r.size(p).busy += us
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
	own := p.Duration
	if c.pool != nil {
		own = p.alone
	}
	r.Wait = append(r.Wait, float64(turnaround-own)/1e6)
	if c.pool != nil {
		slow := float64(turnaround) / float64(p.alone)
		r.Slowdown = append(r.Slowdown, slow)
		s := r.size(p)
		s.Turnaround, s.Slowdown = append(s.Turnaround, float64(turnaround)/1e6), append(s.Slowdown, slow)
	}
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
	slices.Sort(r.Slowdown)
	for i := range r.Sizes {
		s := &r.Sizes[i]
		slices.Sort(s.Turnaround)
		slices.Sort(s.Slowdown)
		s.WorkerSeconds = float64(s.busy) / 1e6
	}
	if c.pool != nil {
		r.Utilisation = c.pool.usage.share()
	}
	r.Hours, r.WorkerHours = float64(r.last-r.first)/3.6e9, float64(r.busy)/3.6e9
}
