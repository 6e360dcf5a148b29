package trace

import (
	"errors"
	"fmt"
	"math"
	"slices"
)

// Monorepo is a drawn repository with many targets. Its targets lie on a circle, and a change affects consecutive ones, as
// those that depend on each other lie together in a graph: how often two changes meet, and in how much, follows from their sizes.
type Monorepo struct {
	// Paper has arrivals, failures and true conflicts; its durations are those of steps.
	Paper
	// Targets is how many the repository has.
	Targets int
	// Affected is the median of the number of targets that a change affects, Affected975 its 97.5th percentile; the distribution
	// is lognormal.
	Affected, Affected975 float64
}

// Sizes of a repository: those of 5,436 commits of Go repositories.
const (
	pinnedTargets     = 4000
	pinnedAffected    = 30
	pinnedAffected975 = 494
	maxTargets        = 1_000_000
	normal975         = 1.959963984540054
)

// Spreads of what the targets of a repository differ in: of the logarithm of how often they fail, and of one run of a target
// from the next.
const (
	failingSpread = 1.0
	runSpread     = 0.1
)

// PinnedMonorepo has the sizes of real commits.
func PinnedMonorepo(p Paper) Monorepo {
	return Monorepo{Paper: p, Targets: pinnedTargets, Affected: pinnedAffected, Affected975: pinnedAffected975}
}

// Validate returns everything that is wrong with the numbers.
func (m Monorepo) Validate() error {
	errs := []error{m.Paper.Validate()}
	if m.Targets < 1 || m.Targets > maxTargets {
		errs = append(errs, fmt.Errorf("a repository of %d targets; it has 1 to %d", m.Targets, maxTargets))
	}
	if !(m.Affected >= 1 && m.Affected <= m.Affected975 && !math.IsInf(m.Affected975, 0)) {
		errs = append(errs, fmt.Errorf("changes of %v targets, %v at the 97.5th percentile; there is one at least, and the percentile is not below the median", m.Affected, m.Affected975))
	}
	return errors.Join(errs...)
}

// Start gives the trace from its beginning. The numbers must be valid.
func (m Monorepo) Start() Trace {
	t := &monorepoTrace{Monorepo: m, pairs: paperTrace{Paper: m.Paper, meet: Share, breaksAt: breaksAtAny}}
	t.kinds = make([]kind, m.Targets)
	for i := range t.kinds {
		t.kinds[i] = kind{m.duration(i), math.Exp(failingSpread * Normal(m.Seed, streamWeight, i, 0))}
	}
	t.rates = Rates{Green: 1 - m.Failure, Conflict: m.True, Near: m.Near.Microseconds()}
	t.rates.Mean, t.rates.Std = meanAndSpread(sampledSizes, func(i int) float64 { return float64(t.change(-1 - i).Duration) })
	return t
}

// sampledSizes is how many changes the rates are measured on.
const sampledSizes = 512

// kind is what a target is like: how long a step of it takes, and how much more often than others it is the one that fails.
type kind struct {
	typical int64
	failing float64
}

type monorepoTrace struct {
	Monorepo
	kinds []kind
	pairs paperTrace
	rates Rates
}

func (t *monorepoTrace) Rates() Rates { return t.rates }

func (t *monorepoTrace) Meet(ahead, behind *Change) bool { return Share(ahead, behind) }

func (t *monorepoTrace) Next() (*Change, error) {
	c, err := t.pairs.arrival()
	if err != nil {
		return nil, err
	}
	of := t.change(c.Number)
	c.Targets, c.Steps, c.Duration = of.Targets, of.Steps, of.Duration
	c.Fails = t.fails(c)
	c.Breaks = t.pairs.breaks(c)
	return c, nil
}

// change has the targets of the n-th change, and how long a step of each takes.
func (t *monorepoTrace) change(n int) *Change {
	spread := math.Log(t.Affected975/t.Affected) / normal975
	size := int(t.Affected * math.Exp(spread*Normal(t.Seed, streamSize, n, 0)))
	size = min(max(size, 1), t.Targets)
	first := int(Draw(t.Seed, streamPlace, n, 0) * float64(t.Targets))
	c := &Change{Targets: make([]int, size), Steps: make([]int64, size)}
	for i := range c.Targets {
		c.Targets[i] = (first + i) % t.Targets
	}
	slices.Sort(c.Targets)
	for i, target := range c.Targets {
		run := float64(t.kinds[target].typical) * math.Exp(runSpread*Normal(t.Seed, streamRun, n, target))
		c.Steps[i] = int64(min(max(run, float64(t.Shortest.Microseconds())), float64(t.Longest.Microseconds())))
		c.Duration += c.Steps[i]
	}
	return c
}

// fails draws in which of its targets a change fails, if it does.
func (t *monorepoTrace) fails(c *Change) int {
	var all float64
	for _, target := range c.Targets {
		all += t.kinds[target].failing
	}
	left := all * Draw(t.Seed, streamFails, c.Number, 0)
	for _, target := range c.Targets {
		if left -= t.kinds[target].failing; left < 0 {
			return target
		}
	}
	return c.Targets[len(c.Targets)-1]
}

// Ran returns how long a step of each target took before the trace begins.
func (t *monorepoTrace) Ran() []Ran {
	list := make([]Ran, len(t.kinds))
	for i, k := range t.kinds {
		list[i] = Ran{Target: i, Duration: k.typical}
	}
	return list
}

// Share reports whether two changes affect a target that both have. Their targets are ascending.
func Share(a, b *Change) bool {
	for i, j := 0, 0; i < len(a.Targets) && j < len(b.Targets); {
		switch x, y := a.Targets[i], b.Targets[j]; {
		case x == y:
			return true
		case x < y:
			i++
		default:
			j++
		}
	}
	return false
}

// breaksAtAny is the target in which two that truly conflict do so: one of those that they share. Targets are ascending.
func breaksAtAny(seed uint64, ahead, behind *Change) int {
	var common []int
	for _, t := range behind.Targets {
		if _, has := slices.BinarySearch(ahead.Targets, t); has {
			common = append(common, t)
		}
	}
	return common[int(Draw(seed, streamBreaksAt, ahead.Number, behind.Number)*float64(len(common)))]
}

func meanAndSpread(n int, f func(i int) float64) (mean, std float64) {
	var sum, squares float64
	for i := range n {
		x := f(i)
		sum, squares = sum+x, squares+x*x
	}
	mean = sum / float64(n)
	return mean, math.Sqrt(max(0, squares/float64(n)-mean*mean))
}
