package trace

import (
	"io"
	"math"
	"time"
)

// Recorded is a workload of recorded builds or commits: their order, the time from one to the next, how long they took and
// how they ended. Conflicts were not recorded; they are drawn as in Paper.
type Recorded struct {
	Runs []Run
	// Rate is how many changes arrive in an hour on average: the recorded times are stretched to it, bursts
	// and nights included.
	Rate float64
	// Seed, Potential, True and Near are those of Paper.
	Seed            uint64
	Potential, True float64
	Near            time.Duration
	// Failure is how often a run that is recorded as green fails by itself, for records without outcomes.
	Failure float64
	// Steps, if set, has what steps of a target take, in place of the durations of whole runs. It goes with runs whose targets are
	// known.
	Steps *Paper
	// targets is the number of targets in all, affected are those of each run, where they are known: then those that share one meet, and
	// Potential does not matter.
	targets  int
	affected []bitset
}

// Run is one recorded build. Start is in seconds on any clock; runs are ordered by it.
type Run struct {
	Name            string
	Start, Duration float64
	Green           bool
}

// Start gives the trace from its beginning.
func (r Recorded) Start() Trace {
	t := &recordedTrace{Recorded: r}
	t.pairs = &paperTrace{Paper: Paper{Seed: r.Seed, Potential: r.Potential, True: r.True, Near: r.Near}, meet: t.Meet}
	if r.Steps != nil {
		of := *r.Steps
		of.Seed = r.Seed
		t.kinds = newKinds(of, r.targets)
		t.pairs.meet, t.pairs.breaksAt = Share, breaksAtAny
	}
	n := float64(len(r.Runs))
	var sum, squares, green float64
	for i, x := range r.Runs {
		if r.Steps != nil {
			x.Duration = float64(t.change(i).Duration) / 1e6
		}
		sum, squares = sum+x.Duration*1e6, squares+x.Duration*x.Duration*1e12
		if x.Green {
			green++
		}
	}
	mean := sum / n
	t.rates = Rates{
		Green: green / n * (1 - r.Failure), Conflict: r.True, Near: r.Near.Microseconds(),
		Mean: mean, Std: math.Sqrt(math.Max(0, squares/n-mean*mean)),
	}
	if span := r.Runs[len(r.Runs)-1].Start - r.Runs[0].Start; span > 0 {
		t.stretch = n / r.Rate * 3600 / span
	}
	return t
}

type recordedTrace struct {
	Recorded
	kinds   kinds
	pairs   *paperTrace
	rates   Rates
	stretch float64
	next    int
}

func (t *recordedTrace) Next() (*Change, error) {
	if t.next >= len(t.Runs) {
		return nil, io.EOF
	}
	c := t.change(t.next)
	t.next++
	if t.Steps != nil {
		c.Fails = t.kinds.fails(c)
	}
	c.Breaks = t.pairs.breaks(c)
	return c, nil
}

// change is the n-th one, without those that it breaks with.
func (t *recordedTrace) change(n int) *Change {
	r := t.Runs[n]
	c := &Change{
		Number: n, ID: r.Name, Arrival: int64((r.Start - t.Runs[0].Start) * t.stretch * 1e6),
		Duration: int64(r.Duration * 1e6), Green: r.Green && Draw(t.Seed, streamGreen, n, 0) >= t.Failure,
	}
	if t.Steps != nil {
		for target := range t.targets {
			if t.affected[n].has(target) {
				c.Targets = append(c.Targets, target)
			}
		}
		t.kinds.steps(c)
	}
	return c
}

// Ran returns how long a step of each target took before the trace begins.
func (t *recordedTrace) Ran() []Ran { return t.kinds.ran() }

func (t *recordedTrace) Meet(ahead, behind *Change) bool {
	if t.affected == nil {
		return t.pairs.Meet(ahead, behind)
	}
	return t.affected[ahead.Number].meets(t.affected[behind.Number])
}

func (t *recordedTrace) Rates() Rates { return t.rates }

// MeetOf returns the share of the runs that are in potential conflict with one of so many right before them.
func (r Recorded) MeetOf(before int) float64 {
	t := &recordedTrace{Recorded: r}
	t.pairs = &paperTrace{Paper: Paper{Seed: r.Seed, Potential: r.Potential}}
	n := 0
	for i := range r.Runs {
		for k := max(0, i-before); k < i; k++ {
			if t.Meet(&Change{Number: k}, &Change{Number: i}) {
				n++
				break
			}
		}
	}
	return float64(n) / float64(len(r.Runs))
}
