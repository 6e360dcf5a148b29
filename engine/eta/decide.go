package eta

import (
	"cmp"
	"math"
	"slices"

	"landfall.build/engine/memberset"
)

// mask is a set of considered members: bit b is picked[b]. As a path it has those that land.
type mask uint32

// plan is what there is, and will be, of a change's builds, by the ways of its considered members.
type plan struct {
	// likely is the path on which each member goes its likelier way.
	likely mask
	// builds are the running and the waiting builds.
	builds []pathBuild
	// known holds what Change.Known has returned.
	known map[mask]Outcome
	// free are members that the change does not wait for: on both of their ways every path has an outcome or a build.
	free mask
	// inside are members that have nothing ahead but what the change has ahead: what a build shows of them is evidence
	// for the change (M9).
	inside mask
	// chance is how likely each considered member lands.
	chance [considered]float64
}

// pathBuild is a build of a path: it runs, or waits for a slot.
type pathBuild struct {
	mask      mask
	waits     bool
	remaining []float64 // by sample, of a running build
}

// decide simulates change i, after those before it.
func (x *sampler) decide(i int) {
	c := &x.q.Changes[i]
	x.unknown[i] = c.Unknown
	x.pick(c)
	p := x.planOf(i)
	for b, j := range x.picked {
		if x.unknown[c.Ahead[j].At] != "" && p.free&(1<<b) == 0 && x.unknown[i] == "" {
			x.unknown[i] = WaitsForUnknown
		}
	}
	if x.unknown[i] != "" {
		x.setNever(i)
		return
	}
	sum, fates := 0.0, x.fatesOf(c, &p)
	for s := range x.samples {
		t := x.decidedAt(i, s, &p, fates)
		x.decided[i][s] = t
		sum += t
	}
	if x.mean[i] = sum / float64(x.samples); math.IsInf(x.mean[i], 1) {
		x.unknown[i] = WaitsForUnknown // in some samples at least
		x.setNever(i)
	}
}

// setNever notes that a change is decided in no sample.
func (x *sampler) setNever(i int) {
	x.mean[i] = math.Inf(1)
	for s := range x.samples {
		x.decided[i][s], x.outcomeAt[i][s] = math.Inf(1), math.Inf(1)
	}
}

// pick chooses the members that are considered: those expected to be decided last. picked has them in queue order.
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

// planOf returns the plan of change i, whose considered members are picked.
func (x *sampler) planOf(i int) plan {
	c := &x.q.Changes[i]
	p := plan{}
	for b, j := range x.picked {
		p.chance[b] = x.q.Changes[c.Ahead[j].At].Lands
		if c.Ahead[j].Required {
			p.chance[b] = 1
		}
		if a := c.Ahead[j]; a.Required || x.isLikely(a.At) {
			p.likely |= 1 << b
		}
	}
	for k, b := range c.Builds {
		if m, ok := x.maskOf(c, b.Lands); ok {
			p.builds = append(p.builds, pathBuild{mask: m, remaining: x.remainingOf(i, k)})
		}
	}
	for _, w := range x.waiting[i] {
		if m, ok := x.maskOf(c, w.Lands); ok && !slices.ContainsFunc(p.builds, func(b pathBuild) bool { return b.mask == m }) {
			p.builds = append(p.builds, pathBuild{mask: m, waits: true})
		}
	}
	if c.Known != nil {
		p.known = map[mask]Outcome{}
	}
	x.findInside(i, &p)
	x.findFree(c, &p)
	return p
}

// maxVisited bounds how many changes ahead of a member are compared: with more, most are ahead of the change too.
const maxVisited = 64

// findInside sets plan.inside.
func (x *sampler) findInside(i int, p *plan) {
	c := &x.q.Changes[i]
	for _, a := range c.Ahead {
		if a.At >= 0 {
			x.aheadOf[a.At] = i + 1
		}
	}
	for b, j := range x.picked {
		ahead := x.q.Changes[c.Ahead[j].At].Ahead
		if !slices.ContainsFunc(ahead[:min(maxVisited, len(ahead))], func(a Ahead) bool { return a.At >= 0 && x.aheadOf[a.At] != i+1 }) {
			p.inside |= 1 << b
		}
	}
}

// maskOf returns a path as a mask. ok is false if the path does not take the likelier way of a member that is not
// considered.
func (x *sampler) maskOf(c *Change, lands memberset.Set) (m mask, ok bool) {
	next := 0
	for j, a := range c.Ahead {
		switch {
		case next < len(x.picked) && x.picked[next] == j:
			if lands.Has(j) {
				m |= 1 << next
			}
			next++
		case a.At >= 0 && lands.Has(j) != (a.Required || x.isLikely(a.At)):
			return 0, false
		}
	}
	return m, true
}

// covered reports whether a path has an outcome, or a build that runs or waits.
func (x *sampler) covered(c *Change, p *plan, m mask) bool {
	return slices.ContainsFunc(p.builds, func(b pathBuild) bool { return b.mask == m }) || x.known(c, p, m) != Open
}

// known returns the outcome of a path by the evidence.
func (x *sampler) known(c *Change, p *plan, m mask) Outcome {
	if c.Known == nil {
		return Open
	}
	known, asked := p.known[m]
	if !asked {
		set, next := memberset.New(len(c.Ahead)), 0
		for j, a := range c.Ahead {
			in := a.At >= 0 && (a.Required || x.isLikely(a.At))
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

// findFree finds the members that the change does not wait for, trying those decided last first.
func (x *sampler) findFree(c *Change, p *plan) {
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

// eachSubset calls f for each subset of a mask until it returns false.
func eachSubset(of mask, f func(mask) bool) {
	for sub := of; ; sub = (sub - 1) & of {
		if !f(sub) || sub == 0 {
			return
		}
	}
}

// memberFates holds what becomes of the considered members of a change, by sample.
type memberFates struct {
	path []mask
	// allAt is when all of them are decided, or shown to be red; waitedAt is the same without those that the change
	// does not wait for.
	allAt, waitedAt []float64
}

// fatesOf returns what becomes of the considered members.
func (x *sampler) fatesOf(c *Change, p *plan) *memberFates {
	t := &x.fates
	if t.path == nil {
		*t = memberFates{make([]mask, x.samples), make([]float64, x.samples), make([]float64, x.samples)}
	}
	clear(t.path)
	clear(t.allAt)
	clear(t.waitedAt)
	for b, j := range x.picked {
		at := c.Ahead[j].At
		decided, shown, passed, inside := x.decided[at], x.outcomeAt[at], p.free&(1<<b) != 0, p.inside&(1<<b) != 0
		for s, d := range decided {
			if inside && !x.landsIn(at, s) {
				d = shown[s] // the paths with it are dead from then on
			}
			if d > t.allAt[s] {
				t.allAt[s] = d
			}
			if d > t.waitedAt[s] && !passed {
				t.waitedAt[s] = d
			}
		}
		for w, word := range x.lands[at] {
			for s := range 64 {
				t.path[64*w+s] |= mask(word>>s&1) << b
			}
		}
	}
	return t
}

// decidedAt returns when change i is decided in sample s: when the outcome of the path that comes about is known and
// all changes ahead are decided, or earlier, when the outcomes of all paths that the undecided ones leave are known, and are the same.
// A path that nothing is known of counts as having the outcome that is drawn for the change.
func (x *sampler) decidedAt(i, s int, p *plan, fates *memberFates) float64 {
	comes := fates.path[s]
	switch x.known(&x.q.Changes[i], p, comes) { // evidence overrides what was drawn (M9)
	case Green:
		x.lands[i][s/64] |= 1 << (s % 64)
	case Red:
		x.lands[i][s/64] &^= 1 << (s % 64)
	}
	shown := x.outcomeTime(i, s, p, comes)
	x.outcomeAt[i][s] = shown
	t := max(fates.allAt[s], shown)
	if p.free == 0 || fates.waitedAt[s] >= t {
		return t
	}
	all, lands, same := fates.waitedAt[s], Red, true
	if x.landsIn(i, s) {
		lands = Green
	}
	eachSubset(p.free, func(sub mask) bool {
		m := comes&^p.free | sub
		if known := x.known(&x.q.Changes[i], p, m); known != Open {
			same = known == lands
			return same
		}
		all = max(all, x.openTime(i, s, p, m))
		return all < t
	})
	if !same {
		return t // which of them comes about decides it
	}
	return min(t, all)
}

// outcomeTime returns when the outcome of a path is known.
func (x *sampler) outcomeTime(i, s int, p *plan, m mask) float64 {
	if x.known(&x.q.Changes[i], p, m) != Open {
		return 0
	}
	return x.openTime(i, s, p, m)
}

// openTime is outcomeTime for a path whose outcome is not known yet.
func (x *sampler) openTime(i, s int, p *plan, m mask) float64 {
	c, slot := &x.q.Changes[i], 0.0
	if x.slotFree[i] != nil {
		slot = x.slotFree[i][s]
	}
	for _, b := range p.builds {
		switch {
		case b.mask != m:
		case b.waits:
			return slot + x.durations[i][s]
		default:
			return b.remaining[s]
		}
	}
	if x.q.Workers > 0 && m != p.likely {
		slot = 0 // of the likeliest; this one is needed more than most once it begins
	}
	return max(slot, x.beginTime(s, c, p, m)) + x.durations[i][s]
}

// beginTime returns when a path is worth a build: when so many of its members have shown their ways (M9) that it is
// likely enough (M16), and, for a path beside the likeliest, that a later start would cost something.
func (x *sampler) beginTime(s int, c *Change, p *plan, m mask) float64 {
	type way struct{ shown, chance float64 }
	var ways [considered]way
	chance, n, apart := 1.0, 0, 0.0
	for b, j := range x.picked {
		w := way{x.outcomeAt[c.Ahead[j].At][s], p.chance[b]}
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

// waits reports whether a path that comes about with some chance can wait until its members have decided between it and
// the likeliest, which is at apart.
func (c *Change) waits(chance, apart, now float64) bool {
	late := apart - max(now, c.Free-c.Duration.Mean)
	return c.Urgency > 0 && chance < 0.5 && chance*c.Urgency*max(0, late) < 1
}
