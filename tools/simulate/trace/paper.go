package trace

import (
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"time"
)

// Paper is the workload that the policies are compared on. Its defaults are pinned, so that nobody can choose them for a
// result; see PinnedPaper.
type Paper struct {
	Seed uint64
	// Changes is how many arrive, Rate how many in an hour (a Poisson process).
	Changes int
	Rate    float64
	// Failure is how often a change fails by itself.
	Failure float64
	// Median and P95 fix the lognormal durations, which are redrawn outside [Shortest, Longest].
	Median, P95, Shortest, Longest time.Duration
	// Potential is how likely two changes are in potential conflict; True how likely a pair of these that
	// arrived within Near of each other truly conflicts.
	Potential, True float64
	Near            time.Duration
	// ByTarget gives each change ten targets of equal cost, in which it meets others; see targets.go.
	ByTarget bool
}

// PinnedPaper has the numbers that every published comparison uses.
func PinnedPaper() Paper {
	return Paper{
		Seed: 1, Changes: 2000, Rate: 500, Failure: 0.06,
		Median: 32 * time.Minute, P95: 60 * time.Minute, Shortest: 10 * time.Minute, Longest: 90 * time.Minute,
		Potential: 0.05, True: 0.005, Near: 35 * time.Minute,
	}
}

// normal95 is the 95th percentile of the standard normal distribution.
const normal95 = 1.6448536269514722

// Streams of draws; each has another meaning.
const (
	streamArrival = iota + 1
	streamGreen
	streamPotential
	streamTrue
	streamFails
	streamBreaksAt
	streamSize
	streamPlace
	streamWeight
	streamRun
	// streamBundle takes one for each bundle of targets, from here on.
	streamBundle = 100
	// streamDuration takes two for each attempt at a duration within its bounds, from here on.
	streamDuration = 1000
)

// maxRedraws bounds the attempts at a duration between its bounds; then the nearer bound is taken.
const maxRedraws = 64

// Validate returns everything that is wrong with the numbers.
func (p Paper) Validate() error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if p.Changes < 1 {
		bad("%d changes; at least 1 must arrive", p.Changes)
	}
	if !(p.Rate > 0) || math.IsInf(p.Rate, 0) {
		bad("a rate of %v changes per hour; it must be positive", p.Rate)
	} else if hours := float64(p.Changes) / p.Rate; hours*3600 > maxSeconds {
		bad("%d changes at %v per hour take %.3g hours; times go up to %g s", p.Changes, p.Rate, hours, maxSeconds)
	}
	for _, x := range []struct {
		name  string
		value float64
	}{{"failure", p.Failure}, {"potential conflict", p.Potential}, {"true conflict", p.True}} {
		if !(x.value >= 0 && x.value <= 1) {
			bad("a probability of %s of %v; it lies between 0 and 1", x.name, x.value)
		}
	}
	if !(0 < p.Shortest && p.Shortest <= p.Median && p.Median <= p.P95 && p.Median <= p.Longest) {
		bad("durations: shortest %v, median %v, P95 %v, longest %v; they must be positive and in this order", p.Shortest, p.Median, p.P95, p.Longest)
	}
	if p.Near < 0 {
		bad("pairs within %v; it cannot be negative", p.Near)
	}
	return errors.Join(errs...)
}

// Start gives the trace from its beginning. The numbers must be valid.
func (p Paper) Start() Trace {
	t := &paperTrace{Paper: p, rates: p.rates()}
	t.meet = t.Meet
	if p.ByTarget {
		t.shares, t.breaksAt = newShares(p.Potential), breaksAt
	}
	return t
}

type paperTrace struct {
	Paper
	rates Rates
	next  int
	// clock is when the last change arrived; recent are those that arrived at most Near before it.
	clock  float64
	recent []*Change
	// meet reports potential conflicts.
	meet func(ahead, behind *Change) bool
	// breaksAt draws the target in which two break; nil where a change has one target of its own.
	breaksAt func(seed uint64, ahead, behind *Change) int
	// shares is nil where pairs are drawn one by one.
	shares *shares
}

func (t *paperTrace) Next() (*Change, error) {
	c, err := t.arrival()
	if err != nil {
		return nil, err
	}
	c.Duration = t.duration(c.Number)
	if t.shares != nil {
		c.Targets = t.shares.targets(t.Seed, c.Number)
		c.Fails = c.Targets[int(Draw(t.Seed, streamFails, c.Number, 0)*float64(len(c.Targets)))]
	}
	c.Breaks = t.breaks(c)
	return c, nil
}

// arrival is the next change, without what its builds take.
func (t *paperTrace) arrival() (*Change, error) {
	if t.next >= t.Changes {
		return nil, io.EOF
	}
	n := t.next
	t.next++
	t.clock += -math.Log(1-Draw(t.Seed, streamArrival, n, 0)) / t.Rate * float64(time.Hour/time.Microsecond)
	return &Change{Number: n, ID: "c" + strconv.Itoa(n), Arrival: int64(t.clock), Green: Draw(t.Seed, streamGreen, n, 0) >= t.Failure}, nil
}

// breaks draws with which of those that arrived near it a change truly conflicts.
func (t *paperTrace) breaks(c *Change) (numbers []int) {
	for len(t.recent) > 0 && c.Arrival-t.recent[0].Arrival > t.Near.Microseconds() {
		t.recent = t.recent[1:]
	}
	for _, k := range t.recent {
		if t.meet(k, c) && Draw(t.Seed, streamTrue, k.Number, c.Number) < t.True {
			numbers = append(numbers, k.Number)
			if t.breaksAt != nil {
				c.BreaksAt = append(c.BreaksAt, t.breaksAt(t.Seed, k, c))
			}
		}
	}
	t.recent = append(t.recent, c)
	return numbers
}

func (t *paperTrace) Meet(ahead, behind *Change) bool {
	if t.shares != nil {
		return share(ahead, behind)
	}
	return Draw(t.Seed, streamPotential, ahead.Number, behind.Number) < t.Potential
}

func (t *paperTrace) Rates() Rates { return t.rates }

// sigma is the spread of the logarithm of a duration.
func (p Paper) sigma() float64 { return math.Log(float64(p.P95)/float64(p.Median)) / normal95 }

func (p Paper) duration(n int) int64 {
	x := float64(p.Median)
	for i := range maxRedraws {
		x = float64(p.Median) * math.Exp(p.sigma()*Normal(p.Seed, streamDuration+i, n, 0))
		if x >= float64(p.Shortest) && x <= float64(p.Longest) {
			break
		}
	}
	x = min(max(x, float64(p.Shortest)), float64(p.Longest))
	return time.Duration(x).Microseconds()
}

// rates are measured on durations of the same distribution, so that cutting it is counted.
func (p Paper) rates() Rates {
	const sample = 4096
	var sum, squares float64
	for n := range sample {
		d := float64(p.duration(-1 - n))
		sum, squares = sum+d, squares+d*d
	}
	mean := sum / sample
	return Rates{
		Green: 1 - p.Failure, Conflict: p.True, Near: p.Near.Microseconds(),
		Mean: mean, Std: math.Sqrt(max(0, squares/sample-mean*mean)),
	}
}
