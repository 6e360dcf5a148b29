package ranking

import (
	"cmp"
	"slices"

	"landfall.build/engine/graph"
	"landfall.build/engine/memberset"
	eventsv1 "landfall.build/events/v1"
)

// The likeliest path of a change is worth a slot from the threshold on (M16). Any other path can wait: what decides
// whether it comes about ends sooner or later, and until then a build of it is most likely wasted. It is worth a slot
// once its loss is high enough: P_needed, times how late the change would be if the path were begun only then, times
// how many changes wait for it. The loss that it takes falls with the square of how short of slots the queue is: while
// half of them are free there is nothing better to build (decision 0046).
const (
	// paceUS is the period, in microseconds of log time, in which the pace of all changes is computed. All searches
	// start again then.
	paceUS = 1 << 26
	// evenChance is the probability of being needed from which on a path is begun whatever a late start costs.
	evenChance = 0.5
	// leastLoss is the loss, in typical durations of a build, from which on a path beside the likeliest is worth a
	// slot if all slots are taken.
	leastLoss = 0.3
	// cheapBypass is the part of a build up to which a path for a bypass is begun whatever a late start costs.
	cheapBypass = 0.5
	// never is the time of a result that nobody is working towards. Adding a duration to it cannot overflow.
	never = 1 << 62
	// maxWaiting bounds how many changes are taken to wait for a change.
	maxWaiting = 100
	// maxLoss bounds the loss by a late start, in typical durations of a build: what maxWaiting changes lose by waiting
	// for three of them.
	maxLoss = 3 * maxWaiting
)

// threshold returns the probability of being needed from which on a path is worth a slot (M16). It is τ, or more where
// slots are so scarce that below it even the greatest possible loss is not enough.
func (r *Ranking) threshold() float64 {
	return max(r.graph.Settings.GetThreshold(), r.lossThreshold/maxLoss)
}

// pace is when a change is expected to be decided, in microseconds of log time.
type pace struct {
	// computed reports whether the times below were computed, asOf is when.
	computed bool
	asOf     int64
	// builtAt is when its builds show what becomes of it, aheadDecidedAt when all changes ahead are decided, decidedAt
	// the later one.
	builtAt, decidedAt, aheadDecidedAt int64
}

// updatePaces computes the pace of all changes once in a period, in queue order, and that of a new change at once.
// Searches depend on these times, so they stay the same in between.
func (r *Ranking) updatePaces(p *eventsv1.Profile) {
	if r.leastLoss == 0 {
		return
	}
	if at := p.StampUs/paceUS + 1; at != r.pacePeriod {
		r.pacePeriod, r.typicalUS, r.lossThreshold = at, r.typicalDuration(), r.leastLoss*r.scarcity()*r.scarcity()
		for _, n := range r.graph.Order() {
			c := r.changes[n.Change.Change]
			r.computePace(c)
			if len(c.members) > 0 {
				c.bounded = false
				r.dropSearch(c)
			}
		}
		return
	}
	var fresh []*change
	for _, n := range p.Delta.GetNodes() {
		if c := r.changes[n.Change.GetChange()]; c != nil && c.node != nil && !c.computed {
			fresh = append(fresh, c)
		}
	}
	slices.SortStableFunc(fresh, func(a, b *change) int { return cmp.Compare(a.node.Position, b.node.Position) })
	for _, c := range fresh {
		r.computePace(c)
		r.dropSearch(c)
	}
}

// scarcity returns how short of slots the queue is, 0 to 1. It counts the builds whose path can still come about: 0 while
// they hold at most half of the slots, 1 when they hold all. It is 1 if the number of slots is not known.
func (r *Ranking) scarcity() float64 {
	slots, running := float64(r.graph.Settings.GetWorkers()), 0.0
	if slots == 0 {
		return 1
	}
	for _, x := range r.runsInOrder() { // in an order, as the graph keeps what is looked up on the way
		if c := r.changes[x.change.Change]; c != nil && r.alive(c, x) {
			running++
		}
	}
	return min(1, max(0, 2*running/slots-1))
}

// typicalDuration returns the mean of the expected durations of the pending changes, in microseconds, 0 if none is
// known.
func (r *Ranking) typicalDuration() float64 {
	sum, n := 0.0, 0
	for _, node := range r.graph.Order() {
		if mean := r.predictions[node.Change.Change].GetDurationMeanUs(); mean > 0 {
			sum += mean
			n++
		}
	}
	return sum / float64(max(1, n))
}

// computePace computes the pace of a change: it is decided no sooner than the last of the changes ahead, but for those
// that nobody works on.
func (r *Ranking) computePace(c *change) {
	c.pace = pace{computed: true, asOf: r.now, builtAt: r.estimateBuilt(c)}
	for j := range c.members {
		if of := c.members[j].pending(); of != nil && of.decidedAt < never {
			c.aheadDecidedAt = max(c.aheadDecidedAt, of.decidedAt)
		}
	}
	c.decidedAt = max(c.builtAt, c.aheadDecidedAt)
}

// estimateBuilt returns when the oldest build of a change is expected to end, or, if none runs, one that begins now;
// now if the outcome of its likeliest path is known. A change that is held, not analysed, or blocked by the mainline
// may take any time.
func (r *Ranking) estimateBuilt(c *change) int64 {
	if n := c.node; len(n.Holds) > 0 || !n.Analyzed || n.Path(memberset.New(len(c.members))) == graph.Blocked {
		return never
	}
	if c.oldest == nil {
		set := memberset.New(len(c.members))
		for j := range c.members {
			if m := &c.members[j]; m.ahead.Required || m.of.success >= 0.5 {
				set.Add(j)
			}
		}
		if c.node.Path(set) != graph.Unknown {
			return r.now
		}
	}
	return r.now + int64((c.start+c.duration.Mean)*1e6)
}

// lossPerUS returns what is lost for each microsecond by which a change is late, in typical durations of a build. As
// many changes are taken to wait for it as it has ahead, and the more the longer it takes. It is 0 if no duration is
// known.
func (r *Ranking) lossPerUS(c *change) float64 {
	mean := r.predictions[c.id].GetDurationMeanUs()
	if mean <= 0 {
		return 0
	}
	typical := r.typicalUS
	if typical == 0 {
		typical = mean
	}
	times := mean / typical
	return min(maxWaiting, 1+float64(len(c.members))*times*times) / typical
}

// lateness returns by how much later a change is decided, in microseconds, if a build of it is begun only when the last
// of some members is known.
func (r *Ranking) lateness(c *change, known int64) int64 {
	spare := max(0, c.aheadDecidedAt-c.asOf-int64(r.predictions[c.id].GetDurationMeanUs()))
	return max(0, known-c.asOf-spare)
}

// differsFrom reports whether p decides member j differently from the complete path of.
func (p *partial) differsFrom(of *partial, j int32) bool {
	return j < p.depth && p.rejects(j) != of.rejects(j)
}

// resolvedAt returns when it is known which of two paths comes about, as far as p is decided.
func (c *change) resolvedAt(likeliest, p *partial) (known int64) {
	for _, list := range [2][]int32{likeliest.rejected, p.rejected} {
		for _, j := range list {
			if m := &c.members[j]; c.matters[j] && m.current && p.differsFrom(likeliest, j) {
				known = max(known, m.of.builtAt)
			}
		}
	}
	return known
}

// differingPart returns the part of a change's targets of which two paths need different versions, as far as p is
// decided.
func (c *change) differingPart(likeliest, p *partial) float64 {
	other, all := 0, 0
	for _, k := range c.node.Classes {
		all += len(k.Targets)
		if slices.ContainsFunc(k.Members, func(j uint32) bool { return p.differsFrom(likeliest, int32(j)) }) {
			other += len(k.Targets)
		}
	}
	return float64(other) / float64(max(1, all))
}

// setLikeliest notes the first complete path that a search comes to: the likeliest one, with which the others are compared.
func (r *Ranking) setLikeliest(c *change, s *search, p *partial) {
	s.hasLikeliest, s.likeliest = true, *p
	s.lateLosses = r.lateLossesOf(c, s)
}

// canWait reports whether a complete path beside the likeliest can wait. A path that is as likely as not cannot, nor one that is needed
// for a bypass which costs no more than half a build.
func (r *Ranking) canWait(c *change, s *search, p *partial) bool {
	if s.lateLosses == nil || p.likely >= evenChance || p.needed >= evenChance && c.differingPart(&s.likeliest, p) <= cheapBypass {
		return false
	}
	return p.needed*r.lossUntil(c, c.resolvedAt(&s.likeliest, p)) < r.lossThreshold
}

// lossUntil returns what is lost if a path that is needed is begun only when some of the change's members are known, in
// typical durations of a build.
func (r *Ranking) lossUntil(c *change, known int64) float64 {
	return r.lossPerUS(c) * float64(r.lateness(c, known))
}

// lateLoss bounds the loss if a member does not go the way that it goes on the likeliest path, times the part of the
// bounds that remains then: of needed, and of promise.
type lateLoss struct{ needed, promised float64 }

// lateLossesOf returns, for each member, the greatest lateLoss of it and those behind it, nil if no path of the change
// waits.
func (r *Ranking) lateLossesOf(c *change, s *search) []lateLoss {
	if r.lossThreshold == 0 || r.lossPerUS(c) == 0 {
		return nil
	}
	losses := make([]lateLoss, len(c.members)+1)
	for j := len(c.members) - 1; j >= 0; j-- {
		losses[j] = losses[j+1]
		m, x := &c.members[j], &s.members[j]
		if !c.matters[j] || !m.current {
			continue
		}
		likely, other := m.factor(x.lands), m.factor(x.fails)
		promised, otherwise := x.lands*x.charge, x.fails*x.refund
		if s.likeliest.rejects(int32(j)) {
			likely, other, promised, otherwise = other, likely, otherwise, promised
		}
		lost := r.lossUntil(c, m.of.builtAt)
		if most := max(likely, other); most > 0 {
			losses[j].needed = max(losses[j].needed, lost*other/most)
		}
		if most := max(promised, otherwise); most > 0 {
			losses[j].promised = max(losses[j].promised, lost*otherwise/most)
		}
	}
	return losses
}

// allCanWait reports whether every path that begins like this one can wait.
func (r *Ranking) allCanWait(c *change, s *search, p *partial) bool {
	if s.lateLosses == nil {
		return false
	}
	d := p.depth
	if p.needed*s.rest[d]*slack >= evenChance {
		if p.likely*s.likely[d]*slack >= evenChance || c.differingPart(&s.likeliest, p) <= cheapBypass {
			return false
		}
	}
	if p.neededBound*r.lossUntil(c, c.resolvedAt(&s.likeliest, p))*slack >= r.lossThreshold {
		return false
	}
	most := p.needed * s.rest[d] * s.lateLosses[d].needed
	if !c.funded {
		most = min(most, p.promise*s.promise[d]*s.lateLosses[d].promised)
	}
	return most*slack < r.lossThreshold
}
