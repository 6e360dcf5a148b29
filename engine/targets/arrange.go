package targets

import (
	"slices"
	"strings"
)

// arrange numbers the nodes by label, brings the edges into rows and hashes.
func (b *Builder) arrange() *Graph {
	type entry struct {
		label string
		id    Node
	}
	entries := make([]entry, len(b.labels))
	for i, label := range b.labels {
		entries[i] = entry{label, Node(i)}
	}
	slices.SortFunc(entries, func(x, y entry) int { return strings.Compare(x.label, y.label) })

	count := len(entries)
	g := &Graph{
		tree: b.tree, unknown: slices.Clone(b.unknown), declared: slices.Clone(b.edges.declared), targets: slices.Clip(slices.Clone(b.targets)),
		labels: make([]string, count), kinds: make([]Kind, count), hashes: make([]Hash, count),
		own: make([]Hash, count), defined: make([]bool, count), info: make([]int32, count),
	}
	rank := make([]int32, count)
	for i, e := range entries {
		rank[e.id] = int32(i)
		g.labels[i], g.kinds[i], g.defined[i], g.info[i] = e.label, b.kinds[e.id], b.defined[e.id], b.info[e.id]
		g.own[i] = b.own[e.id]
	}
	g.starts, g.deps = sortEdges(rank, b.edges.from, b.edges.to)
	h := newHasher(g)
	h.run()
	g.cycles = h.cycles
	g.markLeaving()
	settled := make([]bool, count)
	for _, id := range b.marks.settled {
		settled[rank[id]] = true
	}
	g.cover(settled)
	for _, id := range b.marks.everywhere {
		g.covered.everywhere = append(g.covered.everywhere, rank[id])
	}
	for _, id := range b.marks.named {
		g.covered.named = append(g.covered.named, rank[id])
	}
	g.covered.shown = slices.Clone(b.marks.shown)
	return g
}

// sortEdges returns each node's dependencies in ascending order, without
// repetitions, as rows of one slice. Two counting passes, by the end and then,
// stably, by the start, make it linear in the number of edges.
func sortEdges(rank []int32, from, to []Node) (starts, deps []int32) {
	count := len(rank)
	next := make([]int32, count+1)
	for _, n := range to {
		next[rank[n]+1]++
	}
	for i := range count {
		next[i+1] += next[i]
	}
	byEnd := make([][2]int32, len(from))
	for i := range from {
		end := rank[to[i]]
		byEnd[next[end]] = [2]int32{rank[from[i]], end}
		next[end]++
	}

	starts = make([]int32, count+1)
	for _, e := range byEnd {
		starts[e[0]+1]++
	}
	for i := range count {
		starts[i+1] += starts[i]
	}
	copy(next, starts)
	deps = make([]int32, len(from))
	for _, e := range byEnd {
		deps[next[e[0]]] = e[1]
		next[e[0]]++
	}

	kept := int32(0)
	row := int32(0)
	for i := range count {
		end := starts[i+1]
		begin := kept
		for ; row < end; row++ {
			if kept == begin || deps[kept-1] != deps[row] {
				deps[kept] = deps[row]
				kept++
			}
		}
		starts[i+1] = kept
	}
	return starts, slices.Clip(deps[:kept])
}
