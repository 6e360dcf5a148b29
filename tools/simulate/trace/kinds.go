package trace

import "math"

// kinds is what the targets of a repository are like.
type kinds struct {
	Paper
	of []kind
}

// kind is how long a step of a target takes, and how much more often than others it is the one that fails.
type kind struct {
	typical int64
	failing float64
}

// Spreads of what targets differ in: of the logarithm of how often they fail, and of one run of a target from the next.
const (
	failingSpread = 1.0
	runSpread     = 0.1
)

func newKinds(p Paper, targets int) kinds {
	k := kinds{p, make([]kind, targets)}
	for i := range k.of {
		k.of[i] = kind{p.duration(i), math.Exp(failingSpread * Normal(p.Seed, streamWeight, i, 0))}
	}
	return k
}

// steps sets how long the steps of a change take.
func (k kinds) steps(c *Change) {
	c.Steps, c.Duration = make([]int64, len(c.Targets)), 0
	for i, target := range c.Targets {
		run := float64(k.of[target].typical) * math.Exp(runSpread*Normal(k.Seed, streamRun, c.Number, target))
		c.Steps[i] = int64(min(max(run, float64(k.Shortest.Microseconds())), float64(k.Longest.Microseconds())))
		c.Duration += c.Steps[i]
	}
}

// fails draws in which of its targets a change fails, if it does.
func (k kinds) fails(c *Change) int {
	var all float64
	for _, target := range c.Targets {
		all += k.of[target].failing
	}
	left := all * Draw(k.Seed, streamFails, c.Number, 0)
	for _, target := range c.Targets {
		if left -= k.of[target].failing; left < 0 {
			return target
		}
	}
	return c.Targets[len(c.Targets)-1]
}

// ran has a run of each target before the trace begins.
func (k kinds) ran() []Ran {
	list := make([]Ran, len(k.of))
	for i, kind := range k.of {
		list[i] = Ran{Target: i, Duration: kind.typical}
	}
	return list
}
