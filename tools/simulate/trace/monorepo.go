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
	t := &monorepoTrace{Monorepo: m, kinds: newKinds(m.Paper, m.Targets), pairs: paperTrace{Paper: m.Paper, meet: Share, breaksAt: breaksAtAny}}
	t.rates = Rates{Green: 1 - m.Failure, Conflict: m.True, Near: m.Near.Microseconds()}
	t.rates.Mean, t.rates.Std = meanAndSpread(sampledSizes, func(i int) float64 {
		c := &Change{Number: -1 - i}
		t.fill(c)
		return float64(c.Duration)
	})
	return t
}

// sampledSizes is how many changes the rates are measured on.
const sampledSizes = 512

type monorepoTrace struct {
	Monorepo
	kinds kinds
	pairs paperTrace
	rates Rates
}

func (t *monorepoTrace) Rates() Rates { return t.rates }

func (t *monorepoTrace) Meet(ahead, behind *Change) bool { return Share(ahead, behind) }

// Ran returns how long a step of each target took before the trace begins.
func (t *monorepoTrace) Ran() []Ran { return t.kinds.ran() }

func (t *monorepoTrace) Next() (*Change, error) {
	c, err := t.pairs.arrival()
	if err != nil {
		return nil, err
	}
	t.fill(c)
	c.Fails = t.kinds.fails(c)
	c.Breaks = t.pairs.breaks(c)
	return c, nil
}

// fill draws the targets of a change, and how long a step of each takes.
func (t *monorepoTrace) fill(c *Change) {
	spread := math.Log(t.Affected975/t.Affected) / normal975
	size := int(t.Affected * math.Exp(spread*Normal(t.Seed, streamSize, c.Number, 0)))
	size = min(max(size, 1), t.Targets)
	first := int(Draw(t.Seed, streamPlace, c.Number, 0) * float64(t.Targets))
	c.Targets = make([]int, size)
	for i := range c.Targets {
		c.Targets[i] = (first + i) % t.Targets
	}
	slices.Sort(c.Targets)
	t.kinds.steps(c)
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
