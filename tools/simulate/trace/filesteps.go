package trace

import (
	"maps"
	"math"
	"slices"
)

// maxTargetName bounds the name of a target in a file.
const maxTargetName = 1000

// seconds is how long a build takes on one worker: what is written, or what its steps take.
func (l *line) seconds(bad func(string, ...any)) (sum float64) {
	for _, name := range slices.Sorted(maps.Keys(l.Steps)) {
		s := l.Steps[name]
		if !(s >= minSeconds && s <= maxSeconds) || name == "" || len(name) > maxTargetName {
			bad("its step %.100q takes %v s; it has a name, and takes at least %g s and at most %g", name, s, minSeconds, maxSeconds)
			return minSeconds
		}
		sum += s
	}
	if _, has := l.Steps[l.fails()]; l.Fails != nil && !has {
		bad("it fails in %.100q, which is none of its steps", *l.Fails)
	}
	if l.Duration != nil {
		return *l.Duration
	}
	return sum
}

func (l *line) fails() string {
	if l.Fails == nil {
		return ""
	}
	return *l.Fails
}

// inSteps sets the targets of a change, ascending, and in which of them it breaks with others: the first one that they share.
func (f *File) inSteps(c *Change, l *line, bad func(string, ...any)) {
	if len(l.Steps) == 0 {
		bad("it has no steps, which a pool of workers runs")
		return
	}
	takes := map[int]int64{}
	c.Duration = 0
	for _, name := range slices.Sorted(maps.Keys(l.Steps)) {
		n, known := f.targets[name]
		if !known {
			n = len(f.targets)
			f.targets[name] = n
		}
		takes[n] = int64(math.Round(l.Steps[name] * 1e6))
		c.Duration += takes[n]
	}
	c.Targets = slices.Sorted(maps.Keys(takes))
	for _, t := range c.Targets {
		c.Steps = append(c.Steps, takes[t])
	}
	if c.Fails = c.Targets[0]; l.Fails != nil {
		c.Fails = f.targets[*l.Fails]
	}
	for _, n := range c.Breaks {
		ahead := f.steps[n]
		i := slices.IndexFunc(c.Targets, func(t int) bool { return ahead != nil && slices.Contains(ahead.Targets, t) })
		if i < 0 {
			bad("it breaks with a change with which it shares no target")
			return
		}
		c.BreaksAt = append(c.BreaksAt, c.Targets[i])
	}
}
