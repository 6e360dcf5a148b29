// Package graph is the speculation graph as the stages behind the enumerator have it: the fold of the
// deltas that the enumerator wrote, and the questions that all of them ask of it – what is known of a
// path (M25), and which paths are dead (M9). It computes no conflicts and no evidence of its own. The ranking, which
// travels as edits, is folded here as well (EditedRanking): selector, gateway and simulator all read it.
package graph

import (
	"cmp"
	"slices"

	eventsv1 "landfall.build/events/v1"
	"landfall.build/services/memberset"
)

// Graph is the state of one queue.
type Graph struct {
	Settings *eventsv1.QueueSettings
	Mainline *eventsv1.Mainline
	slots    map[string]*slot
	order    []*Node
	// marked is the node whose members' slots were last marked with their places, marks how often that was done.
	marked *Node `snapshot:"-"`
	marks  int   `snapshot:"-"`
	// Check is the pseudo-change that verifies what came past the queue, nil if there is nothing.
	Check *Node
}

// Node is a pending change with its classes indexed.
type Node struct {
	*eventsv1.Node
	// Classes in the order of the event.
	Classes []Class
	paths   map[string]*eventsv1.Outcome
	members []membership
	// shed counts the members that it has lost since the enumerator told it.
	shed int
	// Made when they are first asked for: index is change id → index in Ahead, places are by member.
	index  map[string]int `snapshot:"-"`
	places []placesOf     `snapshot:"-"`
	// fixed: some member must, or must not, land (M5, M5a).
	fixed bool
	// unproven: nothing is known that decides any path, so that all of them are Unknown.
	unproven bool
}

// Class is a class of targets with what is known of its versions.
type Class struct {
	*eventsv1.Class
	outcomes map[string]*eventsv1.Outcome // by set of members
}

// New is a graph of which nothing is known.
func New() *Graph {
	return &Graph{slots: map[string]*slot{}, Mainline: &eventsv1.Mainline{}}
}

// Node gives a pending change's node, nil if it has none.
func (g *Graph) Node(id string) *Node {
	if s := g.slots[id]; s != nil {
		return s.node
	}
	return nil
}

// NodeAt gives the node if it is of exactly that revision.
func (g *Graph) NodeAt(ref *eventsv1.ChangeRef) *Node {
	if n := g.Node(ref.GetChange()); n != nil && n.Change.Revision == ref.GetRevision() {
		return n
	}
	return nil
}

// Order is the pending changes in queue order.
func (g *Graph) Order() []*Node { return g.order }

// Fold takes the enumerator's delta. It gives the nodes that have lost members by it and are not told anew, in queue order; callers
// have to ask for each node anew after a delta, for what it replaces is not to be asked any more.
func (g *Graph) Fold(d *eventsv1.GraphDelta) (shed []*Node) {
	if d == nil {
		return nil
	}
	if d.Settings != nil {
		g.Settings = d.Settings
	}
	if d.Mainline != nil {
		g.Mainline = d.Mainline
	}
	shed, reorder := g.shedAll(d)
	for _, gone := range d.Gone {
		if n := g.NodeAt(gone.Change); n != nil {
			g.put(gone.Change.Change, nil)
			at, found := g.place(n)
			if reorder = reorder || !found; found {
				g.order = slices.Delete(g.order, at, at+1)
			}
		}
	}
	for _, e := range d.Nodes {
		n := newNode(e)
		if n.Mainline {
			g.Check = n
			continue
		}
		old := g.put(n.Change.Change, n)
		switch last := len(g.order) - 1; {
		case reorder:
		case old == nil && (last < 0 || g.order[last].Position < n.Position):
			g.order = append(g.order, n)
		case old != nil && old.Position == n.Position:
			at, found := g.place(old)
			if reorder = !found; found {
				g.order[at] = n
			}
		default:
			reorder = true
		}
	}
	if reorder {
		g.order = g.order[:0]
		for _, s := range g.slots {
			if s.node != nil {
				g.order = append(g.order, s.node)
			}
		}
		slices.SortFunc(g.order, func(a, b *Node) int { return cmp.Compare(a.Position, b.Position) })
	}
	return shed
}

// place is where a node stands in the order.
func (g *Graph) place(n *Node) (at int, found bool) {
	at, found = slices.BinarySearchFunc(g.order, n.Position, func(o *Node, position int64) int { return cmp.Compare(o.Position, position) })
	return at, found && g.order[at] == n
}

func newNode(e *eventsv1.Node) *Node { return indexed(e, slices.ContainsFunc(e.Ahead, fixes)) }

// fixes says that a member must, or must not, land.
func fixes(a *eventsv1.Ahead) bool { return a.MergeConflict || a.Required }

// without is what the node becomes without a member.
func (n *Node) without(at int, landed bool) *Node {
	e := withoutMember(n.Node, at, landed)
	return indexed(e, n.fixed && (!fixes(n.Ahead[at]) || slices.ContainsFunc(e.Ahead, fixes)))
}

func indexed(e *eventsv1.Node, fixed bool) *Node {
	n := &Node{Node: e, Classes: make([]Class, 0, len(e.Classes)), fixed: fixed}
	open, green := false, true
	for _, c := range e.Classes {
		n.Classes = append(n.Classes, Class{c, outcomesBySet(len(c.Members), c.Outcomes)})
		open = open || len(c.Outcomes)+len(c.Through) == 0
		green = green && !slices.ContainsFunc(c.Outcomes, func(o *eventsv1.Outcome) bool { return o.State != Green })
	}
	n.unproven = open && green && !n.fixed && e.MissingRequirement == "" && e.Guard == nil && len(e.Paths) == 0
	n.paths = outcomesBySet(len(e.Ahead), e.Paths)
	return n
}

// outcomesBySet is nil for no outcomes: most classes have none.
func outcomesBySet(members int, outcomes []*eventsv1.Outcome) map[string]*eventsv1.Outcome {
	if len(outcomes) == 0 {
		return nil
	}
	m := make(map[string]*eventsv1.Outcome, len(outcomes))
	for _, o := range outcomes {
		m[memberset.FromBytes(members, o.Members).Key()] = o
	}
	return m
}

// Unproven says that nothing is known that decides any path: all of them are Unknown, and whether the change lands is open
// on each. That is so while some class has no version that is known, and no other one that is anything but green.
func (n *Node) Unproven() bool { return n.unproven }

// IndexOf is the change's place in A(c), -1 if it is no member.
func (n *Node) IndexOf(id string) int {
	if n.index == nil && len(n.Ahead) > 0 {
		n.index = make(map[string]int, len(n.Ahead))
		for i, a := range n.Ahead {
			n.index[a.Change.Change] = i
		}
	}
	if i, ok := n.index[id]; ok {
		return i
	}
	return -1
}

// Held says whether something keeps the change from landing whatever is known of it.
func (g *Graph) Held(n *Node) bool { return len(n.Holds) > 0 || g.Mainline.Paused }

// Restrict gives the part of a path that a class sees.
func (k Class) Restrict(s memberset.Set) memberset.Set {
	r := memberset.New(len(k.Members))
	for i, m := range k.Members {
		if s.Has(int(m)) {
			r.Add(i)
		}
	}
	return r
}

// MakesOn says that the class's version on a path is the one of these members, a memberset's key.
func (k Class) MakesOn(path memberset.Set, members string) bool {
	for i, m := range k.Members {
		if path.Has(int(m)) != (members[i/8]&(1<<(i%8)) != 0) {
			return false
		}
	}
	return true
}

// Outcome is what is known of the class's version with these members, nil if nothing is. Without those through which
// the change affects the class there is none to be known.
func (k Class) Outcome(members memberset.Set) *eventsv1.Outcome {
	if len(k.Through) > 0 && !members.HasAny(k.Through) {
		return greenOutcome
	}
	return memberset.Get(k.outcomes, members)
}

// Settled says that every version of the class is known.
func (k Class) Settled() bool {
	if len(k.Members) > 30 {
		return false // there is no memory for so many
	}
	versions := 1 << len(k.Members)
	if len(k.Through) > 0 {
		versions -= 1 << (len(k.Members) - len(k.Through))
	}
	return len(k.Class.Outcomes) >= versions
}

// on is what is known of the class's version on a path.
func (k Class) on(path memberset.Set) *eventsv1.Outcome {
	if len(k.outcomes)+len(k.Through) == 0 {
		return nil
	}
	return k.Outcome(k.Restrict(path))
}
