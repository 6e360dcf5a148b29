package proof

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"math/bits"
	"slices"

	"landfall.build/engine/targets"
	eventsv1 "landfall.build/events/v1"
)

// tree is the repository with a set of edits.
type tree struct {
	repository *repository
	holds      atoms
	id         string
	known      *truth
}

// truth is all that can be found out about a tree.
type truth struct {
	// invalid definitions, or targets that cannot be known.
	invalid, hidden bool
	graph           *targets.Graph
	// red has every target, and whether it is red.
	red map[string]bool
}

func (r *repository) tree(holds atoms) *tree {
	if t := r.trees[holds]; t != nil {
		return t
	}
	var b []byte
	for _, w := range holds {
		b = binary.LittleEndian.AppendUint64(b, w)
	}
	sum := sha256.Sum256(b)
	t := &tree{repository: r, holds: holds, id: hex.EncodeToString(sum[:20])}
	r.trees[holds] = t
	return t
}

// testSteps verify every target that is tested, and the whole repository.
var testSteps = []targets.Command{{Name: "test", Argv: []string{"test"}}}

// truth is computed when it is first asked for: most trees are only merged.
func (t *tree) truth() *truth {
	if t.known != nil {
		return t.known
	}
	r := t.repository
	held := t.holds.list(r)
	l := r.layout(held)
	k := &truth{invalid: l.invalid, red: map[string]bool{}}
	t.known = k
	for _, a := range held {
		mended := slices.ContainsFunc(held, func(m *atom) bool { return slices.Contains(m.mends, a) })
		k.invalid = k.invalid || a.breaks && !mended
		k.hidden = k.hidden || a.hides && !mended
	}
	switch {
	case k.invalid:
		k.graph = targets.Unknown(t.id, testSteps, "invalid target definitions")
	case k.hidden:
		k.graph = targets.Unknown(t.id, testSteps, "a definition that cannot be evaluated")
	default:
		k.graph = r.build(t.id, held, l)
	}
	for i, name := range l.names {
		if l.exists&(1<<i) != 0 {
			k.red[name] = false
		}
	}
	for _, b := range r.bugs {
		if !t.holds.holds(b.all) {
			continue
		}
		for i, name := range l.names {
			if l.exists&(1<<i) != 0 && !r.untested[name] && b.shows(l, l.closure[i], t.holds) {
				k.red[name] = true
			}
		}
	}
	return k
}

// layout is what targets a tree has, and which depend on which.
type layout struct {
	names   []string
	number  map[string]int
	exists  uint64
	deps    []uint64
	closure []uint64 // what each target depends on, itself included
	invalid bool     // a cycle, or a dependency on what does not exist
}

func (r *repository) layout(held []*atom) *layout {
	l := &layout{names: slices.Clone(r.targets), number: map[string]int{}, exists: 1<<len(r.targets) - 1}
	for _, a := range held {
		if a.creates != "" {
			l.exists |= 1 << len(l.names)
			l.names = append(l.names, a.creates)
		}
	}
	for i, name := range l.names {
		l.number[name] = i
	}
	l.deps = make([]uint64, len(l.names))
	for _, e := range r.deps {
		l.deps[l.number[e.from]] |= 1 << l.number[e.to]
	}
	for _, a := range held {
		for _, e := range a.adds {
			l.deps[l.number[e.from]] |= 1 << l.number[e.to]
		}
	}
	for _, a := range held {
		for _, e := range a.drops {
			l.deps[l.number[e.from]] &^= 1 << l.number[e.to]
		}
		if a.deletes != "" {
			l.exists &^= 1 << l.number[a.deletes]
		}
	}
	l.closure = make([]uint64, len(l.names))
	for i := range l.names {
		if l.exists&(1<<i) == 0 {
			l.deps[i] = 0
		}
	}
	for i := range l.names {
		l.closure[i] = l.reach(1<<i, 0)
		l.invalid = l.invalid || l.deps[i]&^l.exists != 0 || l.reach(l.deps[i], 0)&(1<<i) != 0
	}
	return l
}

// reach adds to seen what can be reached from a set, the set included.
func (l *layout) reach(from, seen uint64) uint64 {
	for from &^= seen; from != 0; from &^= seen {
		i := bits.TrailingZeros64(from)
		seen |= 1 << i
		from |= l.deps[i]
	}
	return seen
}

// shows says whether a closure has the bug. It is a function of what the closure's sources are, and so of
// its hash.
func (b *bug) shows(l *layout, closure uint64, holds atoms) bool {
	within := func(target string) bool {
		i, known := l.number[target]
		return known && closure&(1<<i) != 0
	}
	if !within(b.target) || slices.ContainsFunc(b.atoms, func(a *atom) bool { return !slices.ContainsFunc(a.edits, within) }) {
		return false
	}
	return !slices.ContainsFunc(b.unless, func(a *atom) bool { return holds.has(a) && slices.ContainsFunc(a.edits, within) })
}

// build is the target graph by the production engine.
func (r *repository) build(id string, held []*atom, l *layout) *targets.Graph {
	b := targets.NewBuilder("model", id)
	nodes := make([]targets.Node, len(l.names))
	for i, name := range l.names {
		if l.exists&(1<<i) == 0 {
			continue
		}
		commands := testSteps
		if r.untested[name] {
			commands = nil
		}
		var source []byte
		for _, a := range held {
			if slices.Contains(a.edits, name) {
				source = append(append(source, a.id...), '\n')
			}
		}
		nodes[i] = b.Target(name, "test", commands)
		b.Edge(nodes[i], b.File("src/"+name[2:], 0o100644, string(source)))
	}
	for i, deps := range l.deps {
		for ; deps != 0; deps &= deps - 1 {
			b.Edge(nodes[i], nodes[bits.TrailingZeros64(deps)])
		}
	}
	g, err := b.Build()
	if err != nil {
		panic(err)
	}
	return g
}

// version names a target of the tree as a part of a change makes it.
func (t *tree) version(name string, part uint32) *eventsv1.TargetVersion {
	g := t.truth().graph
	if name == targets.Repository {
		g = targets.Whole(t.id, testSteps)
	}
	node, ok := g.Target(name)
	if !ok {
		return &eventsv1.TargetVersion{Target: name, Part: part, Absent: true}
	}
	return &eventsv1.TargetVersion{
		Target: name, Hash: node.Hash.String() + t.repository.reading, Part: part, Trivial: len(node.Commands) == 0 && name != targets.Repository,
	}
}

// baseVersions are the versions that the tree has of the targets of a change on it.
func (t *tree) baseVersions(of []*eventsv1.TargetVersion) map[string]*eventsv1.TargetVersion {
	versions := map[string]*eventsv1.TargetVersion{}
	for _, v := range of {
		switch base := t.version(v.Target, 0); {
		case t.unknown():
			versions[v.Target] = t.version(targets.Repository, 0)
		case !base.Absent:
			versions[v.Target] = base
		}
	}
	return versions
}

// isRed is the truth about a target of the tree.
func (t *tree) isRed(name string) bool {
	if name != targets.Repository {
		return t.truth().red[name]
	}
	for _, red := range t.truth().red {
		if red {
			return true
		}
	}
	return false
}

// unknown says that the targets of the tree are not known.
func (t *tree) unknown() bool { return t.truth().invalid || t.truth().hidden }
