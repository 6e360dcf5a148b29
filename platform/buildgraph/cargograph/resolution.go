package cargograph

import (
	"fmt"
	"slices"
)

// resolution is what the lock file of a workspace makes of the dependencies of one crate.
type resolution struct {
	// code and tests are packages of the lock file.
	code, tests []int32
	// missing are the names of those that it does not have.
	missing []string
	// extra is set if the lock file gives the crate what its manifest does not ask for.
	extra []int32
}

// resolution finds a crate's dependencies in the lock file. A manifest gives names and the lock file versions of them: of two
// versions of one name each is taken for what the manifest asks for, so both count.
func (w *workspace) resolution(c *crate) resolution {
	var r resolution
	own := w.lock.folderPackage(c.manifest.pkg.name, c.version())
	var given []int32
	if own >= 0 {
		given = w.lock.packages[own].deps
	}
	claimed := map[int32]bool{}
	for _, d := range w.needs(c) {
		found := false
		for _, i := range given {
			if w.lock.packages[i].name != d.name {
				continue
			}
			found, claimed[i] = true, true
			if d.inFolder {
				continue
			}
			if d.purpose == forTests {
				r.tests = append(r.tests, i)
			} else {
				r.code = append(r.code, i)
			}
		}
		if !found {
			r.missing = append(r.missing, d.name)
		}
	}
	for _, i := range given {
		if !claimed[i] {
			r.extra = append(r.extra, i)
		}
	}
	return r
}

// judge finds what cargo refuses about a workspace as a whole. Every target of it covers that: one package that is not as
// Cargo.lock has it keeps all others from being built with --locked. What is found rests on the manifests, the lock file and
// where each Cargo.toml stands, all of which the workspace's own target covers, so that two changes that only together make
// something wrong meet there.
func (s *survey) judge(w *workspace) {
	complain := func(format string, args ...any) { w.wrong = append(w.wrong, fmt.Sprintf(format, args...)) }
	if w.lost {
		complain("the workspace that is named is none")
	}
	if len(w.members) == 0 {
		complain("there are no members")
	}
	names := map[string]*crate{}
	for _, c := range w.members {
		if other := names[c.manifest.pkg.name]; other != nil {
			complain("%s and %s have one name", other.path, c.path)
		}
		names[c.manifest.pkg.name] = c
	}
	for _, c := range w.built {
		for _, d := range w.needs(c) {
			switch to := s.crates[d.dir]; {
			case !d.inFolder:
			case to == nil || to.manifest.pkg == nil:
				complain("%s has no package in %s", c.path, d.dir)
			case to.manifest.pkg.name != d.name:
				complain("%s has another name for %s", c.path, d.dir)
			}
		}
		if w.lock == nil {
			continue
		}
		if w.lock.folderPackage(c.manifest.pkg.name, c.version()) < 0 {
			complain("Cargo.lock lacks %s", c.path)
		}
		r := w.resolution(c)
		for _, name := range r.missing {
			complain("Cargo.lock lacks %s of %s", name, c.path)
		}
		for _, i := range r.extra {
			complain("Cargo.lock has %s for %s", w.lock.packages[i].id(), c.path)
		}
	}
	if w.lock != nil {
		for _, i := range w.unreached() {
			complain("nothing needs %s of Cargo.lock", w.lock.packages[i].id())
		}
	}
	slices.Sort(w.wrong)
	w.wrong = slices.Compact(w.wrong)
}

// unreached returns the packages of the lock file that no member leads to.
func (w *workspace) unreached() []int32 {
	seen := make([]bool, len(w.lock.packages))
	var pending []int32
	for _, c := range w.members {
		if own := w.lock.folderPackage(c.manifest.pkg.name, c.version()); own >= 0 {
			pending = append(pending, own)
		}
	}
	for len(pending) > 0 {
		i := pending[len(pending)-1]
		pending = pending[:len(pending)-1]
		if seen[i] {
			continue
		}
		seen[i] = true
		pending = append(pending, w.lock.packages[i].deps...)
		if other := w.lock.packages[i].replace; other >= 0 {
			pending = append(pending, other)
		}
	}
	var left []int32
	for i := range seen {
		if !seen[i] {
			left = append(left, int32(i))
		}
	}
	return left
}
