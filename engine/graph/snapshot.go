package graph

import (
	"fmt"
	"slices"

	"landfall.build/engine/snapshotv1"
	eventsv1 "landfall.build/events/v1"
)

// Snapshot returns the graph as a message. It shares the nodes, which nobody changes.
func (g *Graph) Snapshot() *snapshotv1.Graph {
	m := &snapshotv1.Graph{Settings: g.Settings, Mainline: g.Mainline, Nodes: make([]*eventsv1.Node, len(g.order)), Survey: g.Survey}
	for i, n := range g.order {
		m.Nodes[i] = n.Node
	}
	if g.Check != nil {
		m.Check = g.Check.Node
	}
	return m
}

// Restore returns the graph that a message was made of. Everything but the nodes follows from them.
func Restore(m *snapshotv1.Graph) (*Graph, error) {
	g := New()
	g.Settings, g.Survey = m.GetSettings(), m.GetSurvey()
	if m.GetMainline() != nil {
		g.Mainline = m.Mainline
	}
	for _, e := range m.GetNodes() {
		if err := check(e); err != nil {
			return nil, err
		}
		if g.Node(e.Change.Change) != nil {
			return nil, fmt.Errorf("the change %s has two nodes", e.Change.Change)
		}
		n := newNode(e)
		g.put(e.Change.Change, n)
		g.order = append(g.order, n)
	}
	if m.GetCheck() != nil {
		if err := check(m.Check); err != nil {
			return nil, err
		}
		g.Check = newNode(m.Check)
	}
	return g, nil
}

// check returns an error for a node whose parts do not fit each other.
func check(e *eventsv1.Node) error {
	if e.Change == nil || slices.ContainsFunc(e.Ahead, func(a *eventsv1.Ahead) bool { return a.Change == nil }) {
		return fmt.Errorf("a node, or a member of one, has no change: %v", e.Change)
	}
	outside := func(n int) func(uint32) bool { return func(i uint32) bool { return int(i) >= n } }
	for _, k := range e.Classes {
		if slices.ContainsFunc(k.Members, outside(len(e.Ahead))) || slices.ContainsFunc(k.Through, outside(len(k.Members))) || len(k.Through) > len(k.Members) {
			return fmt.Errorf("a class of %s has members %v, through %v, of %d", e.Change.Change, k.Members, k.Through, len(e.Ahead))
		}
	}
	return nil
}
