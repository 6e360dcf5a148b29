package bazelgraph

import (
	"slices"
	"sync"

	"landfall.build/engine/targets"
	"landfall.build/platform/gitrepo"
)

// text is a Starlark file, or a .bazelrc.
type text struct {
	tokens []token
	raw    string
}

// textsInMemory is in bytes of files; their tokens take about six times that.
const textsInMemory = 32 << 20

// loaded is a tree whose graph is known.
type loaded struct {
	tree     string
	graph    *targets.Graph
	entries  []gitrepo.Entry
	decisive func(file string) bool
	weight   int
}

// graphs remembers trees, the last used first, up to a weight in bytes.
type graphs struct {
	mu     sync.Mutex
	trees  []*loaded
	weight int
	// queried and derived count how graphs came about.
	queried, derived int
}

const graphsInMemory = 512 << 20

func (g *graphs) get(tree string) *targets.Graph {
	g.mu.Lock()
	defer g.mu.Unlock()
	i := slices.IndexFunc(g.trees, func(l *loaded) bool { return l.tree == tree })
	if i < 0 {
		return nil
	}
	found := g.trees[i]
	g.trees = slices.Insert(slices.Delete(g.trees, i, i+1), 0, found)
	return found.graph
}

// put remembers a tree, and at least that one.
func (g *graphs) put(l *loaded, derived bool) {
	nodes, edges := l.graph.Size()
	l.weight = nodes*200 + edges*4 + len(l.entries)*100
	g.mu.Lock()
	defer g.mu.Unlock()
	if derived {
		g.derived++
	} else {
		g.queried++
	}
	g.trees = slices.Insert(g.trees, 0, l)
	g.weight += l.weight
	for g.weight > graphsInMemory && len(g.trees) > 1 {
		last := len(g.trees) - 1
		g.weight -= g.trees[last].weight
		g.trees = g.trees[:last]
	}
}

// recent returns the trees used last.
func (g *graphs) recent() []*loaded {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.trees[:min(len(g.trees), maxRecent)])
}

// maxRecent is how many trees the next one is compared with, maxEdits how many files may differ.
const (
	maxRecent = 8
	maxEdits  = 2000
)

// successor makes the graph of a tree from that of another one which has the same files, some of which
// hold other things, and none of these decides about rules: Bazel would answer the same. It gives nil if
// there is no such tree.
func (g *graphs) successor(tree string, entries []gitrepo.Entry) *loaded {
	for _, old := range g.recent() {
		edited, ok := edits(old, entries)
		if !ok {
			continue
		}
		if graph, ok := old.graph.Successor(tree, edited); ok {
			return &loaded{tree: tree, graph: graph, entries: entries, decisive: old.decisive}
		}
	}
	return nil
}

func edits(old *loaded, now []gitrepo.Entry) (edited []targets.FileContent, ok bool) {
	if len(old.entries) != len(now) {
		return nil, false
	}
	for i, n := range now {
		o := old.entries[i]
		switch {
		case o.Path != n.Path || o.Kind != n.Kind || o.Mode != n.Mode:
			return nil, false
		case o.Object == n.Object:
		case n.Kind == gitrepo.Symlink || n.Kind == gitrepo.Submodule || old.decisive(n.Path) || len(edited) == maxEdits:
			return nil, false
		default:
			edited = append(edited, targets.FileContent{Path: n.Path, Mode: n.Mode, Object: n.Object})
		}
	}
	return edited, true
}
