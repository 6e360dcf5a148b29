package eta

import (
	"cmp"
	"math"
	"slices"

	"landfall.build/services/memberset"
)

// mask is which of the considered members land: bit b is picked[b].
type mask uint32

// plan is what is or will be built for a change, as its considered members see it.
type plan struct {
	// likely is the likelier way of each.
	likely mask
	// builds are those that run; waits says that one waits, of that mask.
	builds []pathBuild
	// known holds what was asked of Change.Known.
	known map[mask]Outcome
	// free are members of both whose ways something is known or is built: nobody waits for them.
	free mask
	// inside are those that have nothing ahead but what the change has: what builds have shown of them counts (M9).
	inside mask
	// chance is how likely each considered member lands.
	chance [considered]float64
}

// pathBuild is a build of a path: one that runs, or waits for a slot.
type pathBuild struct {
	mask  mask
	waits bool
	left  []float64 // by play, of one that runs
}

// decide plays change i, those before it being played.
func (x *sampler) decide(i int) {
	c := &x.q.Changes[i]
	x.unknown[i] = c.Unknown
	x.pick(c)
	p := x.planOf(i)
	for b, j := range x.picked {
		if x.unknown[c.Ahead[j].At] != "" && p.free&(1<<b) == 0 && x.unknown[i] == "" {
			x.unknown[i] = waitsForUnknown
		}
	}
	if x.unknown[i] != "" {
		x.never(i)
		return
	}
	sum, turn := 0.0, x.turn(c, &p)
	for s := range x.plays {
		t := x.play(i, s, &p, turn)
		x.decided[i][s] = t
		sum += t
	}
	if x.mean[i] = sum / float64(x.plays); math.IsInf(x.mean[i], 1) {
		x.unknown[i] = waitsForUnknown // in some plays at least
		x.never(i)
	}
}

const waitsForUnknown = "what it waits for has no estimate"

// never has a change undecided for good in all plays.
func (x *sampler) never(i int) {
	x.mean[i] = math.Inf(1)
	for s := range x.plays {
		x.decided[i][s], x.shown[i][s] = math.Inf(1), math.Inf(1)
	}
}

// pick chooses the members that are considered: those that are likely decided last, in queue order.
func (x *sampler) pick(c *Change) {
	x.picked = x.picked[:0]
	later := func(a, b int) int {
		if d := cmp.Compare(x.mean[c.Ahead[b].At], x.mean[c.Ahead[a].At]); d != 0 {
			return d
		}
		return cmp.Compare(b, a)
	}
	for j := range c.Ahead {
		if c.Ahead[j].At < 0 {
			continue
		}
		if len(x.picked) < considered {
			x.picked = append(x.picked, j)
			if len(x.picked) == considered {
				slices.SortFunc(x.picked, later)
			}
			continue
		}
		if last := considered - 1; later(j, x.picked[last]) < 0 {
			at, _ := slices.BinarySearchFunc(x.picked[:last], j, later)
			copy(x.picked[at+1:], x.picked[at:last])
			x.picked[at] = j
		}
	}
	slices.Sort(x.picked)
}

func (x *sampler) planOf(i int) plan {
	c := &x.q.Changes[i]
	p := plan{}
	for b, j := range x.picked {
		p.chance[b] = x.q.Changes[c.Ahead[j].At].Lands
		if c.Ahead[j].Required {
			p.chance[b] = 1
		}
		if a := c.Ahead[j]; a.Required || x.likely(a.At) {
			p.likely |= 1 << b
		}
	}
	for k, b := range c.Builds {
		if m, ok := x.maskOf(c, b.Lands); ok {
			p.builds = append(p.builds, pathBuild{mask: m, left: x.left(i, k)})
		}
	}
	for _, w := range x.of[i] {
		if m, ok := x.maskOf(c, w.Lands); ok && !slices.ContainsFunc(p.builds, func(b pathBuild) bool { return b.mask == m }) {
			p.builds = append(p.builds, pathBuild{mask: m, waits: true})
		}
	}
	if c.Known != nil {
		p.known = map[mask]Outcome{}
	}
	x.findInside(i, &p)
	x.free(c, &p)
	return p
}

// looked bounds how much of what a member has ahead is looked at: where it is more, most meet.
const looked = 64

func (x *sampler) findInside(i int, p *plan) {
	c := &x.q.Changes[i]
	for _, a := range c.Ahead {
		if a.At >= 0 {
			x.behind[a.At] = i + 1
		}
	}
	for b, j := range x.picked {
		ahead := x.q.Changes[c.Ahead[j].At].Ahead
		if !slices.ContainsFunc(ahead[:min(looked, len(ahead))], func(a Ahead) bool { return a.At >= 0 && x.behind[a.At] != i+1 }) {
			p.inside |= 1 << b
		}
	}
}

// maskOf is a path as the considered members see it; ok is false if it does not take the likelier way of another.
func (x *sampler) maskOf(c *Change, lands memberset.Set) (m mask, ok bool) {
	next := 0
	for j, a := range c.Ahead {
		switch {
		case next < len(x.picked) && x.picked[next] == j:
			if lands.Has(j) {
				m |= 1 << next
			}
			next++
		case a.At >= 0 && lands.Has(j) != (a.Required || x.likely(a.At)):
			return 0, false
		}
	}
	return m, true
}

// covered says that a path is known, or that a build of it runs or waits.
func (x *sampler) covered(c *Change, p *plan, m mask) bool {
	return slices.ContainsFunc(p.builds, func(b pathBuild) bool { return b.mask == m }) || x.known(c, p, m) != Open
}

func (x *sampler) known(c *Change, p *plan, m mask) Outcome {
	if c.Known == nil {
		return Open
	}
	known, asked := p.known[m]
	if !asked {
		set, next := memberset.New(len(c.Ahead)), 0
		for j, a := range c.Ahead {
			in := a.At >= 0 && (a.Required || x.likely(a.At))
			if next < len(x.picked) && x.picked[next] == j {
				in = m&(1<<next) != 0
				next++
			}
			if in {
				set.Add(j)
			}
		}
		known = c.Known(set)
		p.known[m] = known
	}
	return known
}

// maxFree bounds the members that a change may pass: it takes 2^n paths.
const maxFree = 4

// free finds the members that nobody waits for, those decided last first.
func (x *sampler) free(c *Change, p *plan) {
	if len(p.builds) < 2 && c.Known == nil {
		return
	}
	order := make([]int, len(x.picked))
	for b := range order {
		order[b] = b
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Compare(x.mean[c.Ahead[x.picked[b]].At], x.mean[c.Ahead[x.picked[a]].At])
	})
	found := 0
	for _, b := range order {
		if c.Ahead[x.picked[b]].Required || found == maxFree {
			continue
		}
		all := true
		eachSubset(p.free|1<<b, func(sub mask) bool {
			all = x.covered(c, p, p.likely&^(p.free|1<<b)|sub)
			return all
		})
		if all {
			p.free |= 1 << b
			found++
		}
	}
}

// eachSubset calls f for the subsets of a mask until it says no.
func eachSubset(of mask, f func(mask) bool) {
	for sub := of; ; sub = (sub - 1) & of {
		if !f(sub) || sub == 0 {
			return
		}
	}
}

// turns are what the plays make of the members of a change.
type turns struct {
	comes []mask
	// ahead is when all of them are decided, or shown to be red, late when those are that nobody passes.
	ahead, late []float64
}

func (x *sampler) turn(c *Change, p *plan) *turns {
	t := &x.turns
	if t.comes == nil {
		*t = turns{make([]mask, x.plays), make([]float64, x.plays), make([]float64, x.plays)}
	}
	clear(t.comes)
	clear(t.ahead)
	clear(t.late)
	for b, j := range x.picked {
		at := c.Ahead[j].At
		decided, shown, passed, inside := x.decided[at], x.shown[at], p.free&(1<<b) != 0, p.inside&(1<<b) != 0
		for s, d := range decided {
			if inside && !x.landsIn(at, s) {
				d = shown[s] // the paths with it are dead from then on
			}
			if d > t.ahead[s] {
				t.ahead[s] = d
			}
			if d > t.late[s] && !passed {
				t.late[s] = d
			}
		}
		for w, word := range x.lands[at] {
			for s := range 64 {
				t.comes[64*w+s] |= mask(word>>s&1) << b
			}
		}
	}
	return t
}

// play is when change i is decided in play s: when the outcome of the path that comes about is known and all that it
// has ahead is decided, or earlier, when the outcomes of all paths are known that the undecided ones leave.
func (x *sampler) play(i, s int, p *plan, turn *turns) float64 {
	comes := turn.comes[s]
	switch x.known(&x.q.Changes[i], p, comes) { // what is known is no matter of luck (M9)
	case Green:
		x.lands[i][s/64] |= 1 << (s % 64)
	case Red:
		x.lands[i][s/64] &^= 1 << (s % 64)
	}
	shown := x.finish(i, s, p, comes)
	x.shown[i][s] = shown
	t := max(turn.ahead[s], shown)
	if p.free == 0 || turn.late[s] >= t {
		return t
	}
	all := turn.late[s]
	eachSubset(p.free, func(sub mask) bool {
		all = max(all, x.finish(i, s, p, comes&^p.free|sub))
		return all < t
	})
	return min(t, all)
}

// finish is when the outcome of a path is known.
func (x *sampler) finish(i, s int, p *plan, m mask) float64 {
	c := &x.q.Changes[i]
	if x.known(c, p, m) != Open {
		return 0
	}
	slot := 0.0
	if x.slot[i] != nil {
		slot = x.slot[i][s]
	}
	for _, b := range p.builds {
		switch {
		case b.mask != m:
		case b.waits:
			return slot + x.takes[i][s]
		default:
			return b.left[s]
		}
	}
	return max(slot, x.worth(s, c, p, m)) + x.takes[i][s]
}

// worth is when a path is worth a build: so many of its members have shown their ways (M9) that it is likely enough (M16), and, beside
// the likeliest, that a later start would cost something.
func (x *sampler) worth(s int, c *Change, p *plan, m mask) float64 {
	type way struct{ shown, chance float64 }
	var ways [considered]way
	chance, n, apart := 1.0, 0, 0.0
	for b, j := range x.picked {
		w := way{x.shown[c.Ahead[j].At][s], p.chance[b]}
		if m&(1<<b) == 0 {
			w.chance = 1 - w.chance
		}
		if (m^p.likely)&(1<<b) != 0 {
			apart = max(apart, w.shown)
		}
		chance *= w.chance
		at := n
		for ; at > 0 && ways[at-1].shown > w.shown; at-- {
			ways[at] = ways[at-1]
		}
		ways[at] = w
		n++
	}
	begin := 0.0
	for k := 0; k < n && (chance < x.q.Threshold || m != p.likely && c.waits(chance, apart, begin)); k++ {
		begin, chance = ways[k].shown, 1
		for _, w := range ways[k+1 : n] {
			chance *= w.chance
		}
	}
	return begin
}

// waits says that a path that comes about with that chance can wait until it is apart from the likeliest.
func (c *Change) waits(chance, apart, now float64) bool {
	late := apart - max(now, c.Free-c.Duration.Mean)
	return c.Urgency > 0 && chance < 0.5 && chance*c.Urgency*max(0, late) < 1
}
