package targets

import (
	"slices"
	"sort"
)

// Why is the reason why two changes conflict. The zero value is that of two that
// do not.
type Why struct {
	// Targets are those that both changes add, alter or delete, sorted, but for
	// Hubs, in which a queue's changes may meet.
	Targets, Hubs []string
	// Edge labels something that one change makes a target depend on while the
	// other changes it; empty if there is no such thing. EdgeBy is 1 when the
	// first change adds the edge, 2 when the second does, else 0.
	Edge   string
	EdgeBy int
	// All is set if the targets of one of the changes are not known (M4).
	All bool
}

// Conflict reports whether it is a conflict. Changes that meet in hubs only do not conflict.
func (w Why) Conflict() bool { return w.All || len(w.Targets) > 0 || w.Edge != "" }

// Footprint is what M1 compares of a change, in lists that are sorted and free of
// repetitions. It shares memory with the analysis.
type Footprint struct {
	// Touched is D. Leaves are the other nodes that the change touches.
	Touched, Leaves []string
	// Added is N.
	Added []string
	All   bool
}

// Footprint returns what M1 compares of the analysis.
func (a Analysis) Footprint() Footprint {
	return Footprint{Touched: a.Touched(), Leaves: inOrder(a.Leaves), Added: inOrder(a.Added), All: a.All}
}

// Meets is M1: two changes conflict when they touch a common target, or when one
// adds a dependency on what the other touches. Two changes to one file that no
// target has do not conflict. It goes by the hubs of a queue (nil for none). An edge
// into a hub, or from one into what the other change touches, is an edge: what
// both affect may then be more than the hub.
//
// A cycle in the union of the edges (M2) needs no test of its own. One that takes
// edges of both: going back from an edge that b adds, every node is touched by b,
// until an edge comes that only a adds; its end is in N(a)∩D(b). One that a makes
// with edges of the mainline alone is in a's own graph, or a took such an edge
// away, and is nothing to b.
func (f Footprint) Meets(g Footprint, hubs *Hubs) Why {
	why := Why{All: f.All || g.All}
	common(f.Touched, g.Touched, func(name string) bool {
		why.Targets = append(why.Targets, name)
		return true
	})
	why.Targets, why.Hubs = hubs.split(why.Targets)
	why.edge(1, f.Added, g.Touched, g.Leaves)
	why.edge(2, g.Added, f.Touched, f.Leaves)
	return why
}

// Conflicts reports whether Meets finds a conflict without hubs, at the first that there is.
func (f Footprint) Conflicts(g Footprint) bool {
	found := f.All || g.All
	for _, p := range [][2][]string{{f.Touched, g.Touched}, {f.Added, g.Touched}, {f.Added, g.Leaves}, {g.Added, f.Touched}, {g.Added, f.Leaves}} {
		if found {
			break
		}
		common(p[0], p[1], func(string) bool {
			found = true
			return false
		})
	}
	return found
}

// LeadsInto reports whether f adds an edge into what g touches: on top of f, g touches more than it does alone.
func (f Footprint) LeadsInto(g Footprint) bool {
	var w Why
	w.edge(1, f.Added, g.Touched, g.Leaves)
	return w.Edge != ""
}

// edge looks for the end of an added edge in what the other change touches,
// unless one was found.
func (w *Why) edge(by int, added, touched, leaves []string) {
	for _, changed := range [][]string{touched, leaves} {
		if w.Edge != "" {
			return
		}
		common(added, changed, func(label string) bool {
			w.Edge, w.EdgeBy = label, by
			return false
		})
	}
}

// common visits what two sorted lists share, in order, until visit returns false. Each
// element of the shorter list is searched in the longer one.
func common(x, y []string, visit func(string) bool) {
	if len(x) > len(y) {
		x, y = y, x
	}
	for _, name := range x {
		i := gallop(y, name)
		y = y[i:]
		if len(y) == 0 {
			return
		}
		if y[0] == name && !visit(name) {
			return
		}
	}
}

// inOrder makes sure of the order: an analysis that was read from elsewhere and
// is not sorted must not make two changes look independent.
func inOrder(names []string) []string {
	if slices.IsSorted(names) {
		return names
	}
	return Normal(slices.Clone(names))
}

// gallop finds the first element that is not less than name, near the front in
// few steps.
func gallop(sorted []string, name string) int {
	step := 1
	for step < len(sorted) && sorted[step] < name {
		step *= 2
	}
	from, to := step/2, min(step+1, len(sorted))
	return from + sort.SearchStrings(sorted[from:to], name)
}
