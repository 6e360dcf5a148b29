package course

import (
	"slices"
	"strconv"
	"strings"

	"landfall.build/engine/evidence"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/tools/simulate/trace"
)

// sum is a set of changes, as the sum of a number drawn for each.
type sum [2]uint64

func (s sum) plus(number int) sum {
	return sum{s[0] + uint64(trace.Draw(1, 1, number, 0)*(1<<53)), s[1] + uint64(trace.Draw(1, 2, number, 0)*(1<<53))}
}

// versions are what a change's targets are on a mainline as it stands plus those assumed.
//
// If it has one target of its own, changes behind it in the queue do not alter that target: the one that passed has proven
// all that a bypass could change (theorem 1 of BLRD, M20). If it shares targets with others, each target holds the changes
// that affect it, in whatever order they came.
func (c *course) versions(p *pending, assumed []*pending) []*eventsv1.TargetVersion {
	if p.Targets == nil {
		s := p.landed
		for _, a := range assumed {
			s = s.plus(a.Number)
		}
		return []*eventsv1.TargetVersion{versionOf(p.ID, s)}
	}
	list := make([]*eventsv1.TargetVersion, 0, len(p.Targets))
	for _, t := range p.Targets {
		s := c.mainline[t].plus(p.Number)
		for _, a := range assumed {
			if a.affects(t) {
				s = s.plus(a.Number)
			}
		}
		list = append(list, versionOf(targetName(t), s))
	}
	return list
}

func versionOf(target string, s sum) *eventsv1.TargetVersion {
	hash := make([]byte, 0, 33)
	hash = strconv.AppendUint(hash, s[0], 16)
	hash = append(hash, '.')
	return &eventsv1.TargetVersion{Target: target, Part: 1, Hash: string(strconv.AppendUint(hash, s[1], 16))}
}

func targetName(t int) string { return "t" + strconv.Itoa(t) }

func targetNumber(name string) int {
	t, err := strconv.Atoi(strings.TrimPrefix(name, "t"))
	if err != nil {
		panic("no target of the trace: " + name)
	}
	return t
}

// affects reports whether the change affects a target; a change with one target of its own affects no other.
func (p *pending) affects(target int) bool {
	_, does := p.places[target]
	return does
}

// passes reports how a build of the change on top of those assumed ends for one of its targets.
func (c *course) passes(p *pending, assumed []*pending, target string) bool {
	if p.Targets == nil {
		return p.passes(assumed)
	}
	t := targetNumber(target)
	return !c.failsIn(p, assumed, t) && !slices.ContainsFunc(assumed, func(a *pending) bool { return a.affects(t) && c.failsIn(a, assumed, t) })
}

// failsIn reports whether a target fails for a change in a tree: by itself, or with a change that landed or is assumed.
func (c *course) failsIn(p *pending, assumed []*pending, target int) bool {
	if !p.Green && p.Fails == target {
		return true
	}
	for i, b := range p.Breaks {
		if p.BreaksAt[i] == target && (c.result.landedNumbers.has(b) || slices.ContainsFunc(assumed, func(a *pending) bool { return a.Number == b })) {
			return true
		}
	}
	return false
}

// own stands for the target of a change that has one of its own.
const own = -1

// failing has the targets that fail in the tree of a change on top of those assumed: what passes reports, for all at once.
func (c *course) failing(p *pending, assumed []*pending) map[int]bool {
	out := map[int]bool{}
	if p.Targets == nil {
		out[own] = !p.passes(assumed)
		return out
	}
	holds := func(number int) bool {
		return c.result.landedNumbers.has(number) || slices.ContainsFunc(assumed, func(a *pending) bool { return a.Number == number })
	}
	for _, x := range append(assumed[:len(assumed):len(assumed)], p) {
		if !x.Green {
			out[x.Fails] = true
		}
		for i, number := range x.Breaks {
			if holds(number) {
				out[x.BreaksAt[i]] = true
			}
		}
	}
	return out
}

// makes returns how long a step of the build takes, and whether it passes.
func (b *build) makes(v evidence.Version) (us int64, passes bool) {
	if b.joint != nil {
		return b.joint.owner[v.Target].makes(v)
	}
	of := b.of
	if of.Targets == nil {
		return of.Duration, !b.failing[own]
	}
	target := targetNumber(v.Target)
	return of.Takes(of.places[target]), !b.failing[target]
}

// passes reports how a build of the change on top of those assumed ends, if it has one target of its own.
func (p *pending) passes(assumed []*pending) bool {
	if !p.Green || p.broken {
		return false
	}
	for _, a := range assumed {
		if p.Broken(a.Number) {
			return false
		}
	}
	return true
}

// holds adds a change that lands to the versions of the targets that it affects on the mainline.
func (c *course) holds(p *pending) {
	for _, t := range p.Targets {
		c.mainline[t] = c.mainline[t].plus(p.Number)
	}
}

// state is what is known of a version.
func (c *course) state(v *eventsv1.TargetVersion) evidence.State {
	return c.ledger.State(evidence.Version{Target: v.Target, Hash: v.Hash}, c.settings.Steps)
}
