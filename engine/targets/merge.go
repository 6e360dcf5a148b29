package targets

import (
	"fmt"
	"slices"
	"strings"
)

// Member is the graph that one adapter made of a tree, with the adapter's name: a word without spaces.
type Member struct {
	Name  string
	Graph *Graph
}

// Edge is a dependency between two targets that need not be of one graph, and where it was declared.
type Edge struct {
	From, To string
	// Place is what people read: a file and a line.
	Place string
}

// Declare adds that one target depends on another, which another graph of the same tree may define, as may be the case
// for the first. It has an effect only once the graphs are merged.
func (b *Builder) Declare(e Edge) { b.edges.declared = append(b.edges.declared, e) }

// Declared returns the edges that wait for Merge. Not to be changed.
func (g *Graph) Declared() []Edge { return g.declared }

// MergeError is the error of graphs that do not make one: a target that two of them define, or a declared edge from or
// to a target that none does. It speaks against the tree.
type MergeError struct {
	// Problems are sentences, one for each.
	Problems []string
}

func (e *MergeError) Error() string { return strings.Join(e.Problems, "\n") }

// maxMergeProblems bounds how many problems a MergeError lists.
const maxMergeProblems = 20

// Merge makes one graph of the graphs that several adapters made of one tree. Files are the same for all. Targets keep their names;
// one that a graph only refers to is that of the graph that defines it. Listings, definitions and externals stay apart:
// the member's name becomes a part of theirs. Each member's Unknown is the whole's.
//
// The order of the members does not matter.
func Merge(tree string, members []Member) (*Graph, error) {
	members = slices.Clone(members)
	slices.SortFunc(members, func(a, b Member) int { return strings.Compare(a.Name, b.Name) })
	m := &merging{tree: tree, members: members, places: make([][]int32, len(members))}
	m.nodes()
	m.edges()
	if len(m.problems) > 0 {
		return nil, &MergeError{m.problems}
	}
	newHasher(&m.graph).run()
	m.cover()
	return &m.graph, nil
}

// merging is the state of one Merge.
type merging struct {
	tree     string
	members  []Member
	graph    Graph
	places   [][]int32 // by member, by node of its graph: the node of the whole
	problems []string
}

func (m *merging) problem(format string, args ...any) {
	if len(m.problems) < maxMergeProblems {
		m.problems = append(m.problems, fmt.Sprintf(format, args...))
	}
}

// label returns the label that a node of a member has in the whole. It keeps the order of a member's labels.
func (m *merging) label(member, node int) string {
	g := m.members[member].Graph
	label, kind := g.labels[node], g.kinds[node]
	if kind == KindTarget || kind == KindFile {
		return label
	}
	prefix := prefixes[kind]
	return prefix + m.members[member].Name + " " + label[len(prefix):]
}

// nodes puts the nodes of all members into the order of their labels.
func (m *merging) nodes() {
	total := 0
	next := make([]int, len(m.members))
	heads := make([]string, len(m.members))
	for i, member := range m.members {
		total = max(total, len(member.Graph.labels))
		m.places[i] = make([]int32, len(member.Graph.labels))
		m.graph.unknown = append(m.graph.unknown, member.Graph.unknown...)
		if len(member.Graph.labels) > 0 {
			heads[i] = m.label(i, 0)
		}
	}
	g := &m.graph
	g.tree = m.tree
	g.labels = make([]string, 0, total)
	var owns []Hash
	var encoding encoding
	for {
		least := -1
		for i, member := range m.members {
			if next[i] < len(member.Graph.labels) && (least < 0 || heads[i] < heads[least]) {
				least = i
			}
		}
		if least < 0 {
			return
		}
		label, node := heads[least], int32(len(g.labels))
		g.labels = append(g.labels, label)
		g.kinds = append(g.kinds, m.members[least].Graph.kinds[next[least]])
		g.defined = append(g.defined, false)
		g.info = append(g.info, -1)
		owns = owns[:0]
		maker := ""
		for i := range m.members {
			from := m.members[i].Graph
			if next[i] >= len(from.labels) || heads[i] != label {
				continue
			}
			at := next[i]
			m.places[i][at] = node
			if next[i]++; next[i] < len(from.labels) {
				heads[i] = m.label(i, next[i])
			}
			if !from.defined[at] {
				continue
			}
			g.defined[node] = true
			if !slices.Contains(owns, from.own[at]) {
				owns = append(owns, from.own[at])
			}
			if from.info[at] < 0 {
				continue
			}
			if maker != "" {
				m.problem("%s is the name of a target of %s and of one of %s; rename one, or name folders for the adapters", label, maker, m.members[i].Name)
			}
			maker = m.members[i].Name
			g.info[node] = int32(len(g.targets))
			g.targets = append(g.targets, from.targets[from.info[at]])
		}
		g.own = append(g.own, encoding.merged(owns))
	}
}

// merged is what a node is by itself if the members say different things of it: all of them.
func (e *encoding) merged(owns []Hash) Hash {
	switch len(owns) {
	case 0:
		return Hash{}
	case 1:
		return owns[0]
	}
	e.begin("merged")
	e.number(uint64(len(owns)))
	for _, own := range owns {
		e.hash(own)
	}
	return e.sum()
}

// cover joins what the members cover and what they have in every workspace, and adds what a declared edge from a target with steps leads to.
func (m *merging) cover() {
	m.graph.covered.merged = true
	nodes := make([]bool, len(m.graph.labels))
	for i, member := range m.members {
		for node, is := range member.Graph.covered.nodes {
			if is {
				nodes[m.places[i][node]] = true
			}
		}
		for _, file := range member.Graph.covered.everywhere {
			m.graph.covered.everywhere = append(m.graph.covered.everywhere, m.places[i][file])
		}
		for _, file := range member.Graph.covered.named {
			m.graph.covered.named = append(m.graph.covered.named, m.places[i][file])
		}
		m.graph.covered.shown = append(m.graph.covered.shown, member.Graph.covered.shown...)
	}
	m.graph.cover(nodes)
}

// edges unites the dependencies of all members and adds those that are declared.
func (m *merging) edges() {
	g := &m.graph
	var from, to []Node
	for i, member := range m.members {
		for node := range member.Graph.labels {
			for _, dep := range member.Graph.dependencies(node) {
				from = append(from, Node(m.places[i][node]))
				to = append(to, Node(m.places[i][dep]))
			}
		}
		for _, e := range member.Graph.declared {
			start, end := m.end(e, e.From), m.end(e, e.To)
			if start < 0 || end < 0 {
				continue
			}
			from = append(from, start)
			to = append(to, end)
		}
	}
	count := len(g.labels)
	g.hashes = make([]Hash, count)
	rank := make([]int32, count)
	for i := range rank {
		rank[i] = int32(i)
	}
	g.starts, g.deps = sortEdges(rank, from, to)
}

// end returns the target at one end of a declared edge; -1, and a problem, if there is none.
func (m *merging) end(e Edge, name string) Node {
	node, found := slices.BinarySearch(m.graph.labels, Label(KindTarget, name))
	if !found || m.graph.info[node] < 0 {
		m.problem("%s: the repository has no target %s; `landfall targets` lists those it has", e.Place, Label(KindTarget, name))
		return -1
	}
	return Node(node)
}
