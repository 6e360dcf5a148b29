package ranking

import (
	"math"
	"slices"

	eventsv1 "landfall.build/events/v1"
	"landfall.build/services/graph"
	"landfall.build/services/profiler/bypass"
)

// change is what is kept of a change from one ranking to the next: an input touches few of many, and what
// it does not touch costs nothing. A change that is named but not pending has no node.
type change struct {
	outlook
	pace
	id      string
	node    *graph.Node
	members []member
	// coupled are the places of the members whose landing bears on whether this change lands: the others leave
	// its chances as they are.
	coupled []int32
	// sparedFrom is, for each place in coupled, what the members from there on spare: a member that the queue's head was leaves what is
	// behind it as it is.
	sparedFrom []float64
	// shown is how it was last seen from behind.
	shown sight
	// behind are the changes that have this one as a member.
	behind []back
	// shed counts the members that it has lost since its node was told; next is the node that it is about to have without them.
	shed    int
	next    *graph.Node
	success float64
	// spared is the product of 1−r over the members, 0 if one is required: success·spared is q of M8 if all
	// that it has ahead lands, and no path gives less, but for evidence.
	spared float64
	// buildable: every class has targets; else it does not merge as things stand.
	buildable bool
	// green: every path is, whatever becomes of the members.
	green bool
	// matters[j]: some class that member j is in has a version that is not known to be green. The other members
	// decide nothing that is still to be built: where they bear on no other either, only the likelier of their two ways
	// is followed.
	matters []bool

	// start is when its oldest build began, in seconds from now on; 0 if none runs. duration is what is
	// left to expect (M12).
	start    float64
	duration bypass.Duration

	// most is the product of the members' weights: nothing of the change is needed with more probability. It is
	// kept up by multiplication, and made anew after maxReweighed times.
	// mostLikely is the same of the members' likelier ways; it is another where a bypass is funded.
	most, mostLikely float64
	funded           bool
	reweighed        int
	turn             turn
	slot             int // in Ranking.pending, -1 if it is not pending
	place            int // in the queue, while estimates are made
	// likeliest is at least the probability of the likelier way of the change, on any path that has it as a member.
	likeliest  float64
	marginal   float64
	marginalOK bool
	doubted    bool // it is in Ranking.doubted
	// watchers are the changes that have used the marginal, watched those whose marginals this one has used.
	watchers map[*change]bool
	watched  []*change
	// lastWatcher, unless nil, is among the watchers.
	lastWatcher *change
	// runs are its prepared builds, oldest the one that began first of those whose path can still come about; unweighed
	// says that it is in Ranking.unweighed.
	runs      []*run
	oldest    *run
	unweighed bool
	// search is nil if what is kept of it does not hold any more.
	search *search
}

// member is a member of A(c).
type member struct {
	ahead *eventsv1.Ahead
	of    *change
	// current says that it is pending at the revision that ahead names, sure that its way is (M5, M5a).
	current, sure bool
	conflict      float64 // r
	// finishes is F(i,j) where the member is bypassable (M13), else 0; before is the same where builds for the
	// bypass are funded.
	finishes, before float64
	// weight is at least w of M14, whatever becomes of the other members.
	weight float64
	slot   int // in of.behind
}

// back says whose member a change is, and which: counted with the members before it that have left since the node was told.
type back struct {
	of     *change
	member int
}

// at is the member's place.
func (b back) at() int { return b.member - b.of.shed }

// named is the change of an id, made if nothing is known of it.
func (r *Ranking) named(id string) *change {
	c := r.changes[id]
	if c == nil {
		c = &change{id: id, slot: -1, success: 1, likeliest: 1}
		r.changes[id] = c
	}
	return c
}

// forget drops a change that neither is pending, nor is anybody's member, nor will be pending at once: a build of it is
// known.
func (r *Ranking) forget(c *change) {
	if c.node == nil && len(c.behind) == 0 && len(c.runs) == 0 {
		delete(r.changes, c.id)
	}
}

// replace takes a change's new node, nil if it has left.
func (r *Ranking) replace(c *change, n *graph.Node) {
	old := c.members
	for j := range old {
		c.unlink(&old[j])
	}
	if c.node != nil {
		r.drop(c)
	}
	if c.node == nil || n == nil {
		// Who has used its marginal has used that it is not pending, or that it is.
		r.unwatch(c)
		c.marginalOK, c.pace = false, pace{}
	}
	c.node, c.members, c.shed = n, nil, 0
	for _, b := range c.behind {
		b.of.members[b.at()].meet()
	}
	if n != nil {
		c.members = make([]member, len(n.Ahead))
		r.link(c, old)
	}
	c.classify()
	for j := range old {
		r.forget(old[j].of)
	}
	r.enlist(c)
	r.forget(c)
}

// classify draws from the classes what is to be built, and which members matter for it.
func (c *change) classify() {
	c.buildable, c.green = true, false
	n := c.node
	if n == nil {
		return
	}
	c.matters = make([]bool, len(n.Ahead))
	whole := len(n.Paths) > 0 || n.Guard != nil // these speak of whole paths
	for j := range c.matters {
		c.matters[j] = whole
	}
	c.green = n.Analyzed && !whole && n.MissingRequirement == "" && !slices.ContainsFunc(c.members, func(m member) bool { return m.sure })
	for _, k := range n.Classes {
		if len(k.Targets) == 0 {
			c.buildable = false
		}
		if green(k) {
			continue
		}
		c.green = false
		for _, m := range k.Members {
			c.matters[m] = true
		}
	}
}

// green says that every version of a class is green: nothing that becomes of its members makes a path's outcome
// known, or leaves something of it to be built.
func green(k graph.Class) bool {
	return k.Settled() && !slices.ContainsFunc(k.Class.Outcomes, func(o *eventsv1.Outcome) bool { return o.State != graph.Green })
}

// link finds the members of a new node; most of them were the old one's, in the same order.
func (r *Ranking) link(c *change, old []member) {
	pairs, at := r.pairs[c.id], 0
	for j, a := range c.node.Ahead {
		m := &c.members[j]
		m.ahead, m.sure = a, a.MergeConflict || a.Required
		for x := at; x < len(old); x++ {
			if old[x].of.id == a.Change.Change {
				m.of, at = old[x].of, x+1
				break
			}
		}
		if m.of == nil {
			m.of = r.named(a.Change.Change)
		}
		if p, known := pairs[m.of.id]; known && p.behind == c.node.Change.Revision && p.ahead == a.Change.Revision {
			m.conflict = p.conflict
		}
		m.slot = len(m.of.behind)
		m.of.behind = append(m.of.behind, back{c, j})
		m.meet()
	}
	c.couple()
}

// couple looks which members bear on the change.
func (c *change) couple() {
	c.coupled = c.coupled[:0]
	for j := range c.members {
		if m := &c.members[j]; m.conflict != 0 || m.ahead.Required {
			c.coupled = append(c.coupled, int32(j))
		}
	}
	c.sparedFrom = slices.Grow(c.sparedFrom[:0], len(c.coupled))[:len(c.coupled)]
	c.spare(len(c.coupled))
}

// spare works out what the first members that bear on the change spare, and with them all.
func (c *change) spare(first int) {
	c.spared = 1
	if first < len(c.coupled) {
		c.spared = c.sparedFrom[first]
	}
	for x := first - 1; x >= 0; x-- {
		m := &c.members[c.coupled[x]]
		if c.spared *= 1 - m.conflict; m.ahead.Required {
			c.spared = 0
		}
		c.sparedFrom[x] = c.spared
	}
}

// sight is all that those behind a change use of it, but for its marginal and its times. One of which something is known is never the
// same again: what is known is of paths.
type sight struct {
	unproven bool
	revision uint64
	position int64
	held     bool
	success  float64
	coupled  []coupling
}

// coupling is a member that bears on a change.
type coupling struct {
	of       *change
	conflict float64
	required bool
}

// look notes how the change is seen from behind now, and says whether that is as before.
func (c *change) look() (same bool) {
	now := sight{success: c.success, coupled: c.shown.coupled[:0]}
	if c.node == nil || !c.node.Unproven() {
		c.shown = sight{}
		return false
	}
	now.unproven, now.revision, now.position, now.held = true, c.node.Change.Revision, c.node.Position, len(c.node.Holds) > 0
	was := &c.shown
	same = was.unproven && was.revision == now.revision && was.position == now.position && was.held == now.held &&
		was.success == now.success && len(was.coupled) == len(c.coupled)
	for i, j := range c.coupled {
		m := &c.members[j]
		x := coupling{m.of, m.conflict, m.ahead.Required}
		same = same && was.coupled[i] == x
		now.coupled = append(now.coupled, x)
	}
	c.shown = now
	return same
}

// unlink takes the change out of what a member knows to be behind it.
func (c *change) unlink(m *member) {
	of := m.of
	last := len(of.behind) - 1
	moved := of.behind[last]
	of.behind[m.slot] = moved
	moved.of.members[moved.at()].slot = m.slot
	of.behind[last] = back{}
	of.behind = of.behind[:last]
}

// enlist keeps the lists of pending changes.
func (r *Ranking) enlist(c *change) {
	if c.node != nil && c.node.Guard != nil {
		r.guarded[c] = true
	} else {
		delete(r.guarded, c)
	}
	switch {
	case c.node != nil && c.slot < 0:
		c.slot = len(r.pending)
		r.pending = append(r.pending, c)
		r.keys = append(r.keys, 0)
		r.entered = append(r.entered, false)
	case c.node == nil && c.slot >= 0:
		last := len(r.pending) - 1
		moved := r.pending[last]
		r.pending[c.slot], r.keys[c.slot], moved.slot = moved, r.keys[last], c.slot
		r.pending[last] = nil
		r.pending, r.keys, r.entered = r.pending[:last], r.keys[:last], r.entered[:last]
		c.slot = -1
	}
}

// at is a member's change if it is pending at that revision, else nil.
func (m *member) at() *change {
	if m.current {
		return m.of
	}
	return nil
}

// meet notes whether a member is the change that is pending now.
func (m *member) meet() {
	m.current = m.of.node != nil && m.of.node.Change.Revision == m.ahead.Change.Revision
}

// ordering is what builds are ordered by: how likely the path comes about. A bypass that is funded makes one worth a worker
// (M16) where there is one left, and never comes before what is likelier to decide something. By the model it is what
// the path is needed with.
func (r *Ranking) ordering(needed, likely float64) float64 {
	if r.byModel {
		return needed
	}
	return likely
}

// benefit is what a build of the change is worth if it is needed for sure (M15). The more there is to be decided before
// the change can be, the later is soon enough: it falls with the square root of that.
func (r *Ranking) benefit(c *change) float64 {
	b := c.node.Benefit
	if b == 0 {
		b = 1
	}
	if r.byModel {
		return b
	}
	return b / math.Sqrt(float64(1+len(c.members)))
}

// changeSet is a set that keeps the order in which changes came to it: how a product of probabilities is rounded
// depends on what was multiplied first, and the same input has to give the same bytes.
type changeSet struct {
	list []*change
	has  map[*change]bool
}

func newChangeSet() *changeSet { return &changeSet{has: map[*change]bool{}} }

func (s *changeSet) add(c *change) {
	if !s.has[c] {
		s.has[c] = true
		s.list = append(s.list, c)
	}
}
