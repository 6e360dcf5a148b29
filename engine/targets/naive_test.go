package targets

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// The twins: slow, and too simple to be wrong in the same way.

// signature is everything that a node can reach, written out: two nodes are the
// same version exactly when theirs are equal. No hashes, no order of visiting.
func (r rawGraph) signature(label string) string {
	reached := map[string]bool{label: true}
	for queue := []string{label}; len(queue) > 0; queue = queue[1:] {
		for _, dep := range r[queue[0]].deps {
			if !reached[dep] {
				reached[dep] = true
				queue = append(queue, dep)
			}
		}
	}
	var signature strings.Builder
	for _, label := range slices.Sorted(maps.Keys(reached)) {
		if n, ok := r[label]; ok {
			signature.WriteString(n.line)
		} else {
			signature.WriteString("missing " + label + "\n")
		}
	}
	return signature.String()
}

// covers reports whether some target that has steps or needs none can reach a file, each target asked by itself.
func (r rawGraph) covers(path string) bool {
	for label := range r {
		if isTargetName(label) && r[label].content != withoutSteps && r.reaches(label, Label(KindFile, path)) {
			return true
		}
	}
	return false
}

// reaches reports whether there is a path from one node to another.
func (r rawGraph) reaches(from, to string, before ...string) bool {
	return from == to || !slices.Contains(before, from) && slices.ContainsFunc(r[from].deps, func(dep string) bool {
		return r.reaches(dep, to, append(slices.Clip(before), from)...)
	})
}

// differing gives the labels of the nodes that differ between two graphs, with
// their new signatures, "" for those that are gone.
func differing(base, head rawGraph) map[string]string {
	diff := make(map[string]string)
	for label := range base {
		if _, ok := head[label]; !ok {
			diff[label] = ""
		}
	}
	for label := range head {
		signature := head.signature(label)
		if _, ok := base[label]; !ok || base.signature(label) != signature {
			diff[label] = signature
		}
	}
	return diff
}

func onlyTargets(diff map[string]string) map[string]string {
	targets := make(map[string]string)
	for label, signature := range diff {
		if isTargetName(label) {
			targets[label] = signature
		}
	}
	return targets
}

// equation6 tells whether δ(M,a) ∪ δ(M,b) ≠ δ(M,a⊕b), deletions among them.
func equation6(m, a, b, ab rawGraph) bool {
	union := onlyTargets(differing(m, a))
	for label, signature := range onlyTargets(differing(m, b)) {
		if other, ok := union[label]; ok && other != signature {
			return true
		}
		union[label] = signature
	}
	return !maps.Equal(union, onlyTargets(differing(m, ab)))
}

// unionWalk is the test that M1 stands for: being affected spreads to dependants
// along the edges of all three graphs; a target affected by both is a conflict.
func unionWalk(m, a, b rawGraph) bool {
	byA, byB := spread(m, a, b, differing(m, a)), spread(m, a, b, differing(m, b))
	for label := range byA {
		if byB[label] && isTargetName(label) {
			return true
		}
	}
	return false
}

func spread(m, a, b rawGraph, start map[string]string) map[string]bool {
	affected := make(map[string]bool)
	for label := range start {
		affected[label] = true
	}
	for grown := true; grown; {
		grown = false
		for _, g := range []rawGraph{m, a, b} {
			for label, n := range g {
				if !affected[label] && slices.ContainsFunc(n.deps, func(dep string) bool { return affected[dep] }) {
					affected[label] = true
					grown = true
				}
			}
		}
	}
	return affected
}

// hasCycle tells whether some node of the graphs' united edges reaches itself.
func hasCycle(graphs ...rawGraph) bool {
	edges := make(map[string][]string)
	for _, g := range graphs {
		for label, n := range g {
			edges[label] = append(edges[label], n.deps...)
		}
	}
	for label := range edges {
		reached := map[string]bool{}
		queue := slices.Clone(edges[label])
		for len(queue) > 0 {
			next := queue[0]
			queue = queue[1:]
			if next == label {
				return true
			}
			if !reached[next] {
				reached[next] = true
				queue = append(queue, edges[next]...)
			}
		}
	}
	return false
}

// m1 is the test for conflicts of two analyses, without hubs.
func m1(a, b Analysis) (bool, Why) {
	why := a.Footprint().Meets(b.Footprint(), nil)
	if found := a.Footprint().Conflicts(b.Footprint()); found != why.Conflict() {
		panic(fmt.Sprintf("a conflict is found: %t; it is %+v", found, why))
	}
	return why.Conflict(), why
}

// hashOf finds the hash of any node; false when the graph does not define it.
func hashOf(g *Graph, label string) (Hash, bool) {
	i, ok := slices.BinarySearch(g.labels, label)
	if !ok || !g.defined[i] {
		return Hash{}, false
	}
	return g.hashes[i], true
}
