package targets

import "slices"

// Leaving answers which targets of a graph depend on such as leave outputs.
type Leaving struct{ graph *Graph }

// Leaving returns the graph, seen that way.
func (g *Graph) Leaving() Leaving { return Leaving{g} }

// markLeaving marks the nodes of targets that leave outputs, and all that depend on them.
func (g *Graph) markLeaving() {
	var nodes []int32
	for node := range g.labels {
		if g.leavesAt(int32(node)) {
			nodes = append(nodes, int32(node))
		}
	}
	if len(nodes) > 0 {
		g.leaving = g.reach(nodes)
	}
}

func (g *Graph) leavesAt(node int32) bool {
	info := g.info[node]
	return info >= 0 && slices.ContainsFunc(g.targets[info].commands, func(c Command) bool { return len(c.Outputs) > 0 })
}

// Any reports whether any target leaves outputs.
func (l Leaving) Any() bool { return l.graph.leaving != nil }

// Below returns the direct and indirect dependencies of a target that leave outputs, dependencies first. Targets that depend on each
// other are not below each other.
func (l Leaving) Below(name string) (below []Target) {
	g := l.graph
	at, found := slices.BinarySearch(g.labels, Label(KindTarget, name))
	if !found || !l.Any() || !g.leaving[at] {
		return nil
	}
	for _, node := range g.dependenciesFirst([]int32{int32(at)}, func(node int32) bool { return g.leaving[node] }) {
		if node != int32(at) && g.leavesAt(node) && !g.mutual(int32(at), node) {
			below = append(below, g.target(int(node)))
		}
	}
	return below
}

// Given reports whether something is below a target. It takes no walk, but in a cycle.
func (l Leaving) Given(name string) bool {
	at, found := slices.BinarySearch(l.graph.labels, Label(KindTarget, name))
	if !found || !l.Any() {
		return false
	}
	if _, cyclic := l.graph.cycles[int32(at)]; cyclic {
		return len(l.Below(name)) > 0
	}
	return slices.ContainsFunc(l.graph.dependencies(at), func(dep int32) bool { return l.graph.leaving[dep] })
}

// Waits reports whether the step of a target waits for what the target depends on: it is given something, and nothing that it depends on
// depends on it.
func (l Leaving) Waits(name string) bool {
	at, found := slices.BinarySearch(l.graph.labels, Label(KindTarget, name))
	if !found {
		return false
	}
	_, cyclic := l.graph.cycles[int32(at)]
	return !cyclic && l.Given(name)
}

// All returns the targets that leave outputs, by name.
func (l Leaving) All() (all []Target) {
	if !l.Any() {
		return nil
	}
	for node := range l.graph.labels {
		if l.graph.leavesAt(int32(node)) {
			all = append(all, l.graph.target(node))
		}
	}
	return all
}

// mutual reports whether two nodes depend on each other.
func (g *Graph) mutual(a, b int32) bool {
	cycle, is := g.cycles[a]
	other, too := g.cycles[b]
	return is && too && cycle == other
}

// DependenciesFirst returns all targets, dependencies first. A cycle is cut somewhere.
func (g *Graph) DependenciesFirst() (all []Target) {
	var from []int32
	for node := range g.labels {
		from = append(from, int32(node))
	}
	for _, node := range g.dependenciesFirst(from, func(int32) bool { return true }) {
		if g.info[node] >= 0 {
			all = append(all, g.target(int(node)))
		}
	}
	return all
}

// dependenciesFirst returns the nodes of from and their dependencies, dependencies first. It goes on only from nodes for which follows
// reports true. The walk is without recursion: chains can be long.
func (g *Graph) dependenciesFirst(from []int32, follows func(int32) bool) (order []int32) {
	type visit struct {
		node int32
		next int // of its dependencies
	}
	seen := map[int32]bool{}
	for _, start := range from {
		if seen[start] {
			continue
		}
		seen[start] = true
		for walk := []visit{{node: start}}; len(walk) > 0; {
			at := &walk[len(walk)-1]
			if deps := g.dependencies(int(at.node)); at.next < len(deps) {
				dep := deps[at.next]
				at.next++
				if !seen[dep] && follows(dep) {
					seen[dep] = true
					walk = append(walk, visit{node: dep})
				}
				continue
			}
			order = append(order, at.node)
			walk = walk[:len(walk)-1]
		}
	}
	return order
}
