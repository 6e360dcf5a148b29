package targets

import (
	"iter"
	"slices"
)

// Graph is the hashed target graph of one tree. It does not change and may be
// used from several goroutines.
type Graph struct {
	tree     string
	unknown  []string
	declared []Edge

	// Nodes are numbered in the order of their labels, so that a lookup is a
	// binary search, two graphs are compared by merging, and nothing depends on
	// the order in which an adapter found things.
	labels  []string
	kinds   []Kind
	hashes  []Hash
	own     []Hash // what a node is by itself, without its dependencies
	defined []bool
	info    []int32
	targets []targetInfo

	// deps[starts[i]:starts[i+1]] are the dependencies of node i, ascending.
	starts []int32
	deps   []int32

	covered coverage
	// leaving marks the nodes of targets that leave outputs, and all that depend on them; nil if there are none.
	leaving []bool
	// cycles has the first member of the cycle that a node is a member of.
	cycles map[int32]int32
}

// Target is what the graph knows about one target.
type Target struct {
	Name string
	// Kind is the build system's word: library, test, …
	Kind string
	Hash Hash
	// Deps are the targets that it depends on directly, sorted, those that do
	// not exist among them.
	Deps []string
	// Commands verify the target; none means that nothing has to be run. Not to
	// be changed.
	Commands []Command
	// Closed is set if the commands find only some files of the tree; Graph.Workspace has which.
	Closed bool
}

// Tree is the id of the tree that the graph describes.
func (g *Graph) Tree() string { return g.tree }

// Unknown returns the reasons for which the graph cannot be trusted to be whole;
// none for a good graph.
func (g *Graph) Unknown() []string { return slices.Clone(g.unknown) }

// Size returns the number of nodes, those only referred to among them, and of
// edges.
func (g *Graph) Size() (nodes, edges int) { return len(g.labels), len(g.deps) }

// Target finds a target by its name.
func (g *Graph) Target(name string) (Target, bool) {
	i, ok := slices.BinarySearch(g.labels, Label(KindTarget, name))
	if !ok || g.info[i] < 0 {
		return Target{}, false
	}
	return g.target(i), true
}

// Targets goes through all targets by name.
func (g *Graph) Targets() iter.Seq[Target] {
	return func(yield func(Target) bool) {
		for i := range g.labels {
			if g.info[i] >= 0 && !yield(g.target(i)) {
				return
			}
		}
	}
}

// Dependencies returns the labels of what a node depends on directly, sorted.
func (g *Graph) Dependencies(label string) []string {
	i, ok := slices.BinarySearch(g.labels, label)
	if !ok {
		return nil
	}
	var labels []string
	for _, dep := range g.dependencies(i) {
		labels = append(labels, g.labels[dep])
	}
	return labels
}

func (g *Graph) dependencies(i int) []int32 { return g.deps[g.starts[i]:g.starts[i+1]] }

func (g *Graph) target(i int) Target {
	info := g.targets[g.info[i]]
	t := Target{Name: g.labels[i], Kind: info.kind, Hash: g.hashes[i], Commands: info.commands, Closed: info.closed}
	for _, dep := range g.dependencies(i) {
		if g.kinds[dep] == KindTarget {
			t.Deps = append(t.Deps, g.labels[dep])
		}
	}
	return t
}
