package targets

import (
	"errors"
	"fmt"
	"math"
	"slices"
)

// Node refers to a node within one Builder.
type Node int32

// Builder collects the raw graph of one tree. The zero value is not usable;
// see NewBuilder. Mistakes of the adapter are gathered and reported by Build.
type Builder struct {
	scheme, tree string

	ids     map[string]Node
	labels  []string
	kinds   []Kind
	own     []Hash // what the node is by itself, without its dependencies
	defined []bool
	info    []int32 // index into targets, or -1
	targets []targetInfo

	edges edgeList
	marks marks

	unknown  []string
	faults   []error
	encoding encoding
}

// marks holds the nodes that an adapter has marked, and whether its targets are verified in closed workspaces.
type marks struct {
	// settled are the files that Interprets named and the targets that NeedsNoSteps did.
	settled []Node
	// everywhere holds the files of InEveryWorkspace, named those of NameInEveryWorkspace; closed is set by Closed.
	everywhere, named []Node
	closed            bool
	// shown holds the folders of ShowNames.
	shown []shownFolder
}

// shownFolder is a folder of ShowNames.
type shownFolder struct {
	folder string
	alone  bool
}

// edgeList holds edges between nodes, from[i] to to[i], and those that wait for Merge.
type edgeList struct {
	from, to []Node
	declared []Edge
}

type targetInfo struct {
	kind     string
	closed   bool
	commands []Command
}

// maxFaults bounds how many mistakes of an adapter Build lists.
const maxFaults = 20

// NewBuilder starts a graph. The scheme names the adapter, its version, the
// tool's version and its configuration: it is part of every target's hash, so
// that graphs made differently never agree by accident. The tree is the id of
// the tree that the graph describes.
func NewBuilder(scheme, tree string) *Builder {
	return &Builder{scheme: scheme, tree: tree, ids: make(map[string]Node)}
}

// Ref returns the node of that kind and name. It need not ever be defined: an
// edge to it is kept, and it hashes as missing.
func (b *Builder) Ref(kind Kind, name string) Node {
	label := Label(kind, name)
	if id, ok := b.ids[label]; ok {
		return id
	}
	id := Node(len(b.labels))
	b.ids[label] = id
	b.labels = append(b.labels, label)
	b.kinds = append(b.kinds, kind)
	b.own = append(b.own, Hash{})
	b.defined = append(b.defined, false)
	b.info = append(b.info, -1)
	return id
}

// Target defines a target: its name, its kind in words (library, test, …) and
// the commands that verify it, which may be none.
func (b *Builder) Target(name, kind string, commands []Command) Node {
	if !isTargetName(name) {
		b.fault("target name %q is empty or begins like the label of a file, listing or definition", name)
	}
	b.encoding.begin("target")
	b.encoding.text(b.scheme)
	b.encoding.text(kind)
	b.encoding.commands(commands)
	if b.marks.closed && len(commands) > 0 {
		b.encoding.text("closed and watched, with names")
	}
	id := b.define(KindTarget, name)
	b.info[id] = int32(len(b.targets))
	b.targets = append(b.targets, targetInfo{kind: kind, closed: b.marks.closed && len(commands) > 0, commands: commands})
	return id
}

// File defines a file by its mode and the id of its content. Symbolic links and
// submodules are files too: the mode tells them apart.
func (b *Builder) File(path string, mode uint32, object string) Node {
	return b.place(KindFile, path, b.encoding.file(mode, object))
}

// Listing defines a set of names, in any order, that a glob looks at.
func (b *Builder) Listing(name string, names []string) Node {
	if !slices.IsSorted(names) {
		names = slices.Sorted(slices.Values(names))
	}
	b.encoding.begin("listing")
	b.encoding.texts(names)
	return b.define(KindListing, name)
}

// Definition defines what a build file, a macro or the environment means, in a
// normal form chosen by the adapter: equal meaning, equal bytes.
func (b *Builder) Definition(name string, content []byte) Node {
	b.encoding.begin("definition")
	b.encoding.text(string(content))
	return b.define(KindDefinition, name)
}

// External defines something outside the repository, by whatever pins it.
func (b *Builder) External(name string, content []byte) Node {
	b.encoding.begin("external")
	b.encoding.text(string(content))
	return b.define(KindExternal, name)
}

// define takes the node's own hash from the encoding.
func (b *Builder) define(kind Kind, name string) Node { return b.place(kind, name, b.encoding.sum()) }

func (b *Builder) place(kind Kind, name string, own Hash) Node {
	id := b.Ref(kind, name)
	if b.defined[id] {
		b.fault("%s %q is defined twice", kind, name)
	}
	b.defined[id] = true
	b.own[id] = own
	return id
}

// Edge adds that one node depends on another. Repeating an edge changes nothing.
func (b *Builder) Edge(from, to Node) {
	b.edges.from = append(b.edges.from, from)
	b.edges.to = append(b.edges.to, to)
}

// Dependents reports of each node whether one of some nodes is what it depends on, by the edges that are there so far, or is it
// itself.
func (b *Builder) Dependents(of []Node) []bool {
	count := len(b.labels)
	starts := make([]int, count+1) // of each node's dependents in from
	for _, to := range b.edges.to {
		starts[to+1]++
	}
	for i := range count {
		starts[i+1] += starts[i]
	}
	from, next := make([]Node, len(b.edges.from)), slices.Clone(starts)
	for i, to := range b.edges.to {
		from[next[to]] = b.edges.from[i]
		next[to]++
	}
	depends := make([]bool, count)
	for pending := slices.Clone(of); len(pending) > 0; {
		node := pending[len(pending)-1]
		pending = pending[:len(pending)-1]
		if !depends[node] {
			depends[node] = true
			pending = append(pending, from[starts[node]:starts[node+1]]...)
		}
	}
	return depends
}

// Interprets marks a file of the tree as one that the adapter turns into definitions, such as a build file: it is
// covered (Graph.Covers) though no target need depend on its text.
func (b *Builder) Interprets(path string) {
	b.marks.settled = append(b.marks.settled, b.Ref(KindFile, path))
}

// NeedsNoSteps marks a target for which the repository itself asks for no steps. The files that it depends on are covered
// (Graph.Covers), although no step verifies them.
func (b *Builder) NeedsNoSteps(target Node) { b.marks.settled = append(b.marks.settled, target) }

// Incomplete marks the graph as one that cannot be trusted to be whole: a
// change into or out of this tree conflicts with everything (M4).
func (b *Builder) Incomplete(reason string) { b.unknown = append(b.unknown, reason) }

func (b *Builder) fault(format string, args ...any) {
	if len(b.faults) < maxFaults {
		b.faults = append(b.faults, fmt.Errorf(format, args...))
	}
}

// Build hashes the graph. It fails only on an adapter's mistake: a node defined
// twice, an edge out of a node that is not defined or not there, a bad target
// name, more than 2^31-1 nodes or edges. The builder stays usable.
func (b *Builder) Build() (*Graph, error) {
	faults := slices.Clone(b.faults)
	if len(b.labels) > math.MaxInt32 || len(b.edges.from) > math.MaxInt32 {
		return nil, errors.New("target graph: more than 2^31-1 nodes or edges")
	}
	count := Node(len(b.labels))
	for i, from := range b.edges.from {
		switch to := b.edges.to[i]; {
		case from < 0 || from >= count || to < 0 || to >= count:
			faults = append(faults, fmt.Errorf("edge %d→%d: no such node", from, to))
		case !b.defined[from]:
			faults = append(faults, fmt.Errorf("%s has a dependency on %s but is not defined", b.labels[from], b.labels[to]))
		}
		if len(faults) >= maxFaults {
			break
		}
	}
	if len(faults) > 0 {
		return nil, fmt.Errorf("target graph of tree %s: %w", b.tree, errors.Join(faults...))
	}
	return b.arrange(), nil
}
