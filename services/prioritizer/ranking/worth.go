package ranking

import (
	"math"

	"landfall.build/services/profiler/bypass"
)

// maxReweighed bounds the rounding that change.most gathers: slack makes up for far more.
const maxReweighed = 1 << 12

// leastMost is the least product that is kept up by multiplication: far below it nothing is left to multiply.
const leastMost = 1e-250

// touch follows up that something was said of a change: what is kept of it, and of those behind it, does not
// hold any more.
func (r *Ranking) touch(c *change) {
	c.success = 1
	if p := r.predictions[c.id]; p != nil {
		c.success = p.Success
	}
	c.likeliest = c.likelier()
	r.doubt(c)
	r.weighAll(c)
	same, level := c.look(), c.level()
	r.blur(c)
	for _, b := range c.behind {
		if !same || !level {
			r.blur(b.of)
		}
		if !same {
			r.doubt(b.of) // even where it could do without this one's
			b.of.lookedOut = false
			r.drop(b.of)
		}
		r.reweigh(b.of, b.at())
	}
}

// likelier is at least the probability of the likelier way of the change, on any path. It is rounded up, and one that hardly ever
// lands by what it may have ahead is taken to fail for sure: what it bounds is far behind in the queue, and with each change that
// lands all of these would be another number, and all that is bounded by them.
func (c *change) likelier() float64 {
	if c.node == nil || !c.node.Unproven() {
		return 1
	}
	least := c.success * c.spared // the chances if all lands that it has ahead
	if least < hardly {
		return 1
	}
	return max(c.success, 1-math.Float64frombits(math.Float64bits(least)&^(1<<coarse-1)))
}

// hardly is the chance of landing from which on a change is taken to be able to fail for sure, coarse how many bits of greater ones
// are left off.
const (
	hardly = 1.0 / 128
	coarse = 52 - 3
)

// retime draws anew when a change began and what is left to expect of it. It says whether that is something else now.
func (r *Ranking) retime(c *change) (moved bool) {
	start, duration := c.start, c.duration
	c.start, c.duration = r.timeOf(c)
	return c.start != start || c.duration != duration
}

// timeOf is what is left of a change's work, and when that began, in seconds from now on.
func (r *Ranking) timeOf(c *change) (start float64, d bypass.Duration) {
	q := r.predictions[c.id]
	d = bypass.Duration{Mean: q.GetDurationMeanUs() / 1e6, Std: q.GetDurationStdUs() / 1e6}
	if x := c.oldest; x != nil {
		start = float64(x.since-r.now) / 1e6
		return start, d.Beyond(max(0, -start))
	}
	return 0, d
}

// retimeAll looks at the times of all that was touched, and of what is behind it: whether a path of theirs can still
// come about may be another thing now. What has another time is touched as well.
func (r *Ranking) retimeAll(touched *changeSet) {
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
		if r.findOldest(c); r.retime(c) {
			touched.add(c)
		}
	}
}

// tick moves the clock. What waits keeps its distance to what waits; only what runs comes nearer.
func (r *Ranking) tick(stampUS int64) {
	if seen := stampUS / glance * glance; seen != r.glanced && !r.byModel {
		r.glanced = seen
		for _, x := range r.runsInOrder() {
			if c := r.changes[x.change.Change]; c != nil {
				r.reconsider(c)
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
		if c == nil || !r.retime(c) || !r.funded() {
			continue
		}
		moved.add(c)
		for _, b := range c.behind {
			moved.add(b.of)
		}
	}
	for _, c := range moved.list {
		r.rebypass(c)
	}
}

// funded says that the queue builds for bypasses.
func (r *Ranking) funded() bool {
	return r.graph.Settings != nil && r.graph.Settings.BypassThreshold != nil
}

// rebypass looks again which members are bypassable, after times have moved. What was found out of the change holds as long
// as what is funded stays as it is: most members that are bypassable are not alone in a class, and so not funded.
func (r *Ranking) rebypass(c *change) {
	if c.node == nil {
		return
	}
	before, moved := r.scratch.before[:0], false
	for j := range c.members {
		m := &c.members[j]
		before = append(before, m.before)
		now := r.bypassable(c, m)
		moved = moved || now != m.finishes
		m.finishes = now
	}
	if r.scratch.before = before; !moved {
		return
	}
	was := c.funded
	r.fund(c)
	r.weighMembers(c)
	same := c.funded == was
	for j := range c.members {
		same = same && c.members[j].before == before[j]
	}
	if same {
		r.rekey(c)
	} else {
		r.drop(c)
	}
}

// drop gives up what is kept of a change's search.
func (r *Ranking) drop(c *change) {
	r.unweigh(c)
	for _, of := range c.watched {
		delete(of.watchers, c)
		if of.lastWatcher == c {
			of.lastWatcher = nil
		}
	}
	c.watched = c.watched[:0]
	c.search = nil
	if c.lookedOut && c.slot >= 0 {
		r.keys[c.slot] = c.atMost
		return
	}
	r.rekey(c)
}

// rekey notes the most that a build of the change can be worth, as far as the members by themselves tell.
func (r *Ranking) rekey(c *change) {
	c.lookedOut = false
	if c.slot >= 0 {
		r.keys[c.slot] = r.mostWorth(c, c.most, c.mostLikely)
	}
}

// mostWorth is the most that a build of the change can be worth, negative if none is to be built (M16), where none is needed with
// more than most, and none of its paths is likelier than mostLikely.
func (r *Ranking) mostWorth(c *change, most, mostLikely float64) float64 {
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

// weighAll weighs all members of a change anew.
func (r *Ranking) weighAll(c *change) {
	if c.node == nil {
		c.most, c.mostLikely, c.reweighed, c.lookedOut = 1, 1, 0, false
		return
	}
	for j := range c.members {
		c.members[j].finishes = r.bypassable(c, &c.members[j])
	}
	r.fund(c)
	r.weighMembers(c)
	r.drop(c)
}

// weighMembers weighs the members of a change by what is funded.
func (r *Ranking) weighMembers(c *change) {
	c.most, c.mostLikely, c.reweighed, c.lookedOut = 1, 1, 0, false
	if c.funded {
		for j := range c.members {
			m := &c.members[j]
			m.weight = m.before + (1-m.before)*likeliest(m)
			c.most *= m.weight
		}
		c.mostLikely = c.likeliestOfAll()
	} else {
		for j := range c.members {
			m := &c.members[j]
			m.weight = likeliest(m)
			c.most *= m.weight
		}
		c.mostLikely = c.most
	}
}

// likeliestOfAll is at least the probability of any path of the change.
func (c *change) likeliestOfAll() float64 {
	p := 1.0
	for j := range c.members {
		p *= likeliest(&c.members[j])
	}
	return p
}

// MaxFunded is how many bypassable members of one class are built for both ways. Decision 0019 has the figures.
const MaxFunded = 1

// fund says which of the bypasses that are likely (M13) are funded. None is that would need too many builds: a change is
// decided past members only once every path is green, so of n bypassable members in one class all 2^n versions are needed,
// and a part of them buys nothing. By M14 alone each of the paths would look as needed as if it were the only one.
func (r *Ranking) fund(c *change) {
	c.funded = false
	for j := range c.members {
		m := &c.members[j]
		m.before = m.finishes
		c.funded = c.funded || m.finishes > 0
	}
	if !c.funded {
		return
	}
	most := r.fundedPerClass
	for _, k := range c.node.Classes {
		if len(k.Members) <= most || k.Settled() {
			continue
		}
		n := 0
		for _, m := range k.Members {
			if c.members[m].finishes > 0 {
				n++
			}
		}
		if n <= most {
			continue
		}
		for _, m := range k.Members {
			c.members[m].before = 0
		}
	}
}

// reweigh weighs one member anew.
func (r *Ranking) reweigh(c *change, j int) {
	m := &c.members[j]
	if m.finishes != r.bypassable(c, m) {
		r.weighAll(c)
		return
	}
	now := m.before + (1-m.before)*likeliest(m)
	if now == m.weight && (!c.funded || c.mostLikely == c.likeliestOfAll()) {
		return
	}
	if c.reweighed++; c.funded || c.reweighed > maxReweighed || c.most < leastMost {
		r.weighAll(c)
		return
	}
	c.most *= now / m.weight
	c.mostLikely = c.most
	m.weight = now
	r.rekey(c)
}

// likeliest is at least the probability of the likelier way of a member, on any path.
func likeliest(m *member) float64 {
	if !m.current || m.sure {
		return 1
	}
	return m.of.likeliest
}

// bypassable is F(i,j) if member j is bypassable by c (M13), else 0.
func (r *Ranking) bypassable(c *change, m *member) float64 {
	if !r.funded() || m.ahead.Required {
		return 0
	}
	of := m.at()
	if of != nil && len(of.node.Holds) > 0 {
		return 1 // whoever holds it decides when it finishes; nobody waits for that
	}
	threshold := r.graph.Settings.GetBypassThreshold()
	if threshold >= 0.5 && bypass.FinishesBehind(c.start, c.duration, m.of.start, m.of.duration) {
		return 0 // which is most of them, and much cheaper to see
	}
	if f := bypass.FinishesBefore(c.start, c.duration, m.of.start, m.of.duration); f >= threshold {
		return f
	}
	return 0
}
