package ranking

import (
	"math"

	"landfall.build/engine/profile"
	eventsv1 "landfall.build/events/v1"
)

// maxMultiplications bounds the rounding error of change.mostNeeded, far below what slack makes up for.
const maxMultiplications = 1 << 12

// minProduct is the least product that is kept up to date by multiplication. Far below it the product could underflow
// to 0.
const minProduct = 1e-250

// update follows up that an event is about a change: what is kept of it, and of those behind it, does not hold any
// more.
func (r *Ranking) update(c *change) {
	c.success = 1
	if p := r.predictions[c.id]; p != nil {
		c.success = p.Success
	}
	c.likelierWay = c.likelierWayBound()
	r.queueMarginal(c)
	r.reweighAll(c)
	same, level := c.updateVisible(), c.updateFloor()
	r.dropLosses(c)
	for _, b := range c.behind {
		if !same || !level {
			r.dropLosses(b.of)
		}
		if !same {
			r.queueMarginal(b.of) // even if its marginal does not use this one
			b.of.bounded = false
			r.dropSearch(b.of)
		}
		r.reweighMember(b.of, b.at())
	}
}

// likelierWayBound returns the value of likelierWay. It is rounded up, and for a change that hardly ever lands, because
// of the changes ahead, it is 1: such a change is far back in the queue, where each landing would change the number of
// all of them, and all that is bounded by these numbers.
func (c *change) likelierWayBound() float64 {
	if c.node == nil || !c.node.Unproven() {
		return 1
	}
	least := c.success * c.conflictFree // its chances if all changes ahead land
	if least < unlikelyToLand {
		return 1
	}
	return max(c.success, 1-math.Float64frombits(math.Float64bits(least)&^(1<<droppedBits-1)))
}

// unlikelyToLand is the chance of landing below which likelierWay is 1. droppedBits is how many bits of the greater
// ones are rounded away.
const (
	unlikelyToLand = 1.0 / 128
	droppedBits    = 52 - 3
)

// updateTime sets start and duration, and reports whether they have changed.
func (r *Ranking) updateTime(c *change) (moved bool) {
	start, duration := c.start, c.duration
	c.start, c.duration = r.timeOf(c)
	return c.start != start || c.duration != duration
}

// timeOf returns the remaining duration of a change's work, and when that began, in seconds relative to now.
func (r *Ranking) timeOf(c *change) (start float64, d profile.Duration) {
	q := r.predictions[c.id]
	d = profile.Duration{Mean: q.GetDurationMeanUs() / 1e6, Std: q.GetDurationStdUs() / 1e6}
	if x := c.oldest; x != nil {
		start = float64(x.since-r.now) / 1e6
		return start, d.Beyond(max(0, -start))
	}
	return 0, d
}

// updateTimes updates the times of all that was touched, and of those behind that have builds: whether the path of a
// build can still come about may have changed. What has another time is touched as well.
func (r *Ranking) updateTimes(touched *changeSet) {
	affected := newChangeSet()
	for _, c := range touched.list {
		affected.add(c)
		for _, b := range c.behind {
			if len(b.of.runs) > 0 {
				affected.add(b.of)
			}
		}
	}
	for _, c := range affected.list {
		if r.findOldest(c); r.updateTime(c) {
			touched.add(c)
		}
	}
}

// advanceClock moves the clock. Changes without builds keep their distances to each other; only running builds come
// nearer to their end.
func (r *Ranking) advanceClock(stampUS int64) {
	if seen := stampUS / remainingUS * remainingUS; seen != r.remainingAsOf && !r.byModel {
		r.remainingAsOf = seen
		for _, x := range r.runsInOrder() {
			if c := r.changes[x.change.Change]; c != nil {
				r.queueRuns(c)
			}
		}
	}
	now := stampUS / Instant * Instant
	if now == r.now {
		return
	}
	r.now = now
	moved := newChangeSet()
	for _, x := range r.runsInOrder() {
		c := r.changes[x.change.Change]
		if c == nil || !r.updateTime(c) || !r.fundsBypasses() {
			continue
		}
		moved.add(c)
		for _, b := range c.behind {
			moved.add(b.of)
		}
	}
	for _, c := range moved.list {
		r.updateBypasses(c)
	}
}

// fundsBypasses reports whether the queue builds for bypasses.
func (r *Ranking) fundsBypasses() bool {
	return r.graph.Settings != nil && r.graph.Settings.BypassThreshold != nil
}

// updateBypasses finds again which members are bypassable, after times have changed. The search of the change holds as
// long as the funded bypasses stay the same. Mostly they do: most bypassable members are not alone in a class, and so
// not funded.
func (r *Ranking) updateBypasses(c *change) {
	if c.node == nil {
		return
	}
	before, moved := r.scratch.before[:0], false
	for j := range c.members {
		m := &c.members[j]
		before = append(before, m.fundedBefore)
		now := r.bypassable(c, m)
		moved = moved || now != m.finishesBefore
		m.finishesBefore = now
	}
	if r.scratch.before = before; !moved {
		return
	}
	was := c.funded
	r.fundBypasses(c)
	r.weighMembers(c)
	same := c.funded == was
	for j := range c.members {
		same = same && c.members[j].fundedBefore == before[j]
	}
	if same {
		r.updateKey(c)
	} else {
		r.dropSearch(c)
	}
}

// dropSearch drops what is kept of a change's search.
func (r *Ranking) dropSearch(c *change) {
	r.unweighRuns(c)
	for _, of := range c.watched {
		delete(of.watchers, c)
		if of.lastWatcher == c {
			of.lastWatcher = nil
		}
	}
	c.watched = c.watched[:0]
	c.search = nil
	if c.bounded && c.pendingAt >= 0 {
		r.keys[c.pendingAt] = c.worthAtMost
		return
	}
	r.updateKey(c)
}

// updateKey sets the key of a change by the bounds of its members alone.
func (r *Ranking) updateKey(c *change) {
	c.bounded = false
	if c.pendingAt >= 0 {
		r.keys[c.pendingAt] = r.worthBound(c, c.mostNeeded, c.mostLikely)
	}
}

// worthBound returns a bound of what a build of the change can be worth if none is needed with more than most and no
// path is likelier than mostLikely. It is negative if none is to be built (M16).
func (r *Ranking) worthBound(c *change, most, mostLikely float64) float64 {
	n := c.node
	switch {
	case !n.Analyzed || n.Intended || n.MissingRequirement != "" || !c.buildable || c.green:
		return -1
	case len(c.members) == 0:
		return r.benefit(c)
	case most*slack < r.threshold():
		return -1
	}
	return r.benefit(c) * r.ordering(most, mostLikely) * slack
}

// reweighAll computes the weights of all members from scratch.
func (r *Ranking) reweighAll(c *change) {
	if c.node == nil {
		c.mostNeeded, c.mostLikely, c.multiplications, c.funded, c.bounded = 1, 1, 0, false, false
		return
	}
	for j := range c.members {
		c.members[j].finishesBefore = r.bypassable(c, &c.members[j])
	}
	r.fundBypasses(c)
	r.weighMembers(c)
	r.dropSearch(c)
}

// weighMembers computes the weights of the members by the bypasses that are funded.
func (r *Ranking) weighMembers(c *change) {
	c.mostNeeded, c.mostLikely, c.multiplications, c.bounded = 1, 1, 0, false
	if c.funded {
		for j := range c.members {
			m := &c.members[j]
			m.maxWeight = m.fundedBefore + (1-m.fundedBefore)*likelierWayOf(m)
			c.mostNeeded *= m.maxWeight
		}
		c.mostLikely = c.likeliestPathBound()
	} else {
		for j := range c.members {
			m := &c.members[j]
			m.maxWeight = likelierWayOf(m)
			c.mostNeeded *= m.maxWeight
		}
		c.mostLikely = c.mostNeeded
	}
}

// likeliestPathBound bounds the probability of any path of the change.
func (c *change) likeliestPathBound() float64 {
	p := 1.0
	for j := range c.members {
		p *= likelierWayOf(&c.members[j])
	}
	return p
}

// MaxFunded returns how many bypassable members of one class get builds for both of their ways (decisions 0019, 0114).
func MaxFunded(s *eventsv1.QueueSettings) int {
	if s.GetPoolWorkers() > 0 {
		return 2
	}
	return 1
}

// fundBypasses chooses the bypasses that are funded, of those that are likely (M13). None is that would need too many
// builds: a change bypasses members only once all of its paths are green, so n bypassable members in one class take all
// 2^n versions, and a part of them gains nothing. By M14 alone each of these paths would look as needed as if it were
// the only one.
func (r *Ranking) fundBypasses(c *change) {
	c.funded = false
	for j := range c.members {
		m := &c.members[j]
		m.fundedBefore = m.finishesBefore
		c.funded = c.funded || m.finishesBefore > 0
	}
	if !c.funded {
		return
	}
	most := MaxFunded(r.graph.Settings)
	if r.byModel {
		most = math.MaxInt
	}
	for _, k := range c.node.Classes {
		if len(k.Members) <= most || k.Settled() {
			continue
		}
		n := 0
		for _, m := range k.Members {
			if c.members[m].finishesBefore > 0 {
				n++
			}
		}
		if n <= most {
			continue
		}
		for _, m := range k.Members {
			c.members[m].fundedBefore = 0
		}
	}
}

// reweighMember computes the weight of one member again.
func (r *Ranking) reweighMember(c *change, j int) {
	m := &c.members[j]
	if m.finishesBefore != r.bypassable(c, m) {
		r.reweighAll(c)
		return
	}
	now := m.fundedBefore + (1-m.fundedBefore)*likelierWayOf(m)
	if now == m.maxWeight && (!c.funded || c.mostLikely == c.likeliestPathBound()) {
		return
	}
	if c.multiplications++; c.funded || c.multiplications > maxMultiplications || c.mostNeeded < minProduct {
		r.reweighAll(c)
		return
	}
	c.mostNeeded *= now / m.maxWeight
	c.mostLikely = c.mostNeeded
	m.maxWeight = now
	r.updateKey(c)
}

// likelierWayOf bounds the probability of the likelier way of a member, on any path.
func likelierWayOf(m *member) float64 {
	if !m.current || m.sure {
		return 1
	}
	return m.of.likelierWay
}

// bypassable returns F(i,j) if member j is bypassable by c (M13), else 0.
func (r *Ranking) bypassable(c *change, m *member) float64 {
	if !r.fundsBypasses() || m.ahead.Required {
		return 0
	}
	of := m.pending()
	if of != nil && len(of.node.Holds) > 0 {
		return 1 // a hold may last as long as it likes, so nothing waits for it
	}
	threshold := r.graph.Settings.GetBypassThreshold()
	if threshold >= 0.5 && profile.FinishesAfter(c.start, c.duration, m.of.start, m.of.duration) {
		return 0 // most of them, and much cheaper to compute
	}
	if f := profile.FinishesBefore(c.start, c.duration, m.of.start, m.of.duration); f >= threshold {
		return f
	}
	return 0
}
