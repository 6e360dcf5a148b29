// Package graph holds the speculation graph as the stages behind the enumerator see it. It folds the deltas that the
// enumerator writes, and answers what all of these stages ask: what is known of a path (M25), and which paths are dead (M9).
// It computes no conflicts and no evidence of its own. EditedRanking applies the edits in which the ranking travels, for
// everybody who reads it: selector, gateway and simulator.
package graph

import (
	"cmp"
	"slices"

	"landfall.build/engine/memberset"
	eventsv1 "landfall.build/events/v1"
)

// Graph is the speculation graph of one queue.
type Graph struct {
	Settings *eventsv1.QueueSettings
	Mainline *eventsv1.Mainline
	// Check is the pseudo-change that verifies direct pushes, nil if there is nothing to verify.
	Check *Node
	// Survey is what is left to prove of what the mainline had before the queue (M23b), nil if it was never surveyed.
	Survey  *eventsv1.Survey
	changes map[string]*change // by change
	order   []*Node            // the pending changes, in queue order
	// marks counts the rounds in which changes were marked (change.mark). marked is the node whose members were marked in the last
	// round, each with its place. It is nil if that round served something else.
	marked *Node `snapshot:"-"`
	marks  int   `snapshot:"-"`
}

// Node is a pending change, with indexes over what is known of it. It is never changed: an event that changes the change gives
// it another node.
type Node struct {
	*eventsv1.Node
	// Classes are those of the event, in its order.
	Classes []Class
	paths   map[string]*eventsv1.Outcome // by set of members
	members []membership                 // as Ahead
	// departed counts the members that have left since the enumerator wrote the node (back.member).
	departed int `snapshot:"index"`
	// index holds each member's place in Ahead, places what Places has returned for each member. Both are made when they are first
	// needed.
	index  map[string]int `snapshot:"-"`
	places []memberPlaces `snapshot:"-"`
	// fixed reports whether some member must, or must not, land (M5, M5a).
	fixed bool
	// unproven is what Unproven returns.
	unproven bool
}

// Class is a class of targets with what is known of its versions.
type Class struct {
	*eventsv1.Class
	outcomes map[string]*eventsv1.Outcome // by set of members
}

// New returns the graph of a queue that is empty.
func New() *Graph {
	return &Graph{changes: map[string]*change{}, Mainline: &eventsv1.Mainline{}}
}

// Node returns the node of a pending change, nil for one that is not pending.
func (g *Graph) Node(id string) *Node {
	if s := g.changes[id]; s != nil {
		return s.node
	}
	return nil
}

// NodeAt returns the node of a change that is pending at that revision, else nil.
func (g *Graph) NodeAt(ref *eventsv1.ChangeRef) *Node {
	if n := g.Node(ref.GetChange()); n != nil && n.Change.Revision == ref.GetRevision() {
		return n
	}
	return nil
}

// Order returns the pending changes in queue order. Callers must not change the slice.
func (g *Graph) Order() []*Node { return g.order }

// Fold applies a delta of the enumerator. It returns the nodes that have lost members by it without being written in it, in queue
// order. Nodes from before the delta are not to be used any more.
func (g *Graph) Fold(d *eventsv1.GraphDelta) (shrunk []*Node) {
	if d == nil {
		return nil
	}
	if d.Settings != nil {
		g.Settings = d.Settings
	}
	if d.Mainline != nil {
		g.Mainline = d.Mainline
	}
	if d.Survey != nil {
		g.Survey = d.Survey
	}
	shrunk, reorder := g.removeDeparted(d)
	for _, gone := range d.Gone {
		if n := g.NodeAt(gone.Change); n != nil {
			g.put(gone.Change.Change, nil)
			at, found := g.positionOf(n)
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
			at, found := g.positionOf(old)
			if reorder = !found; found {
				g.order[at] = n
			}
		default:
			reorder = true
		}
	}
	if reorder {
		g.order = g.order[:0]
		for _, s := range g.changes {
			if s.node != nil {
				g.order = append(g.order, s.node)
			}
		}
		slices.SortFunc(g.order, func(a, b *Node) int { return cmp.Compare(a.Position, b.Position) })
	}
	return shrunk
}

// positionOf returns where a node stands in the order.
func (g *Graph) positionOf(n *Node) (at int, found bool) {
	at, found = slices.BinarySearchFunc(g.order, n.Position, func(o *Node, position int64) int { return cmp.Compare(o.Position, position) })
	return at, found && g.order[at] == n
}

func newNode(e *eventsv1.Node) *Node { return indexed(e, slices.ContainsFunc(e.Ahead, isFixed)) }

// isFixed reports whether a member must, or must not, land.
func isFixed(a *eventsv1.Ahead) bool { return a.MergeConflict || a.Required }

// without returns what the node becomes when the member at a place has left.
func (n *Node) without(at int, landed bool) *Node {
	e := withoutMember(n.Node, at, landed)
	return indexed(e, n.fixed && (!isFixed(n.Ahead[at]) || slices.ContainsFunc(e.Ahead, isFixed)))
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

// outcomesBySet indexes outcomes by their sets of members. It returns nil for no outcomes: most classes have none.
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

// Unproven reports whether nothing is known that decides any path: all of them are Unknown, and the change may land or fail on
// each. That holds while some class has no known version and no class has one that is not green.
func (n *Node) Unproven() bool { return n.unproven }

// IndexOf returns the place of a change in A(c), -1 if it is no member.
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

// Held reports whether a hold or a pause keeps the change from landing, whatever is known of it.
func (g *Graph) Held(n *Node) bool { return len(n.Holds) > 0 || g.Mainline.Paused }

// Restrict returns the part of a path that lies in the class: which of the class's members land.
func (k Class) Restrict(s memberset.Set) memberset.Set {
	r := memberset.New(len(k.Members))
	for i, m := range k.Members {
		if s.Has(int(m)) {
			r.Add(i)
		}
	}
	return r
}

// MakesOn reports whether the class's version on a path is the one of these members, given as a memberset's key.
func (k Class) MakesOn(path memberset.Set, members string) bool {
	for i, m := range k.Members {
		if path.Has(int(m)) != (members[i/8]&(1<<(i%8)) != 0) {
			return false
		}
	}
	return true
}

// Outcome returns what is known of the class's version with these members, nil if nothing is. Where the change affects the
// class only through some members, there is nothing to verify without one of them, so that version is green.
func (k Class) Outcome(members memberset.Set) *eventsv1.Outcome {
	if len(k.Through) > 0 && !members.HasAny(k.Through) {
		return greenOutcome
	}
	return memberset.Get(k.outcomes, members)
}

// Settled reports whether every version of the class is known.
func (k Class) Settled() bool {
	if len(k.Members) > 30 {
		return false // so many versions fit in no memory
	}
	versions := 1 << len(k.Members)
	if len(k.Through) > 0 {
		versions -= 1 << (len(k.Members) - len(k.Through))
	}
	return len(k.Class.Outcomes) >= versions
}

// outcomeOn returns what is known of the class's version on a path, nil if nothing is.
func (k Class) outcomeOn(path memberset.Set) *eventsv1.Outcome {
	if len(k.outcomes)+len(k.Through) == 0 {
		return nil
	}
	return k.Outcome(k.Restrict(path))
}
