// Package graph is the speculation graph as the stages behind the enumerator have it: the fold of the
// deltas that the enumerator wrote, and the questions that all of them ask of it – what is known of a
// path (M25), and which paths are dead (M9). It computes no conflicts and no evidence of its own.
package graph

import (
	"sort"

	eventsv1 "landfall.build/events/v1"
	"landfall.build/services/memberset"
)

// Graph is the state of one queue.
type Graph struct {
	Settings *eventsv1.QueueSettings
	Mainline *eventsv1.Mainline
	nodes    map[string]*Node
	order    []*Node
	// Check is the pseudo-change that verifies what came past the queue, nil if there is nothing.
	Check *Node
}

// Node is a pending change with its classes indexed.
type Node struct {
	*eventsv1.Node
	// Classes in the order of the event.
	Classes []Class
	paths   map[string]*eventsv1.Outcome
	index   map[string]int // change id → index in Ahead
}

// Class is a class of targets with what is known of its versions.
type Class struct {
	*eventsv1.Class
	outcomes map[string]*eventsv1.Outcome // by set of members
}

// New is a graph of which nothing is known.
func New() *Graph {
	return &Graph{nodes: map[string]*Node{}, Mainline: &eventsv1.Mainline{}}
}

// Node gives a pending change's node, nil if it has none.
func (g *Graph) Node(id string) *Node { return g.nodes[id] }

// NodeAt gives the node if it is of exactly that revision.
func (g *Graph) NodeAt(ref *eventsv1.ChangeRef) *Node {
	if n := g.nodes[ref.GetChange()]; n != nil && n.Change.Revision == ref.GetRevision() {
		return n
	}
	return nil
}

// Order is the pending changes in queue order.
func (g *Graph) Order() []*Node { return g.order }

// Fold takes the enumerator's delta.
func (g *Graph) Fold(d *eventsv1.GraphDelta) {
	if d == nil {
		return
	}
	if d.Settings != nil {
		g.Settings = d.Settings
	}
	if d.Mainline != nil {
		g.Mainline = d.Mainline
	}
	reorder := false
	for _, gone := range d.Gone {
		if g.NodeAt(gone.Change) != nil {
			delete(g.nodes, gone.Change.Change)
			reorder = true
		}
	}
	for _, n := range d.Nodes {
		if n.Mainline {
			g.Check = newNode(n)
			continue
		}
		g.nodes[n.Change.Change] = newNode(n)
		reorder = true
	}
	if reorder {
		g.order = g.order[:0]
		for _, n := range g.nodes {
			g.order = append(g.order, n)
		}
		sort.Slice(g.order, func(i, j int) bool { return g.order[i].Position < g.order[j].Position })
	}
}

func newNode(e *eventsv1.Node) *Node {
	n := &Node{Node: e, paths: map[string]*eventsv1.Outcome{}, index: map[string]int{}}
	for i, a := range e.Ahead {
		n.index[a.Change.Change] = i
	}
	for _, c := range e.Classes {
		k := Class{c, map[string]*eventsv1.Outcome{}}
		for _, o := range c.Outcomes {
			k.outcomes[memberset.FromBytes(len(c.Members), o.Members).Key()] = o
		}
		n.Classes = append(n.Classes, k)
	}
	for _, o := range e.Paths {
		n.paths[memberset.FromBytes(len(e.Ahead), o.Members).Key()] = o
	}
	return n
}

// IndexOf is the change's place in A(c), -1 if it is no member.
func (n *Node) IndexOf(id string) int {
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

// Outcome is what is known of the class's version with these members, nil if nothing is.
func (k Class) Outcome(members memberset.Set) *eventsv1.Outcome { return k.outcomes[members.Key()] }
