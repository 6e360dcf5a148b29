package proof

import (
	"math/bits"
	"slices"
)

// Bounds of one schedule: its edits, and the files that they touch.
const (
	maxAtoms = 256
	maxPaths = 512
)

// atoms is a set of edits: it is what a tree holds.
type atoms [maxAtoms / 64]uint64

func (s *atoms) add(a *atom)     { s[a.index/64] |= 1 << (a.index % 64) }
func (s atoms) has(a *atom) bool { return s[a.index/64]&(1<<(a.index%64)) != 0 }

// holds says that all of o are in s.
func (s atoms) holds(o atoms) bool {
	for i := range s {
		if o[i]&^s[i] != 0 {
			return false
		}
	}
	return true
}

// list gives the edits of a repository that are in the set, in the order in which they were made.
func (s atoms) list(r *repository) (list []*atom) {
	for i, word := range s {
		for ; word != 0; word &= word - 1 {
			list = append(list, r.atoms[64*i+bits.TrailingZeros64(word)])
		}
	}
	return list
}

// atom is the smallest edit of the model: one landing commit of a change, or one direct push.
type atom struct {
	id         string
	index      int
	repository *repository
	// paths are the files that it touches, by number, those that no target has among them.
	paths [maxPaths / 64]uint64
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
	// clashes are sets of others of which it does not merge on top of all.
	clashes []atoms
}

type edge struct{ from, to string }

// bug makes a target, and all that depend on it, red wherever a closure holds all of the atoms and none of
// those that mend it.
type bug struct {
	target string
	atoms  []*atom
	unless []*atom
	all    atoms // of atoms
}

func (r *repository) newBug(target string, atoms ...*atom) {
	b := &bug{target: target, atoms: atoms}
	for _, a := range atoms {
		b.all.add(a)
	}
	r.bugs = append(r.bugs, b)
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

	// reading is appended to the hash of each version. Another one stands for another configuration.
	reading string
	// readings holds all of them, in order.
	readings []string

	trees map[atoms]*tree
	paths map[string]int
}

func newRepository() *repository {
	return &repository{readings: []string{""}, untested: map[string]bool{}, byID: map[string]*atom{}, trees: map[atoms]*tree{}, paths: map[string]int{}}
}

// newAtom adds an edit that does nothing yet.
func (r *repository) newAtom(id string) *atom {
	if len(r.atoms) == maxAtoms {
		panic("more edits than a schedule may have")
	}
	a := &atom{id: id, index: len(r.atoms), repository: r}
	r.atoms = append(r.atoms, a)
	r.byID[id] = a
	return a
}

// touch notes that an edit alters a path; edit that it alters a target's source.
func (a *atom) touch(path string) {
	number, known := a.repository.paths[path]
	if !known {
		number = len(a.repository.paths)
		a.repository.paths[path] = number
	}
	a.paths[number/64] |= 1 << (number % 64)
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
	for i, word := range a.paths {
		if word&b.paths[i] != 0 {
			return true
		}
	}
	return false
}

// apply puts edits on a tree one after the other. If one of them does not merge, obstacle says with what.
func (r *repository) apply(onto *tree, edits []*atom) (trees []*tree, obstacle string) {
	for _, a := range edits {
		if a.needs != nil && !onto.holds.has(a.needs) {
			return trees, "the lack of " + a.needs.id
		}
		for _, others := range a.clashes {
			if onto.holds.holds(others) {
				return trees, others.list(r)[0].id
			}
		}
		holds := onto.holds
		holds.add(a)
		onto = r.tree(holds)
		trees = append(trees, onto)
	}
	return trees, ""
}
