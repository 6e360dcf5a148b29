package ranking

import (
	"cmp"
	"slices"

	eventsv1 "landfall.build/events/v1"
	"landfall.build/services/graph"
	"landfall.build/services/memberset"
)

// A change's likeliest path is worth a worker from the threshold on (M16). Any other is begun when it can no longer wait: what tells
// whether it comes about ends sooner or later, and until then a build of it is most likely wasted. It is worth a worker if P_needed,
// times how late the change would be if the path were begun only then, times how many wait for the change, is enough. What is enough
// falls with the square of how short workers are: while half of them are idle there is nothing better that they could do. Decision 0046 has the figures.
const (
	// paceEvery is how often it is looked when what is pending is decided, in microseconds of the log's own time: all that was searched
	// is searched anew then.
	paceEvery = 1 << 26
	// evenChance is what a path is needed with that is begun whatever a late start costs.
	evenChance = 0.5
	// leastLoss is the loss, in typical durations of a build, from which on a path beside the likeliest is worth a worker if all have one
	// already.
	leastLoss = 0.3
	// cheap is the part of a build that a bypass costs at most if it is begun whatever a late start costs.
	cheap = 0.5
	// never is when what nobody works on is known: far from now, and far from what overflows.
	never = 1 << 62
	// mostWaiting bounds how many are taken to wait for a change.
	mostWaiting = 100
	// mostLost is what is lost by a late start at most, in typical durations of a build: what as many lose that wait three of them.
	mostLost = 3 * mostWaiting
)

// threshold is what a path is needed with at least to be worth a worker (M16): with less than τ it is not, and with less than what makes
// up for the most that can be lost, the likeliest waits as well.
func (r *Ranking) threshold() float64 {
	return max(r.graph.Settings.GetThreshold(), r.bar/mostLost)
}

// pace is when a change is decided, as far as was last looked, in microseconds of the log's own time.
type pace struct {
	// paced says that it was looked at, asOf is when.
	paced bool
	asOf  int64
	// known is when its builds tell what becomes of it, decided when it is decided by that, free when all that it has ahead are.
	known, decided, free int64
}

// keepPace looks when changes are decided: now and then at all of them, in queue order, and at one that is new at once. What is kept
// rests on these times, so they stand still in between.
func (r *Ranking) keepPace(p *eventsv1.Profile) {
	if r.leastLoss == 0 {
		return
	}
	if at := p.StampUs/paceEvery + 1; at != r.paced {
		r.paced, r.typical, r.bar = at, r.typicalDuration(), r.leastLoss*r.scarcity()*r.scarcity()
		for _, n := range r.graph.Order() {
			c := r.changes[n.Change.Change]
			r.paceOf(c)
			if len(c.members) > 0 {
				c.lookedOut = false
				r.drop(c)
			}
		}
		return
	}
	var fresh []*change
	for _, n := range p.Delta.GetNodes() {
		if c := r.changes[n.Change.GetChange()]; c != nil && c.node != nil && !c.paced {
			fresh = append(fresh, c)
		}
	}
	slices.SortStableFunc(fresh, func(a, b *change) int { return cmp.Compare(a.node.Position, b.node.Position) })
	for _, c := range fresh {
		r.paceOf(c)
		r.drop(c)
	}
}

// scarcity is how short of workers the queue is, 0 to 1: what more than half of them have a build whose path can still come about, over
// what is left of them; 1 if nobody says how many there are.
func (r *Ranking) scarcity() float64 {
	workers, running := float64(r.graph.Settings.GetWorkers()), 0.0
	if workers == 0 {
		return 1
	}
	for _, x := range r.runsInOrder() { // what is looked up on the way is kept in that order
		if c := r.changes[x.change.Change]; c != nil && r.alive(c, x) {
			running++
		}
	}
	return min(1, max(0, 2*running/workers-1))
}

// typicalDuration is the mean of what the builds of a pending change are expected to take, in microseconds, 0 if that is known of none.
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

// paceOf looks when a change is decided: no sooner than the last of those that it has ahead, but for what nobody works on.
func (r *Ranking) paceOf(c *change) {
	c.pace = pace{paced: true, asOf: r.now, known: r.knownAt(c)}
	for j := range c.members {
		if of := c.members[j].at(); of != nil && of.decided < never {
			c.free = max(c.free, of.decided)
		}
	}
	c.decided = max(c.known, c.free)
}

// knownAt is when the oldest build of a change is expected to end, or, if none runs, one that begins now; now if its likeliest path
// is known. One that is held, not analysed, or behind a mainline that is red in its targets may be pending for as long as one likes.
func (r *Ranking) knownAt(c *change) int64 {
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

// stakes is what is lost for each microsecond that a change is late, in typical durations of a build: as many are taken to wait for it
// as it has ahead, and as each of these brings its own, the more the longer it takes. It is 0 if nothing is known of durations.
func (r *Ranking) stakes(c *change) float64 {
	mean := r.predictions[c.id].GetDurationMeanUs()
	if mean <= 0 {
		return 0
	}
	typical := r.typical
	if typical == 0 {
		typical = mean
	}
	times := mean / typical
	return min(mostWaiting, 1+float64(len(c.members))*times*times) / typical
}

// lateness is how much later a change is decided, in microseconds, if a build of it is begun only when some of its members are known,
// the last of them then.
func (r *Ranking) lateness(c *change, known int64) int64 {
	spare := max(0, c.free-c.asOf-int64(r.predictions[c.id].GetDurationMeanUs()))
	return max(0, known-c.asOf-spare)
}

// differ says that a member is decided on p, and otherwise than on the complete path of.
func (p *partial) differ(of *partial, j int32) bool {
	return j < p.depth && p.rejects(j) != of.rejects(j)
}

// apart is when it is known which of two paths comes about, as far as p is decided.
func (c *change) apart(likeliest, p *partial) (known int64) {
	for _, list := range [2][]int32{likeliest.rejected, p.rejected} {
		for _, j := range list {
			if m := &c.members[j]; c.matters[j] && m.current && p.differ(likeliest, j) {
				known = max(known, m.of.known)
			}
		}
	}
	return known
}

// share is the part of a change's targets of which two paths ask for other versions, as far as p is decided.
func (c *change) share(likeliest, p *partial) float64 {
	other, all := 0, 0
	for _, k := range c.node.Classes {
		all += len(k.Targets)
		if slices.ContainsFunc(k.Members, func(j uint32) bool { return p.differ(likeliest, int32(j)) }) {
			other += len(k.Targets)
		}
	}
	return float64(other) / float64(max(1, all))
}

// waits says that a complete path can wait. The first that a search comes to is the likeliest: that one never does, nor does one that is
// as likely as not, nor one that is needed for a bypass that costs no more than half a build.
func (r *Ranking) waits(c *change, s *search, p *partial) bool {
	if !s.compares {
		s.compares, s.likeliest = true, *p
		s.lateLosses = r.lateLossesOf(c, s)
		return false
	}
	if s.lateLosses == nil || p.likely >= evenChance || p.needed >= evenChance && c.share(&s.likeliest, p) <= cheap {
		return false
	}
	return p.needed*r.lossBy(c, c.apart(&s.likeliest, p)) < r.bar
}

// lossBy is what is lost if a path of a change that is needed is begun only when some of its members are known, in typical durations
// of a build.
func (r *Ranking) lossBy(c *change, known int64) float64 {
	return r.stakes(c) * float64(r.lateness(c, known))
}

// lateLoss is what is lost at most if one of some members turns out other than on the likeliest path, times the part of the bounds that this
// leaves: of what the path is needed with, and of what it promises.
type lateLoss struct{ needed, promised float64 }

// lateLossesOf says that of the members from each on, nil if no path of the change waits.
func (r *Ranking) lateLossesOf(c *change, s *search) []lateLoss {
	if r.bar == 0 || r.stakes(c) == 0 {
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
		lost := r.lossBy(c, m.of.known)
		if most := max(likely, other); most > 0 {
			losses[j].needed = max(losses[j].needed, lost*other/most)
		}
		if most := max(promised, otherwise); most > 0 {
			losses[j].promised = max(losses[j].promised, lost*otherwise/most)
		}
	}
	return losses
}

// allWait says that every path that begins like this one can wait.
func (r *Ranking) allWait(c *change, s *search, p *partial) bool {
	if s.lateLosses == nil {
		return false
	}
	d := p.depth
	if p.needed*s.rest[d]*slack >= evenChance {
		if p.likely*s.likely[d]*slack >= evenChance || c.share(&s.likeliest, p) <= cheap {
			return false
		}
	}
	if p.most*r.lossBy(c, c.apart(&s.likeliest, p))*slack >= r.bar {
		return false
	}
	most := p.needed * s.rest[d] * s.lateLosses[d].needed
	if !c.funded {
		most = min(most, p.promise*s.promise[d]*s.lateLosses[d].promised)
	}
	return most*slack < r.bar
}
