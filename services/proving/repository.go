package proving

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"slices"

	eventsv1 "landfall.build/events/v1"
	"landfall.build/services/analyzer/targets"
)

// maxAtoms bounds the edits of one schedule.
const maxAtoms = 256

// atoms is a set of edits: it is what a tree holds.
type atoms [maxAtoms / 64]uint64

func (s *atoms) add(a *atom)     { s[a.index/64] |= 1 << (a.index % 64) }
func (s atoms) has(a *atom) bool { return s[a.index/64]&(1<<(a.index%64)) != 0 }

// atom is the smallest edit of the model: one landing commit of a change, or one direct push.
type atom struct {
	id    string
	index int
	// paths are the files that it touches, those that no target has among them.
	paths []string
	// edits are the targets whose own source it alters; whoever alters edges alters the source too.
	edits []string
	// adds and drops are dependencies.
	adds, drops []edge
	// creates and deletes are targets, "" for none.
	creates, deletes string
	// needs is what it does not apply without, nil for nothing.
	needs *atom
	// breaks makes the definitions invalid; hides makes the targets of the tree unknown (M4).
	breaks, hides bool
	// mends are atoms whose breaks and hides it repairs; for bugs see there.
	mends []*atom
}

type edge struct{ from, to string }

// bug makes a target, and all that depend on it, red wherever a closure holds all of the atoms and none of
// those that mend it.
type bug struct {
	target string
	atoms  []*atom
	unless []*atom
}

// repository is a model of one: what exists, what breaks, what does not merge.
type repository struct {
	targets []string
	// untested targets have no command: nothing verifies them.
	untested map[string]bool
	deps     []edge
	atoms    []*atom
	byID     map[string]*atom
	bugs     []*bug
	// clashes are sets of two or three atoms of which not all merge.
	clashes [][]*atom

	trees map[atoms]*tree
}

func newRepository() *repository {
	return &repository{untested: map[string]bool{}, byID: map[string]*atom{}, trees: map[atoms]*tree{}}
}

// newAtom adds an edit that does nothing yet.
func (r *repository) newAtom(id string) *atom {
	if len(r.atoms) == maxAtoms {
		panic("more edits than a schedule may have")
	}
	a := &atom{id: id, index: len(r.atoms)}
	r.atoms = append(r.atoms, a)
	r.byID[id] = a
	return a
}

// touch notes that an edit alters a path; edit that it alters a target's source.
func (a *atom) touch(path string) {
	if !slices.Contains(a.paths, path) {
		a.paths = append(a.paths, path)
	}
}

func (a *atom) edit(target string) {
	if !slices.Contains(a.edits, target) {
		a.edits = append(a.edits, target)
	}
	a.touch("src/" + target[2:])
}

// defines says that it alters a definition of targets.
func (a *atom) defines() bool {
	return a.breaks || a.hides || a.creates != "" || a.deletes != "" || len(a.adds)+len(a.drops)+len(a.mends) > 0
}

func sharesPath(a, b *atom) bool {
	return slices.ContainsFunc(a.paths, func(p string) bool { return slices.Contains(b.paths, p) })
}

// apply puts edits on a tree one after the other. If one of them does not merge, obstacle says with what.
func (r *repository) apply(onto *tree, edits []*atom) (trees []*tree, obstacle string) {
	for _, a := range edits {
		if a.needs != nil && !onto.holds.has(a.needs) {
			return trees, "the lack of " + a.needs.id
		}
		for _, c := range r.clashes {
			if slices.Contains(c, a) && !slices.ContainsFunc(c, func(x *atom) bool { return x != a && !onto.holds.has(x) }) {
				for _, x := range c {
					if x != a {
						return trees, x.id
					}
				}
			}
		}
		holds := onto.holds
		holds.add(a)
		onto = r.tree(holds)
		trees = append(trees, onto)
	}
	return trees, ""
}

// tree is the repository with a set of edits.
type tree struct {
	repository *repository
	holds      atoms
	id         string
	// invalid definitions, or targets that cannot be known.
	invalid, hidden bool
	graph           *targets.Graph
	// red are the targets that are truly red.
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
	t.define()
	return t
}

// steps verify every target that is tested, and the whole repository.
var steps = []targets.Command{{Name: "test", Argv: []string{"test"}}}

// define computes all that is true of a tree.
func (t *tree) define() {
	r := t.repository
	var held []*atom
	for _, a := range r.atoms {
		if t.holds.has(a) {
			held = append(held, a)
		}
	}
	exists := map[string]bool{}
	for _, n := range r.targets {
		exists[n] = true
	}
	deps := slices.Clone(r.deps)
	for _, a := range held {
		if a.creates != "" {
			exists[a.creates] = true
		}
		deps = append(deps, a.adds...)
	}
	for _, a := range held {
		delete(exists, a.deletes)
		deps = slices.DeleteFunc(deps, func(e edge) bool { return slices.Contains(a.drops, e) })
	}
	deps = slices.DeleteFunc(deps, func(e edge) bool { return !exists[e.from] })
	closures := map[string]map[string]bool{}
	for n := range exists {
		closures[n] = closure(n, deps)
	}
	for _, e := range deps {
		t.invalid = t.invalid || !exists[e.to] || closures[e.to][e.from]
	}
	for _, a := range held {
		mended := slices.ContainsFunc(held, func(m *atom) bool { return slices.Contains(m.mends, a) })
		t.invalid = t.invalid || a.breaks && !mended
		t.hidden = t.hidden || a.hides && !mended
	}
	switch {
	case t.invalid:
		t.graph = targets.Unknown(t.id, steps, "invalid target definitions")
	case t.hidden:
		t.graph = targets.Unknown(t.id, steps, "a definition that cannot be evaluated")
	default:
		t.graph = r.build(t.id, held, exists, deps)
	}
	t.red = map[string]bool{}
	for n := range exists {
		t.red[n] = !r.untested[n] && slices.ContainsFunc(r.bugs, func(b *bug) bool { return b.shows(closures[n], held) })
	}
}

func closure(from string, deps []edge) map[string]bool {
	seen := map[string]bool{from: true}
	for todo := []string{from}; len(todo) > 0; todo = todo[1:] {
		for _, e := range deps {
			if e.from == todo[0] && !seen[e.to] {
				seen[e.to] = true
				todo = append(todo, e.to)
			}
		}
	}
	return seen
}

// shows says whether a closure has the bug. It is a function of what the closure's sources are, and so of
// its hash.
func (b *bug) shows(closure map[string]bool, held []*atom) bool {
	in := func(a *atom) bool {
		return slices.Contains(held, a) && slices.ContainsFunc(a.edits, func(t string) bool { return closure[t] })
	}
	return closure[b.target] && !slices.ContainsFunc(b.unless, in) &&
		!slices.ContainsFunc(b.atoms, func(a *atom) bool { return !in(a) })
}

// build is the target graph by the production engine.
func (r *repository) build(id string, held []*atom, exists map[string]bool, deps []edge) *targets.Graph {
	b := targets.NewBuilder("model", id)
	for n := range exists {
		commands := steps
		if r.untested[n] {
			commands = nil
		}
		var source []byte
		for _, a := range held {
			if slices.Contains(a.edits, n) {
				source = append(append(source, a.id...), '\n')
			}
		}
		b.Edge(b.Target(n, "test", commands), b.File("src/"+n[2:], 0o100644, string(source)))
	}
	for _, e := range deps {
		b.Edge(b.Ref(targets.KindTarget, e.from), b.Ref(targets.KindTarget, e.to))
	}
	g, err := b.Build()
	if err != nil {
		panic(err)
	}
	return g
}

// version names a target of the tree as a part of a change makes it.
func (t *tree) version(name string, part uint32) *eventsv1.TargetVersion {
	g := t.graph
	if name == targets.Repository {
		g = targets.Whole(t.id, steps)
	}
	node, ok := g.Target(name)
	if !ok {
		return &eventsv1.TargetVersion{Target: name, Part: part, Absent: true}
	}
	return &eventsv1.TargetVersion{
		Target: name, Hash: node.Hash.String(), Part: part, Trivial: len(node.Commands) == 0 && name != targets.Repository,
	}
}

// isRed is the truth about a target of the tree.
func (t *tree) isRed(name string) bool {
	if name != targets.Repository {
		return t.red[name]
	}
	for _, red := range t.red {
		if red {
			return true
		}
	}
	return false
}

// unknown says that the targets of the tree are not known.
func (t *tree) unknown() bool { return t.invalid || t.hidden }
