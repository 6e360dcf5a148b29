package ranking

import (
	"cmp"
	"slices"

	"landfall.build/engine/graph"
	"landfall.build/engine/profile"
	eventsv1 "landfall.build/events/v1"
)

// change holds what is kept of a change from one ranking to the next, so that an event costs nothing for the changes
// that it does not touch. A change that is named but not pending has no node.
type change struct {
	memberBound `snapshot:"index"`
	pace
	id      string
	node    *graph.Node
	members []member
	// coupled holds the places of the members that influence whether this change lands. The others leave its chances as
	// they are.
	coupled []int32
	// conflictFreeFrom[x] is the probability of no conflict with the coupled members from coupled[x] on. Products begin
	// at the end, so that nothing has to be computed again when the head of the queue leaves.
	conflictFreeFrom []float64
	// visible is what the changes behind last used of this one.
	visible visibleState
	// behind holds the changes that have this one as a member.
	behind []back
	// departed counts the members that have left since the node was written (back.member). nextNode is the node without
	// those that are just leaving, while they are removed.
	departed int         `snapshot:"index"`
	nextNode *graph.Node `snapshot:"index"`
	success  float64
	// conflictFree is the product of 1−r over the members, 0 if one is required. success·conflictFree is q of M8 if all
	// changes ahead land. Without evidence no path gives less.
	conflictFree float64
	// buildable reports whether every class has targets. If not, the change does not merge as things stand.
	buildable bool
	// green reports whether every path is green, whatever becomes of the members.
	green bool
	// matters[j] reports whether member j is in a class with a version that is not known to be green. The other members
	// decide nothing that is still to be built. Unless they influence a later member, only the likelier of their two
	// ways is searched.
	matters []bool

	// start is when its oldest build began, in seconds relative to now, 0 if none runs. duration is the remaining
	// duration (M12).
	start    float64
	duration profile.Duration

	// mostNeeded is the product of the members' weights: no path of the change is needed with more probability.
	// mostLikely is the same for the likelihood; the two differ where a bypass is funded. Both are kept up to date by
	// multiplication, and computed from scratch after maxMultiplications.
	mostNeeded, mostLikely float64
	funded                 bool
	multiplications        int
	turn                   turn `snapshot:"index"`
	pendingAt              int  // in Ranking.pending, -1 if it is not pending
	queuePlace             int  `snapshot:"index"` // in the queue, while estimates are made
	// likelierWay bounds, from above, the probability of the likelier way of the change on any path that has it as a
	// member.
	likelierWay    float64
	marginal       float64 `snapshot:"index"`
	marginalKnown  bool    `snapshot:"index"`
	marginalQueued bool    `snapshot:"index"` // it is in Ranking.staleMarginals
	// watchers are the changes whose searches have used the marginal, watched those whose marginals this search has
	// used.
	watchers map[*change]bool `snapshot:"index"`
	watched  []*change        `snapshot:"index"`
	// lastWatcher is one of the watchers, or nil.
	lastWatcher *change `snapshot:"index"`
	// runs are its prepared builds, in the order in which they began. oldest is the first of them whose path can still
	// come about. unweighed reports whether the change is in Ranking.unweighed.
	runs      []*run
	oldest    *run
	unweighed bool `snapshot:"index"`
	// search is nil if what was kept of it does not hold any more.
	search *search `snapshot:"index"`
}

// member is a member of A(c).
type member struct {
	ahead *eventsv1.Ahead
	of    *change
	// current reports whether the member is pending at the revision that ahead names, sure whether its way is fixed
	// (M5, M5a).
	current, sure bool
	conflict      float64 // r
	// finishesBefore is F(i,j) if the member is bypassable (M13), else 0. fundedBefore is the same if builds for the
	// bypass are funded.
	finishesBefore, fundedBefore float64
	// maxWeight bounds w of M14 from above, whatever becomes of the other members.
	maxWeight float64
	behindAt  int // in of.behind
}

// back is the reference from a change back to one that has it as a member. member is the member's place plus
// change.departed, so that no reference changes when the head of the queue leaves.
type back struct {
	of     *change
	member int `snapshot:"index"`
}

// at returns the place of the member.
func (b back) at() int { return b.member - b.of.departed }

// changeOf returns the change of an id, making it if there is none.
func (r *Ranking) changeOf(id string) *change {
	c := r.changes[id]
	if c == nil {
		c = &change{id: id, pendingAt: -1, success: 1, conflictFree: 1, likelierWay: 1, buildable: true}
		r.changes[id] = c
	}
	return c
}

// deleteIfUnused deletes a change that is not pending, is nobody's member and has no build.
func (r *Ranking) deleteIfUnused(c *change) {
	if c.node == nil && len(c.behind) == 0 && len(c.runs) == 0 {
		delete(r.changes, c.id)
	}
}

// replaceNode installs the new node of a change, nil if it has left.
func (r *Ranking) replaceNode(c *change, n *graph.Node) {
	old := c.members
	for j := range old {
		c.unlink(&old[j])
	}
	if c.node != nil {
		r.dropSearch(c)
	}
	if c.node == nil || n == nil {
		// What has used the marginal has used whether the change is pending.
		r.dropWatchers(c)
		c.marginalKnown, c.pace = false, pace{}
	}
	c.node, c.members, c.departed = n, nil, 0
	for _, b := range c.behind {
		b.of.members[b.at()].updateCurrent()
	}
	if n != nil {
		c.members = make([]member, len(n.Ahead))
		r.link(c, old)
	} else {
		c.findCoupled()
	}
	c.classify()
	for j := range old {
		r.deleteIfUnused(old[j].of)
	}
	r.updatePending(c)
	r.deleteIfUnused(c)
}

// classify finds out what of the change is to be built, and which members matter for it.
func (c *change) classify() {
	c.buildable, c.green, c.matters = true, false, nil
	n := c.node
	if n == nil {
		return
	}
	c.matters = make([]bool, len(n.Ahead))
	whole := len(n.Paths) > 0 || n.Guard != nil // these are about whole paths
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

// green reports whether every version of a class is green. Then no way of a member decides a path's outcome, or leaves
// something of the class to be built.
func green(k graph.Class) bool {
	return k.Settled() && !slices.ContainsFunc(k.Class.Outcomes, func(o *eventsv1.Outcome) bool { return o.State != graph.Green })
}

// link finds the members of a new node. Most of them were the old node's, in the same order.
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
			m.of = r.changeOf(a.Change.Change)
		}
		if p, known := pairs[m.of.id]; known && p.behind == c.node.Change.Revision && p.ahead == a.Change.Revision {
			m.conflict = p.conflict
		}
		m.behindAt = len(m.of.behind)
		m.of.behind = append(m.of.behind, back{c, j})
		m.updateCurrent()
	}
	c.findCoupled()
}

// findCoupled finds the members that influence the change.
func (c *change) findCoupled() {
	c.coupled = c.coupled[:0]
	for j := range c.members {
		if m := &c.members[j]; m.conflict != 0 || m.ahead.Required {
			c.coupled = append(c.coupled, int32(j))
		}
	}
	c.conflictFreeFrom = slices.Grow(c.conflictFreeFrom[:0], len(c.coupled))[:len(c.coupled)]
	c.updateConflictFree(len(c.coupled))
}

// updateConflictFree computes conflictFreeFrom below first, and with it conflictFree.
func (c *change) updateConflictFree(first int) {
	c.conflictFree = 1
	if first < len(c.coupled) {
		c.conflictFree = c.conflictFreeFrom[first]
	}
	for x := first - 1; x >= 0; x-- {
		m := &c.members[c.coupled[x]]
		if c.conflictFree *= 1 - m.conflict; m.ahead.Required {
			c.conflictFree = 0
		}
		c.conflictFreeFrom[x] = c.conflictFree
	}
}

// visibleState is what the changes behind use of a change, but for its marginal and its times. Of a change with
// evidence it never counts as the same: evidence is about paths.
type visibleState struct {
	unproven bool
	revision uint64
	position int64
	held     bool
	success  float64
	coupled  []coupling
}

// coupling is a member that influences a change.
type coupling struct {
	of       *change
	conflict float64
}

// updateVisible sets visible, and reports whether it is as before.
func (c *change) updateVisible() (same bool) {
	now := visibleState{success: c.success, coupled: c.visible.coupled[:0]}
	if c.node == nil || !c.node.Unproven() {
		c.visible = visibleState{}
		return false
	}
	now.unproven, now.revision, now.position, now.held = true, c.node.Change.Revision, c.node.Position, len(c.node.Holds) > 0
	was := &c.visible
	same = was.unproven && was.revision == now.revision && was.position == now.position && was.held == now.held &&
		was.success == now.success && len(was.coupled) == len(c.coupled)
	for i, j := range c.coupled {
		m := &c.members[j]
		x := coupling{m.of, m.conflict} // no member is required: the node would not be unproven
		same = same && was.coupled[i] == x
		now.coupled = append(now.coupled, x)
	}
	c.visible = now
	return same
}

// unlink removes the change from those behind a member. The last one takes its place.
func (c *change) unlink(m *member) {
	of := m.of
	last := len(of.behind) - 1
	moved := of.behind[last]
	of.behind[m.behindAt] = moved
	moved.of.members[moved.at()].behindAt = m.behindAt
	of.behind[last] = back{}
	of.behind = of.behind[:last]
}

// updatePending adds the change to the lists of pending changes, or removes it.
func (r *Ranking) updatePending(c *change) {
	if c.node != nil && c.node.Guard != nil {
		r.guarded[c] = true
	} else {
		delete(r.guarded, c)
	}
	switch {
	case c.node != nil && c.pendingAt < 0:
		c.pendingAt = len(r.pending)
		r.pending = append(r.pending, c)
		r.keys = append(r.keys, 0)
		r.isMerging = append(r.isMerging, false)
	case c.node == nil && c.pendingAt >= 0:
		last := len(r.pending) - 1
		moved := r.pending[last]
		r.pending[c.pendingAt], r.keys[c.pendingAt], moved.pendingAt = moved, r.keys[last], c.pendingAt
		r.pending[last] = nil
		r.pending, r.keys, r.isMerging = r.pending[:last], r.keys[:last], r.isMerging[:last]
		c.pendingAt = -1
	}
}

// pending returns the member's change if it is pending at that revision, else nil.
func (m *member) pending() *change {
	if m.current {
		return m.of
	}
	return nil
}

// updateCurrent sets current.
func (m *member) updateCurrent() {
	m.current = m.of.node != nil && m.of.node.Change.Revision == m.ahead.Change.Revision
}

// ordering returns what builds are ordered by: how likely the path comes about. So a build for a funded bypass gets a
// slot if one is left (M16), but never before a build that is likelier to decide something. By the model it is how
// likely the build is needed.
func (r *Ranking) ordering(needed, likely float64) float64 {
	if r.byModel {
		return needed
	}
	return likely
}

// benefit returns the value of a build of the change that is needed for certain: by the model, or as production has it (M15).
func (r *Ranking) benefit(c *change) float64 {
	if r.byModel {
		return cmp.Or(c.node.Benefit, 1)
	}
	return graph.Benefit(c.node.Node)
}

// changeSet is a set that keeps the order of insertion. How a product of probabilities is rounded depends on the order
// of its factors, and the same input has to give the same bytes.
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
