package targets

import (
	"slices"
	"strconv"
	"strings"
)

// coverage is which nodes of a graph are verified with some target.
type coverage struct {
	// all is set for the one target of a whole repository, which covers every file.
	all   bool
	nodes []bool
	// everywhere holds the files that every closed workspace has whole, named those that it has whole or empty.
	everywhere, named []int32
	// shown holds the folders of Builder.ShowNames.
	shown []shownFolder
	// merged is set if listings are named after the adapter that they are of.
	merged bool
}

// Covers reports whether a file is some target's that has steps or needs none (Builder.NeedsNoSteps): the target depends
// on it, directly or through others, or the adapter interprets it (Builder.Interprets). What changes in a file that no
// target covers is verified by no step.
func (g *Graph) Covers(path string) bool { return g.coversLabel(Label(KindFile, path)) }

func (g *Graph) coversLabel(label string) bool {
	if g.covered.all {
		return true
	}
	node, ok := slices.BinarySearch(g.labels, label)
	return ok && g.covered.nodes[node]
}

// Uncovered returns the paths of the files that no target covers, sorted.
func (g *Graph) Uncovered() []string {
	var paths []string
	for node, label := range g.labels {
		if g.kinds[node] == KindFile && g.defined[node] && !g.covered.all && !g.covered.nodes[node] {
			paths = append(paths, pathOf(label))
		}
	}
	slices.Sort(paths) // A label can be a quoted path.
	return paths
}

// uncovered returns the paths of the changed files that neither graph covers, sorted.
func uncovered(base, head *Graph, leaves []string) []string {
	var paths []string
	for _, label := range leaves {
		if path := FileOf(label); path != "" && !base.coversLabel(label) && !head.coversLabel(label) {
			paths = append(paths, path)
		}
	}
	return Normal(paths)
}

// FileOf returns the path of the file that a label is of, "" if it is of something else.
func FileOf(label string) string {
	if !strings.HasPrefix(label, prefixes[KindFile]) {
		return ""
	}
	return pathOf(label)
}

// pathOf returns the path in the label of a file.
func pathOf(label string) string { return unquoted(label[len(prefixes[KindFile]):]) }

// unquoted returns the name that stands in a label, quoted or not.
func unquoted(name string) string {
	if strings.HasPrefix(name, `"`) {
		if plain, err := strconv.Unquote(name); err == nil {
			return plain
		}
	}
	return name
}

// cover finds what targets with steps reach, and what the given nodes do. It takes these over.
func (g *Graph) cover(nodes []bool) {
	var pending []int32
	for node := range g.labels {
		if g.info[node] >= 0 {
			nodes[node] = nodes[node] || len(g.targets[g.info[node]].commands) > 0
			g.covered.all = g.covered.all || g.labels[node] == Repository
		}
		if nodes[node] {
			pending = append(pending, int32(node))
		}
	}
	for len(pending) > 0 {
		node := pending[len(pending)-1]
		pending = pending[:len(pending)-1]
		for _, dep := range g.dependencies(int(node)) {
			if !nodes[dep] {
				nodes[dep] = true
				pending = append(pending, dep)
			}
		}
	}
	g.covered.nodes = nodes
}
