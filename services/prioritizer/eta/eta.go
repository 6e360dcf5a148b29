// Package eta says when each pending change will be decided: it plays the rest of the queue several times, with
// outcomes and durations drawn from what is predicted of them (M6, M7, M12), and reads off the quantiles.
//
// What is drawn for a change depends on its seed alone, so the same queue gives the same times to the last bit, and of
// two queues that differ in one change the others keep their luck: an estimate moves when what it rests on does, not
// because dice were thrown again.
//
// It is a forecast for people. Nothing is built, landed or rejected for it.
package eta

import (
	"math"
	"math/bits"
	"slices"

	"landfall.build/services/memberset"
	"landfall.build/services/profiler/bypass"
)

// Queue is what is known when the estimates are made. Times are seconds from now on, negative before.
type Queue struct {
	// Slots is how many builds may run at one time.
	Slots int
	// Threshold is τ of M16: less likely paths get no build.
	Threshold float64
	// Retries is how often a version is run again before it is red.
	Retries int
	// Changes in queue order.
	Changes []Change
	// Waiting are the builds that are worth most and do not run, best first.
	Waiting []Waiting
}

// Change is a pending change.
type Change struct {
	Seed uint64
	// Lands is how likely it lands (M7).
	Lands float64
	// Duration of a build of it.
	Duration bypass.Duration
	// Ahead is A(c), in queue order.
	Ahead []Ahead
	// Builds are those that run for it.
	Builds []Build
	// Known says what is known of a path, nil if nothing is of any.
	Known func(lands memberset.Set) Outcome
	// Unknown, if not empty, is why nobody can say when it will be decided.
	Unknown string
	// Urgency is what is lost for each second that the change is late, of what makes a path beside the likeliest worth a build; 0 if none
	// of them waits. Free is when all that it has ahead are taken to be decided, in seconds from now on.
	Urgency, Free float64
}

// Outcome of a path.
type Outcome int

// The outcomes: not known, lands, is rejected.
const (
	Open Outcome = iota
	Green
	Red
)

// Ahead is a member of A(c).
type Ahead struct {
	// At is its place in Queue.Changes, before that of the change itself; negative if it is not pending.
	At       int
	Required bool
}

// Build is one that runs: which members it assumes to land, and for how long it has run.
type Build struct {
	Lands   memberset.Set
	Elapsed float64
}

// Waiting is a path that is to be built: which members of which change it assumes to land.
type Waiting struct {
	Of    int
	Lands memberset.Set
}

// Quantiles of a time: that many of the percent of the plays were over by then.
type Quantiles struct{ P5, P25, P50, P75, P95 float64 }

// Estimate is when a change will be decided, in seconds from now on.
type Estimate struct {
	Quantiles
	// Unknown, if not empty, is why there is none. Then the quantiles are 0.
	Unknown string
}

// considered is how many members of A(c) are looked at one by one, those that are likely decided last: whoever waits
// for them waits for the others as well. The others take the likelier way.
const considered = 16

// Plays is how often a queue of n changes is played: a power of two, from 256 down to 64.
func Plays(n int) int {
	return max(64, min(256, 1<<bits.Len(uint(1<<16/max(1, n)))/2))
}

// sampler is one making of estimates.
type sampler struct {
	q     *Queue
	plays int
	// decided[i][s] is when change i is decided in play s, shown when a build has shown its fate on the path that comes
	// about, lands that fate, a bit for each play.
	decided, shown [][]float64
	lands          [][]uint64
	mean           []float64 // of decided
	// takes[i][s] is how long a build of it takes that begins anew, place[i][s] which part of its durations that is.
	takes   [][]float64
	place   [][]uint16
	unknown []string
	// slot[i][s] is when a slot is free for the builds of change i that wait.
	slot [][]float64
	of   [][]Waiting // by change
	// lefts[i][k][s] is how long build k of change i goes on.
	lefts   [][][]float64
	scratch []float64
	picked  []int
	behind  []int // behind[k] is 1 more than the last change that was found to have k ahead
	turns   turns
}

// Of estimates all changes of a queue, in its order.
func Of(q *Queue) []Estimate {
	x := newSampler(q)
	x.draw()
	x.shareSlots()
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
		q: q, plays: Plays(n), decided: make([][]float64, n), shown: make([][]float64, n), lands: make([][]uint64, n), mean: make([]float64, n),
		takes: make([][]float64, n), place: make([][]uint16, n), behind: make([]int, n), unknown: make([]string, n), of: make([][]Waiting, n), lefts: make([][][]float64, n),
	}
}

func (x *sampler) quantiles(of []float64) Quantiles {
	sorted := append(x.scratch[:0], of...)
	slices.Sort(sorted)
	x.scratch = sorted
	at := func(p float64) float64 { return sorted[min(len(sorted)-1, int(p*float64(len(sorted))))] }
	return Quantiles{at(0.05), at(0.25), at(0.5), at(0.75), at(0.95)}
}

// draw draws the fate of each change, and how long a build of it takes.
func (x *sampler) draw() {
	n, words := len(x.q.Changes), x.plays/64
	times, fates := make([]float64, 3*n*x.plays), make([]uint64, n*words)
	places := make([]uint16, n*x.plays)
	deviations := make([]float64, x.plays) // of a normal, each part once
	for p := range deviations {
		deviations[p] = durations{bypass.Duration{Std: 1}, x.plays}.deviation(p)
	}
	for i := range x.q.Changes {
		c := &x.q.Changes[i]
		x.decided[i], times = times[:x.plays:x.plays], times[x.plays:]
		x.shown[i], times = times[:x.plays:x.plays], times[x.plays:]
		x.takes[i], times = times[:x.plays:x.plays], times[x.plays:]
		x.lands[i], fates = fates[:words:words], fates[words:]
		x.place[i], places = places[:x.plays:x.plays], places[x.plays:]
		d := &dice{c.Seed}
		within := d.uniform()
		d.spread(x.place[i])
		for s, p := range x.place[i] {
			if (float64(p)+within)/float64(x.plays) < c.Lands {
				x.lands[i][s/64] |= 1 << (s % 64)
			}
		}
		d.spread(x.place[i])
		near := c.Duration.Mean < 3*c.Duration.Std // so near to 0 that the normal has to be cut off there
		drawn := durations{c.Duration, x.plays}
		for s, p := range x.place[i] {
			t := math.Max(0, c.Duration.Mean+c.Duration.Std*deviations[p])
			if near {
				t = drawn.at(int(p), 0)
			}
			if !x.landsIn(i, s) {
				t *= float64(1 + x.q.Retries)
			}
			x.takes[i][s] = t
		}
	}
}

func (x *sampler) landsIn(i, s int) bool { return x.lands[i][s/64]&(1<<(s%64)) != 0 }

// likely says that change i lands rather than not.
func (x *sampler) likely(i int) bool { return x.q.Changes[i].Lands >= 0.5 }
