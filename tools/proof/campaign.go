package proof

import (
	"context"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"
)

// Campaign is a row of schedules, with seeds that follow one another.
type Campaign struct {
	// Options are those of every schedule; their Seed is the first one's.
	Options
	Schedules int
	// MaxFailures ends a campaign that fails all over; 0 for the first failure.
	MaxFailures int
	// Progress, if set, is told from time to time how many schedules are done, and what they went through.
	Progress func(done int, so Tally)
	// Each, if set, is told what came of each schedule, one at a time.
	Each func(o Options, t Tally)
}

// Failure is a schedule that broke a promise.
type Failure struct {
	Options
	Wrong []string
}

// progressEvery is how often a campaign tells how far it is.
const progressEvery = 2 * time.Second

// Run goes through the schedules on all cores, until all are done, the context ends or too many failed. It
// gives what they went through, and the failures in the order of their seeds.
func (c Campaign) Run(ctx context.Context) (Tally, []Failure) {
	var (
		mu       sync.Mutex
		total    Tally
		failures []Failure
		taken    int
		told     = time.Now()
		wg       sync.WaitGroup
	)
	take := func() (o Options, ok bool) {
		mu.Lock()
		defer mu.Unlock()
		if taken == c.Schedules || len(failures) > c.MaxFailures || ctx.Err() != nil {
			return o, false
		}
		o = c.Options
		o.Seed += uint64(taken)
		taken++
		return o, true
	}
	done := func(o Options, t Tally, wrong []string) {
		mu.Lock()
		defer mu.Unlock()
		total.Add(t)
		if c.Each != nil {
			c.Each(o, t)
		}
		if len(wrong) > 0 {
			failures = append(failures, Failure{o, wrong})
		}
		if c.Progress != nil && time.Since(told) >= progressEvery {
			told = time.Now()
			c.Progress(total[Schedules], total)
		}
	}
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for o, ok := take(); ok; o, ok = take() {
				t, wrong := Run(o)
				done(o, t, wrong)
			}
		})
	}
	wg.Wait()
	slices.SortFunc(failures, func(a, b Failure) int { return int(int64(a.Seed - b.Seed)) })
	return total, failures
}

// Shrink leaves out what a failure does not need, until a moment. A schedule that does not come to rest is
// given less time for it meanwhile.
func (f Failure) Shrink(until time.Time) Failure {
	o := f.Options
	o.Ticks, o.Without = 4000, map[string]bool{}
	maps.Copy(o.Without, f.Without)
	for _, name := range append(Troubles(), Names(o)...) {
		if o.Without[name] {
			continue
		}
		o.Without[name] = true
		if _, still := Run(o); len(still) == 0 {
			delete(o.Without, name)
		}
		if time.Now().After(until) {
			break
		}
	}
	o.Ticks = f.Ticks
	if _, still := Run(o); len(still) > 0 {
		return Failure{o, still}
	}
	return f
}

// Report says what was broken, and how to see it again.
func (f Failure) Report() string {
	again := fmt.Sprintf("make faults SEED=%d SCHEDULES=1 TRACE=1", f.Seed)
	if f.Sabotage != "" {
		again += " SABOTAGE=" + string(f.Sabotage)
	}
	if f.Leave != "" {
		again += " LEAVE=" + string(f.Leave)
	}
	if len(f.Without) > 0 {
		again += fmt.Sprintf(" WITHOUT=%q", strings.Join(slices.Sorted(maps.Keys(f.Without)), ","))
	}
	return fmt.Sprintf("seed %d: %s\nto see it again: %s", f.Seed, strings.Join(f.Wrong, "; "), again)
}
