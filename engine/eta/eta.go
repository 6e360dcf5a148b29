// Package eta estimates when each pending change will be decided. It simulates the rest of the queue many times, with
// outcomes and durations drawn from their predictions (M6, M7, M12), and takes quantiles of the times.
//
// What is drawn for a change depends on its seed alone. So the same queue gives the same estimates, to the last bit,
// and if one change of a queue differs, what is drawn for the others stays: an estimate moves only when something that
// it depends on does.
//
// The estimates are for people. Nothing is built, landed or rejected because of them.
package eta

import (
	"math"
	"math/bits"
	"slices"

	"landfall.build/engine/memberset"
	"landfall.build/engine/profile"
)

// Queue is a queue as it is known when the estimates are made. Times are seconds relative to now, negative before.
type Queue struct {
	// Workers is how many steps may run at one time. If it is 0, builds hold slots, and Slots is how many builds may run at one time.
	Workers, Slots int
	// Threshold is τ of M16: a path that is less likely gets no build.
	Threshold float64
	// Retries is how often a version is run again before it is red.
	Retries int
	// Changes are the pending changes, in queue order.
	Changes []Change
	// Waiting are the builds that are to be made, best first.
	Waiting []Waiting
}

// Change is a pending change.
type Change struct {
	Seed uint64
	// Lands is the probability that it lands (M7).
	Lands float64
	// Duration is the distribution of how long a build of it takes. With Workers it is that of the sum of its steps, and Longest is how
	// long the longest step takes.
	Duration profile.Duration
	Longest  float64
	// Ahead is A(c), in queue order.
	Ahead []Ahead
	// Builds are its running builds.
	Builds []Build
	// Known returns the outcome of a path by the evidence. It is nil if there is none.
	Known func(lands memberset.Set) Outcome
	// Unknown is why there is no estimate, empty if there may be one.
	Unknown string
	// Urgency is what is lost for each second by which the change is late, relative to the loss from which on a path
	// beside the likeliest is worth a build; 0 if no path waits. Free is when all changes ahead are expected to be
	// decided.
	Urgency, Free float64
}

// Outcome of a path.
type Outcome int

// The outcomes of a path: not known, the change lands, it is rejected.
const (
	Open Outcome = iota
	Green
	Red
)

// Ahead is a member of A(c).
type Ahead struct {
	// At is the place of the member in Queue.Changes, before the change itself; negative if it is not pending.
	At       int
	Required bool
}

// Build is a running build: the members that it assumes to land, and for how long it has run.
type Build struct {
	Lands   memberset.Set
	Elapsed float64
	Demand
}

// Waiting is a path of the change at a place in Queue.Changes that is to be built: the members that it assumes to land.
type Waiting struct {
	Of    int
	Lands memberset.Set
	Demand
}

// Demand is what a build asks of workers: Open is the part of its change's targets that has to be verified for it, and Worth what that is
// worth (M15a). It is not used where builds hold slots.
type Demand struct{ Open, Worth float64 }

// Quantiles are those of a time over all samples.
type Quantiles struct{ P5, P25, P50, P75, P95 float64 }

// Estimate is when a change will be decided, in seconds from now.
type Estimate struct {
	Quantiles
	// Unknown is why there is no estimate; then the quantiles are 0. It is empty if there is one.
	Unknown string
}

// considered is how many members of A(c) are simulated one by one: those that are expected to be decided last, as
// waiting for them is waiting for the others as well. The others take their likelier way.
const considered = 16

// samplesFor returns how often a queue of n changes is simulated: a power of two, from 256 down to 64.
func samplesFor(n int) int {
	return max(64, min(256, 1<<bits.Len(uint(1<<16/max(1, n)))/2))
}

// sampler makes the estimates of one queue.
type sampler struct {
	q       *Queue
	samples int
	drawn
	outcomes
	slots
	buffers
}

// drawn holds what is drawn for change i in sample s.
type drawn struct {
	// durations[i][s] is how long a build takes that begins now, part[i][s] which part of the distribution of durations that is.
	durations [][]float64
	part      [][]uint16
	// remaining[i][k][s] is how long build k goes on. It is computed when it is first needed.
	remaining [][][]float64
}

// outcomes holds what becomes of change i in sample s.
type outcomes struct {
	// decided[i][s] is when it is decided, outcomeAt[i][s] when a build has shown the outcome of the path that comes about. lands[i] has
	// a bit for each sample in which it lands.
	decided, outcomeAt [][]float64
	lands              [][]uint64
	mean               []float64 // of decided
	unknown            []string  // why there is no estimate
}

// slots holds who waits for a slot.
type slots struct {
	// slotFree[i][s] is when a slot is free for the waiting builds of change i.
	slotFree [][]float64
	waiting  [][]Waiting // by change
	// late has, by sample, which part of the distribution of the pool's delays it is (queueing). It is one for all builds.
	late []uint16
}

// buffers holds memory that is used again for each change.
type buffers struct {
	sorted  []float64
	picked  []int // the considered members of the change at hand, as places in Ahead
	aheadOf []int // aheadOf[k] is 1 more than the last change that was found to have change k ahead
	fates   memberFates
}

// Of returns the estimates of all changes of a queue, in its order.
func Of(q *Queue) []Estimate {
	x := newSampler(q)
	x.draw()
	if q.Workers > 0 {
		x.shareWorkers()
	} else {
		x.assignSlots()
	}
	out := make([]Estimate, len(q.Changes))
	for i := range q.Changes {
		x.decide(i)
		if out[i].Unknown = x.unknown[i]; out[i].Unknown == "" {
			out[i].Quantiles = x.quantiles(x.decided[i])
		}
	}
	return out
}

func newSampler(q *Queue) *sampler {
	n := len(q.Changes)
	return &sampler{
		q: q, samples: samplesFor(n),
		drawn:    drawn{durations: make([][]float64, n), part: make([][]uint16, n), remaining: make([][][]float64, n)},
		outcomes: outcomes{decided: make([][]float64, n), outcomeAt: make([][]float64, n), lands: make([][]uint64, n), mean: make([]float64, n), unknown: make([]string, n)},
		slots:    slots{waiting: make([][]Waiting, n)},
		buffers:  buffers{aheadOf: make([]int, n)},
	}
}

func (x *sampler) quantiles(of []float64) Quantiles {
	sorted := append(x.sorted[:0], of...)
	slices.Sort(sorted)
	x.sorted = sorted
	at := func(p float64) float64 { return sorted[min(len(sorted)-1, int(p*float64(len(sorted))))] }
	return Quantiles{at(0.05), at(0.25), at(0.5), at(0.75), at(0.95)}
}

// draw draws the outcome of each change, and how long a build of it takes.
func (x *sampler) draw() {
	n, words := len(x.q.Changes), x.samples/64
	times, fates := make([]float64, 3*n*x.samples), make([]uint64, n*words)
	places := make([]uint16, n*x.samples)
	deviations := deviationsOf[x.samples]
	for i := range x.q.Changes {
		c := &x.q.Changes[i]
		x.decided[i], times = times[:x.samples:x.samples], times[x.samples:]
		x.outcomeAt[i], times = times[:x.samples:x.samples], times[x.samples:]
		x.durations[i], times = times[:x.samples:x.samples], times[x.samples:]
		x.lands[i], fates = fates[:words:words], fates[words:]
		x.part[i], places = places[:x.samples:x.samples], places[x.samples:]
		d := &splitmix{c.Seed}
		within := d.uniform()
		d.spread(x.part[i])
		for s, p := range x.part[i] {
			if (float64(p)+within)/float64(x.samples) < c.Lands {
				x.lands[i][s/64] |= 1 << (s % 64)
			}
		}
		d.spread(x.part[i])
		near := c.Duration.Mean < 3*c.Duration.Std // so near to 0 that the normal has to be cut off there
		drawn := distribution{of: c.Duration, samples: x.samples}
		for s, p := range x.part[i] {
			t := math.Max(0, c.Duration.Mean+c.Duration.Std*deviations[p])
			if near {
				t = drawn.at(int(p), 0)
			}
			if !x.landsIn(i, s) {
				t *= float64(1 + x.q.Retries)
			}
			x.durations[i][s] = t
		}
	}
}

func (x *sampler) landsIn(i, s int) bool { return x.lands[i][s/64]&(1<<(s%64)) != 0 }

// isLikely reports whether change i lands rather than not.
func (x *sampler) isLikely(i int) bool { return x.q.Changes[i].Lands >= 0.5 }
