package audit

import (
	"math/bits"
	"slices"
	"time"

	"landfall.build/engine/targets"
)

// task is a target version to be run in a tree that has it.
type task struct {
	tree    string
	leaving targets.Leaving
	target  targets.Target
	finding *Finding
}

// agenda is the order of the tasks: what is known to be slow first, so that it does not run alone at the
// end (M27), otherwise in the order of the commits, in which a worktree changes least from one to the next.
type agenda struct {
	waiting []*task
	// running are those that were taken and not released.
	running []*task
	// has is how much there is of each resource. Of one that it does not name a single step may take.
	has map[string]int
}

func (a *agenda) add(t *task) { a.waiting = append(a.waiting, t) }

// fits reports whether what a task takes is free. While nothing runs, all is.
func (a *agenda) fits(t *task) bool {
	exclusive, resources, _ := targets.Claims(t.target.Commands)
	if len(exclusive)+len(resources) == 0 {
		return true
	}
	taken := map[string]int64{}
	for _, other := range a.running {
		alone, of, _ := targets.Claims(other.target.Commands)
		if slices.ContainsFunc(alone, func(name string) bool { return slices.Contains(exclusive, name) }) {
			return false
		}
		for _, r := range of {
			taken[r.Name] += r.Amount
		}
	}
	return !slices.ContainsFunc(resources, func(r targets.Resource) bool {
		return taken[r.Name] > 0 && taken[r.Name]+r.Amount > int64(a.has[r.Name])
	})
}

// release gives back what a task has taken.
func (a *agenda) release(t *task) {
	a.running = slices.DeleteFunc(a.running, func(o *task) bool { return o == t })
}

// take removes and returns the next task; nil if none waits, or if all that do wait for what others have taken. usual has how long each
// target took before, where that is known.
func (a *agenda) take(usual map[string]time.Duration) *task {
	best, slowness := -1, -1
	for i, t := range a.waiting {
		if s := slow(usual[t.target.Name]); s > slowness && a.fits(t) {
			best, slowness = i, s
		}
	}
	if best < 0 {
		return nil
	}
	t := a.waiting[best]
	a.waiting = append(a.waiting[:best], a.waiting[best+1:]...)
	a.running = append(a.running, t)
	return t
}

// slow is 0 below a second, and one more with each doubling: what takes about as long as the rest stays
// in order.
func slow(d time.Duration) int { return bits.Len(uint(d / time.Second)) }

// remaining predicts the time of what waits. A target that was never run takes as long as the others did
// on average.
func (a *agenda) remaining(usual map[string]time.Duration) time.Duration {
	var sum time.Duration
	for _, d := range usual {
		sum += d
	}
	average := time.Duration(0)
	if len(usual) > 0 {
		average = sum / time.Duration(len(usual))
	}
	sum = 0
	for _, t := range a.waiting {
		d, known := usual[t.target.Name]
		if !known {
			d = average
		}
		sum += d
	}
	return sum
}
