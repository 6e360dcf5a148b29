package trace

import (
	"io"
	"math"
	"time"
)

// Recorded is a workload of builds that really ran: their order, the time from one to the next, how long
// they took and how they ended. Who conflicts with whom was not recorded; it is drawn as in Paper.
type Recorded struct {
	Runs []Run
	// Rate is how many changes arrive in an hour on average: the recorded times are stretched to it, bursts
	// and nights included.
	Rate float64
	// Seed, Potential, True and Near are those of Paper.
	Seed            uint64
	Potential, True float64
	Near            time.Duration
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
	pairs := Paper{Seed: r.Seed, Potential: r.Potential, True: r.True, Near: r.Near}
	t.pairs = &paperTrace{Paper: pairs}
	n := float64(len(r.Runs))
	var sum, squares, green float64
	for _, x := range r.Runs {
		sum, squares = sum+x.Duration*1e6, squares+x.Duration*x.Duration*1e12
		if x.Green {
			green++
		}
	}
	mean := sum / n
	t.rates = Rates{
		Green: green / n, Conflict: r.True, Near: r.Near.Microseconds(),
		Mean: mean, Std: math.Sqrt(math.Max(0, squares/n-mean*mean)),
	}
	if span := r.Runs[len(r.Runs)-1].Start - r.Runs[0].Start; span > 0 {
		t.stretch = n / r.Rate * 3600 / span
	}
	return t
}

type recordedTrace struct {
	Recorded
	pairs   *paperTrace
	rates   Rates
	stretch float64
	next    int
}

func (t *recordedTrace) Next() (*Change, error) {
	if t.next >= len(t.Runs) {
		return nil, io.EOF
	}
	r := t.Runs[t.next]
	c := &Change{
		Number: t.next, ID: r.Name, Arrival: int64((r.Start - t.Runs[0].Start) * t.stretch * 1e6),
		Duration: int64(r.Duration * 1e6), Green: r.Green,
	}
	t.next++
	c.Breaks = t.pairs.breaks(c)
	return c, nil
}

func (t *recordedTrace) Meet(ahead, behind *Change) bool { return t.pairs.Meet(ahead, behind) }

func (t *recordedTrace) Rates() Rates { return t.rates }
