package targets

import "slices"

// hasher computes the hashes of all nodes, dependencies first. It is Tarjan's
// algorithm with a stack of its own: a chain of a million targets must not
// exhaust the goroutine's.
type hasher struct {
	graph    *Graph
	encoding encoding

	visited []int32 // order of the first visit, from 1; 0 before it
	lowest  []int32 // least visit order reachable; settled once hashed
	open    []int32 // visited, not yet hashed
	frames  []frame
	// cycles has the first member of the cycle that a node is a member of.
	cycles map[int32]int32
}

// frame is a node whose dependencies are being visited; next is a position in
// the graph's deps.
type frame struct{ node, next int32 }

// settled is above every visit order: an edge into a hashed node is in
// no cycle.
const settled = int32(1<<31 - 1)

func newHasher(g *Graph) *hasher {
	return &hasher{graph: g, visited: make([]int32, len(g.labels)), lowest: make([]int32, len(g.labels))}
}

// keep takes the hash that a node has for the one that it gets. Of a cycle all
// members must be kept, or none.
func (h *hasher) keep(node int32) { h.visited[node], h.lowest[node] = settled, settled }

func (h *hasher) run() {
	count := len(h.graph.labels)
	order := int32(0)
	for root := range count {
		if h.visited[root] != 0 {
			continue
		}
		h.frames = append(h.frames[:0], frame{int32(root), -1})
		for len(h.frames) > 0 {
			top := &h.frames[len(h.frames)-1]
			node := top.node
			if top.next < 0 {
				order++
				h.visited[node], h.lowest[node] = order, order
				h.open = append(h.open, node)
				top.next = h.graph.starts[node]
			}
			if child := h.nextChild(top); child >= 0 {
				h.frames = append(h.frames, frame{child, -1})
				continue
			}
			h.frames = h.frames[:len(h.frames)-1]
			if h.lowest[node] == h.visited[node] {
				h.closeComponent(node)
			}
			if len(h.frames) > 0 {
				parent := h.frames[len(h.frames)-1].node
				h.lowest[parent] = min(h.lowest[parent], h.lowest[node])
			}
		}
	}
}

// nextChild returns the next dependency that was not visited yet, or -1.
func (h *hasher) nextChild(f *frame) int32 {
	for end := h.graph.starts[f.node+1]; f.next < end; {
		dep := h.graph.deps[f.next]
		f.next++
		if h.visited[dep] == 0 {
			return dep
		}
		if h.lowest[dep] != settled {
			h.lowest[f.node] = min(h.lowest[f.node], h.visited[dep])
		}
	}
	return -1
}

// closeComponent hashes a strongly connected component, all of whose
// dependencies outside it are hashed.
func (h *hasher) closeComponent(root int32) {
	first := len(h.open) - 1
	for h.open[first] != root {
		first--
	}
	members := h.open[first:]
	_, loop := slices.BinarySearch(h.graph.dependencies(int(root)), root)
	if len(members) == 1 && !loop {
		h.hashNode(root)
	} else {
		h.hashCycle(members)
	}
	for _, member := range members {
		h.lowest[member] = settled
	}
	h.open = h.open[:first]
}

// hashNode covers the node itself and each dependency's label and hash. Every
// hash begins with its node's own label, so a dependency's hash stands for both:
// writing a million labels again would double the time.
func (h *hasher) hashNode(node int32) {
	g := h.graph
	if !g.defined[node] {
		h.encoding.begin("missing")
		h.encoding.text(g.labels[node])
		g.hashes[node] = h.encoding.sum()
		return
	}
	h.encoding.begin("node")
	h.encoding.text(g.labels[node])
	h.encoding.hash(g.own[node])
	h.encoding.hashes(g.hashes, g.dependencies(int(node)))
	g.hashes[node] = h.encoding.sum()
}

// hashCycle gives the members of a cycle one hash over all of them, in the
// order of their labels, and each its own from that. The order in which the
// cycle was entered leaves no trace.
func (h *hasher) hashCycle(members []int32) {
	g := h.graph
	slices.Sort(members)
	h.encoding.begin("cycle")
	h.encoding.number(uint64(len(members)))
	for _, member := range members {
		h.encoding.text(g.labels[member])
		h.encoding.hash(g.own[member])
		deps := g.dependencies(int(member))
		h.encoding.number(uint64(len(deps)))
		for _, dep := range deps {
			h.encoding.text(g.labels[dep])
			// The zero hash stands for a member, whose hash is not known yet.
			_, inside := slices.BinarySearch(members, dep)
			if inside {
				h.encoding.hash(Hash{})
			} else {
				h.encoding.hash(g.hashes[dep])
			}
		}
	}
	cycle := h.encoding.sum()
	if h.cycles == nil {
		h.cycles = map[int32]int32{}
	}
	for _, member := range members {
		h.cycles[member] = members[0]
		h.encoding.begin("member")
		h.encoding.hash(cycle)
		h.encoding.text(g.labels[member])
		g.hashes[member] = h.encoding.sum()
	}
}
