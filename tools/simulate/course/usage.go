package course

import (
	"container/heap"
	"slices"

	"landfall.build/engine/evidence"
)

// usage measures how busy the workers of a pool are while a step could be started.
type usage struct {
	workers, last int64
	// elsewhere is set if a pending change lacks a result that nobody makes, or waits for, as of the last plan, or one has arrived since.
	elsewhere bool
	// busy and could are worker time: of those that ran something, and of all, while there was something to start.
	busy, could int64
}

// until counts the time from the last event on, in which nothing has changed.
func (u *usage) until(p *pool, now int64) {
	if now <= u.last {
		return
	}
	if busy := u.workers - int64(len(p.idle)); u.elsewhere || int64(len(p.wanted)) > busy {
		u.busy += busy * (now - u.last)
		u.could += u.workers * (now - u.last)
	}
	u.last = now
}

// share is the share of the workers that were busy; 1 if there never was anything to start.
func (u *usage) share() float64 {
	if u.could == 0 {
		return 1
	}
	return float64(u.busy) / float64(u.could)
}

// look finds out whether a pending change lacks a result that nobody makes or waits for: on the path that comes about, so that it is
// one that is needed.
func (p *pool) look() {
	p.usage.until(p, p.clock)
	p.usage.elsewhere = len(p.idle) > 0 && slices.ContainsFunc(p.c.order, p.lacks)
}

// arrived notes that a change has arrived, whose steps could start if the queue had planned already.
func (p *pool) arrived() {
	p.usage.until(p, p.clock)
	p.usage.elsewhere = true
}

func (p *pool) lacks(of *pending) bool {
	c := p.c
	var assumed []*pending
	for _, a := range of.ahead {
		if !a.gone && c.truth.Lands(a.Number) {
			assumed = append(assumed, a)
		}
	}
	lacks := false
	for _, t := range c.versions(of, assumed) {
		switch c.state(t) {
		case evidence.Red:
			return false
		case evidence.Unknown:
			lacks = lacks || p.wanted[versionAt(t)] == nil
		}
	}
	return lacks && of.Cancelled == 0
}

// alone is how long a change takes if the pool has nothing else to do: its longest steps first, with what the queue takes to plan
// before and after. One that fails by itself takes until that is known.
func (c *course) alone(p *pending) int64 {
	steps := []int64{p.Duration}
	fails := 0
	if p.Targets != nil {
		steps = make([]int64, len(p.Targets))
		for i := range steps {
			steps[i] = p.Takes(i)
		}
		fails = p.places[p.Fails]
	}
	order := make([]int, len(steps))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return int(min(max(steps[b]-steps[a], -1), 1)) })
	free := make(times, c.o.Workers)
	checkout := c.o.Pool.Checkout.Microseconds()
	for i := range free {
		free[i] = checkout
	}
	var last, failed int64
	for _, i := range order {
		took := steps[i] + c.o.Pool.Overhead.Microseconds()
		if !p.Green && i == fails {
			took *= int64(1 + c.o.Disturbed.Retries())
		}
		free[0] += took
		if last = max(last, free[0]); !p.Green && i == fails {
			failed = free[0]
		}
		heap.Fix(&free, 0)
	}
	if !p.Green {
		last = failed
	}
	return last + 2*c.o.Round.Microseconds()
}

// times is a heap of when workers are free.
type times []int64

func (t times) Len() int           { return len(t) }
func (t times) Less(i, j int) bool { return t[i] < t[j] }
func (t times) Swap(i, j int)      { t[i], t[j] = t[j], t[i] }
func (t times) Push(any)           {}
func (t times) Pop() any           { return nil }
