package trace

import (
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"time"
)

// Disturbances are failures other than those of the changes. All are drawn from the seed and from what they happen to, so
// they belong to the trace: no policy can shift it, and none of it alters which changes land beyond
// those that are cancelled.
type Disturbances struct {
	Seed uint64
	// Flakes is how likely a run of a target that passes fails the first time. The queue then runs what fails once
	// more (M19a), and the second run does not flake: nothing is rejected for it.
	Flakes float64
	// Losses is how often a worker is lost in an hour of its work. Its build starts again once the lease has lapsed.
	Losses float64
	// Cancelled is the share of the changes that their authors cancel, before they can have been decided.
	Cancelled float64
}

// Bounds of the disturbances: beyond them hardly anything would ever end.
const (
	// maxLosses is how often in a row one run loses its worker at most.
	maxLosses       = 4
	maxLossesPerH   = 60
	retriesOfFailed = 1
)

// Lapse is how long the loss of a worker goes unnoticed: the time of a builder's lease.
const Lapse = 10 * time.Second

// Streams of draws.
const (
	streamFlake = 6001 + iota
	streamCancelled
	streamCancelledAt
	// streamLoss takes one for each time that a run loses its worker, from here on.
	streamLoss = 6100
)

// Validate returns everything that is wrong with the numbers.
func (d Disturbances) Validate() error {
	var errs []error
	for _, x := range []struct {
		name  string
		value float64
	}{{"flakes", d.Flakes}, {"cancellations", d.Cancelled}} {
		if !(x.value >= 0 && x.value <= 1) {
			errs = append(errs, fmt.Errorf("%s of %v; that is a share between 0 and 1", x.name, x.value))
		}
	}
	if !(d.Losses >= 0 && d.Losses <= maxLossesPerH) {
		errs = append(errs, fmt.Errorf("a worker loss of %v in an hour; it lies between 0 and %d", d.Losses, maxLossesPerH))
	}
	return errors.Join(errs...)
}

// Retries is how often the queue repeats a failed run: once if there are flakes.
func (d Disturbances) Retries() uint32 {
	if d.Flakes > 0 {
		return retriesOfFailed
	}
	return 0
}

// Flaky reports whether an attempt at a version fails although the version passes. Attempts count from 1.
func (d Disturbances) Flaky(c *Change, version string, attempt uint32) bool {
	return attempt <= d.Retries() && Draw(d.Seed, streamFlake, c.Number, nameOf(version)) < d.Flakes
}

// Takes returns how long an attempt at a version takes, with the losses of workers, in microseconds.
func (d Disturbances) Takes(c *Change, version string, attempt uint32, cost int64) int64 {
	if d.Losses == 0 {
		return cost
	}
	var lost int64
	for n := range maxLosses {
		u := Draw(d.Seed, streamLoss+n, c.Number, nameOf(version)+int(attempt))
		after := -math.Log(1-u) / d.Losses * float64(time.Hour/time.Microsecond)
		if after >= float64(cost) {
			break
		}
		lost += int64(after) + Lapse.Microseconds()
	}
	return lost + cost
}

// nameOf is a number that stands for a version.
func nameOf(version string) int {
	h := fnv.New64a()
	h.Write([]byte(version))
	return int(h.Sum64() >> 1)
}

// Cancelling returns the trace with its cancellations.
func (d Disturbances) Cancelling(t Trace) Trace {
	if d.Cancelled == 0 {
		return t
	}
	return cancelling{t, d}
}

type cancelling struct {
	Trace
	d Disturbances
}

func (t cancelling) Next() (*Change, error) {
	c, err := t.Trace.Next()
	if err != nil || Draw(t.d.Seed, streamCancelled, c.Number, 0) >= t.d.Cancelled {
		return c, err
	}
	// No result of a change is known before its shortest step has run, so until then it is not decided.
	c.Cancelled = c.Arrival + int64(Draw(t.d.Seed, streamCancelledAt, c.Number, 0)*float64(c.Step()))
	return c, nil
}
