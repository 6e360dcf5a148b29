package targets

import "slices"

// FileContent is what a file of a tree holds: its mode and the id of its content,
// as in Builder.File.
type FileContent struct {
	Path   string
	Mode   uint32
	Object string
}

// Successor returns the graph of a tree that differs from this graph's only in what
// some files hold: every node, edge, definition and command is the same, which the
// caller must know. It is the graph that Build would make, in time that goes by the
// nodes that these files reach, but for a few passes over the edges. Only those
// are hashed again. It shares memory with this graph.
//
// ok is false, and the graph is to be built, if this one is not known to be whole
// or a path is no file of it.
func (g *Graph) Successor(tree string, files []FileContent) (_ *Graph, ok bool) {
	if len(g.unknown) > 0 {
		return nil, false
	}
	next := *g
	next.tree, next.own, next.hashes = tree, slices.Clone(g.own), slices.Clone(g.hashes)
	var e encoding
	changed := make([]int32, len(files))
	for i, f := range files {
		node, found := slices.BinarySearch(g.labels, Label(KindFile, f.Path))
		if !found || !g.defined[node] || g.kinds[node] != KindFile {
			return nil, false
		}
		next.own[node] = e.file(f.Mode, f.Object)
		changed[i] = int32(node)
	}
	h := newHasher(&next)
	for node, reached := range g.reach(changed) {
		if !reached {
			h.keep(int32(node))
		}
	}
	h.run()
	return &next, true
}

// reach marks nodes and whatever depends on them.
func (g *Graph) reach(nodes []int32) []bool {
	// Rows of dependants, as starts and deps are of dependencies.
	starts := make([]int32, len(g.labels)+2)
	for _, dep := range g.deps {
		starts[dep+2]++
	}
	for i := range g.labels {
		starts[i+2] += starts[i+1]
	}
	dependants := make([]int32, len(g.deps))
	for node := range g.labels {
		for _, dep := range g.dependencies(node) {
			dependants[starts[dep+1]] = int32(node)
			starts[dep+1]++
		}
	}
	reached := make([]bool, len(g.labels))
	pending := slices.Clone(nodes)
	for _, node := range nodes {
		reached[node] = true
	}
	for len(pending) > 0 {
		node := pending[len(pending)-1]
		pending = pending[:len(pending)-1]
		for _, d := range dependants[starts[node]:starts[node+1]] {
			if !reached[d] {
				reached[d] = true
				pending = append(pending, d)
			}
		}
	}
	return reached
}
