package proof

import (
	"fmt"
	"math/rand/v2"
	"slices"
)

// editor draws the model's repository and the edits that people make.
type editor struct {
	r    *rand.Rand
	repo *repository
	// peace is how seldom two edits have to do with each other: one pair in so many breaks together, one does
	// not merge.
	peace int
	// created counts the targets that edits create.
	created int
}

// newEditor makes a repository with a few targets, each of which may depend on earlier ones.
func newEditor(r *rand.Rand) *editor {
	e := &editor{r: r, repo: newRepository(), peace: 28}
	for i := range 3 + r.IntN(6) {
		t := fmt.Sprintf("//t%d", i)
		e.repo.targets = append(e.repo.targets, t)
		e.repo.untested[t] = r.IntN(10) == 0
		for j := range i {
			if r.IntN(4) == 0 {
				e.repo.deps = append(e.repo.deps, edge{t, e.repo.targets[j]})
			}
		}
	}
	return e
}

func (e *editor) one(in int) bool { return e.r.IntN(in) == 0 }

func (e *editor) target() string { return e.repo.targets[e.r.IntN(len(e.repo.targets))] }

// atom draws an edit; red raises the chance that it breaks something by itself. It may have to do with
// any that was drawn before.
func (e *editor) atom(id string, red bool) *atom {
	others := slices.Clone(e.repo.atoms)
	a := e.repo.newAtom(id)
	if e.one(10) {
		a.touch(fmt.Sprintf("docs/%d", e.r.IntN(3)))
	} else {
		for range 1 + e.r.IntN(2) {
			a.edit(e.target())
		}
		e.structure(a)
	}
	if red && e.one(2) || e.one(7) {
		if len(a.edits) == 0 {
			a.edit(e.target())
		}
		e.repo.newBug(a.edits[0], a)
	}
	if n := len(e.repo.bugs); n > 0 && e.one(max(2, e.peace/4)) {
		b := e.repo.bugs[e.r.IntN(n)]
		if !slices.Contains(b.atoms, a) {
			a.edit(b.target)
			b.unless = append(b.unless, a)
		}
	}
	e.relate(a, others)
	return a
}

// structure draws what an edit does to the definitions of targets.
func (e *editor) structure(a *atom) {
	r := e.repo
	if e.one(6) && len(r.targets) > 1 {
		from, to := e.target(), e.target()
		if !r.depends(to, from) && !slices.Contains(r.deps, edge{from, to}) {
			a.adds = append(a.adds, edge{from, to})
			a.edit(from)
		}
	}
	if e.one(20) && len(r.deps) > 0 {
		d := r.deps[e.r.IntN(len(r.deps))]
		a.drops = append(a.drops, d)
		a.edit(d.from)
	}
	if e.one(20) {
		e.created++
		a.creates = fmt.Sprintf("//n%d", e.created)
		a.edit(a.creates)
		if e.one(2) {
			a.adds = append(a.adds, edge{a.creates, e.target()})
		}
	}
	if e.one(16) {
		a.deletes = e.target()
		a.edits = slices.DeleteFunc(a.edits, func(t string) bool { return t == a.deletes })
		a.adds = slices.DeleteFunc(a.adds, func(d edge) bool { return d.from == a.deletes || d.to == a.deletes })
		a.touch("src/" + a.deletes[2:])
		for _, d := range r.deps {
			if d.to == a.deletes {
				a.drops = append(a.drops, d)
				a.edit(d.from)
			}
		}
	}
	a.breaks, a.hides = e.one(40), e.one(50)
}

// depends says that a target depends on another, or is it, before any edit.
func (r *repository) depends(from, on string) bool {
	l := r.layout(nil)
	return l.closure[l.number[from]]&(1<<l.number[on]) != 0
}

// relate draws which earlier edits it breaks together with, does not merge with, or needs.
func (e *editor) relate(a *atom, others []*atom) {
	r := e.repo
	for _, x := range others {
		deletes := func(a, x *atom) bool { return a.deletes != "" && slices.Contains(x.edits, a.deletes) }
		if deletes(a, x) || deletes(x, a) {
			r.clash(x, a)
			continue
		}
		switch e.r.IntN(e.peace) {
		case 0:
			both := append(slices.Clone(x.edits), a.edits...)
			if len(x.edits) > 0 && len(a.edits) > 0 {
				r.newBug(both[e.r.IntN(len(both))], x, a)
				break
			}
			r.clash(x, a)
		case 1:
			r.clash(x, a)
		}
	}
	if len(others) >= 2 && e.one(14) {
		i, j := e.r.IntN(len(others)), e.r.IntN(len(others))
		if i != j {
			r.clash(others[i], others[j], a)
		}
	}
	if len(others) > 0 && e.one(14) {
		a.needs = others[e.r.IntN(len(others))]
		r.share(a, a.needs)
	}
}

// clash makes edits such that not all of them merge: they touch a file that no target has.
func (r *repository) clash(edits ...*atom) {
	for _, a := range edits {
		var others atoms
		for _, x := range edits {
			if x != a {
				others.add(x)
			}
		}
		a.clashes = append(a.clashes, others)
	}
	r.share(edits...)
}

func (r *repository) share(edits ...*atom) {
	path := fmt.Sprintf("docs/shared-%d", edits[0].index)
	for _, a := range edits {
		a.touch(path)
	}
}

// repair makes an edit that mends all that is wrong with a tree, nil if nothing is.
func (r *repository) repair(id string, t *tree) *atom {
	red := t.isRed("//:repository")
	if !red && !t.unknown() {
		return nil
	}
	a := r.newAtom(id)
	for _, b := range r.bugs {
		if t.holds.holds(b.all) {
			b.unless = append(b.unless, a)
			a.edit(b.target)
		}
	}
	for _, x := range r.atoms {
		if t.holds.has(x) && (x.breaks || x.hides) {
			a.mends = append(a.mends, x)
			a.touch("definitions")
		}
	}
	return a
}
