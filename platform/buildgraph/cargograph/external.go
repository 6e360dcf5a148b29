package cargograph

import (
	"slices"

	"landfall.build/engine/targets"
)

// externalNode returns the node of an external package by its name in the lock file.
func (a *assembler) externalNode(w *workspace, id string) targets.Node {
	return a.builder.Ref(targets.KindExternal, "cargo:"+id+" in "+below(w.path, "Cargo.lock"))
}

// addExternals defines the packages of a lock file, each with what it depends on.
func (a *assembler) addExternals(w *workspace) {
	defined := map[string]bool{}
	for i := range w.lock.packages {
		p := &w.lock.packages[i]
		if p.source == "" || defined[p.id()] {
			continue
		}
		defined[p.id()] = true
		node := a.builder.External("cargo:"+p.id()+" in "+below(w.path, "Cargo.lock"), []byte(p.checksum))
		for _, dep := range p.deps {
			a.edge(node, a.lockedNode(w, dep))
		}
		if p.replace >= 0 {
			a.edge(node, a.lockedNode(w, p.replace))
		}
		for _, dir := range w.directories {
			// Cargo vendor gives a folder the package's name, and the version if there are several.
			a.addPath(node, below(dir, p.name))
			a.addPath(node, below(dir, p.name+"-"+p.version))
		}
	}
}

// lockedNode returns the node of a package of the lock file: a crate of the repository if it has no source.
func (a *assembler) lockedNode(w *workspace, i int32) targets.Node {
	p := &w.lock.packages[i]
	if p.source == "" {
		for _, c := range w.built {
			if c.manifest.pkg.name == p.name && c.version() == p.version {
				return a.builtNode(c, w)
			}
		}
	}
	return a.externalNode(w, p.id())
}

// addLocked makes a node depend on the external packages of a crate.
func (a *assembler) addLocked(from targets.Node, c *crate, w *workspace, purpose purpose) {
	if w.lock == nil {
		if slices.ContainsFunc(c.deps, func(d reference) bool { return d.outside && d.purpose == purpose }) {
			a.edge(from, a.externalNode(w, unlocked))
		}
		return
	}
	r := w.resolution(c)
	found := r.code
	if purpose == forTests {
		found = r.tests
	}
	for _, i := range slices.Concat(found, r.extra) {
		a.edge(from, a.lockedNode(w, i))
	}
	for _, name := range r.missing {
		a.edge(from, a.externalNode(w, name))
	}
}

// unlocked names what stands for all external packages of a workspace without a lock file: which versions cargo takes rests
// on all that any package asks for.
const unlocked = "all packages"

func (a *assembler) addUnlocked(w *workspace) {
	node := a.builder.External("cargo:"+unlocked+" in "+below(w.path, "Cargo.lock"), nil)
	for _, c := range w.built {
		a.edge(node, a.manifestNode(c))
	}
	for _, p := range w.patches {
		a.addCrate(node, a.crates[p.dir], w)
		a.addAbsent(node, p)
	}
	for _, dir := range w.directories {
		a.addPath(node, dir)
	}
}

// addDirectories makes what all targets of a workspace rest on depend on those parts of folders with external packages that
// are no package's of the lock file: cargo reads all of them.
func (a *assembler) addDirectories(settings targets.Node, w *workspace) {
	for _, dir := range w.registries {
		a.addPath(settings, dir)
	}
	if w.lock == nil {
		return
	}
	known := map[string]bool{}
	for i := range w.lock.packages {
		p := &w.lock.packages[i]
		known[p.name], known[p.name+"-"+p.version] = true, true
	}
	for _, dir := range w.directories {
		f := a.folders[dir]
		if f == nil {
			a.addPath(settings, dir)
			continue
		}
		for _, i := range f.files {
			a.edge(settings, a.files[i])
		}
		for _, sub := range f.subs {
			if !known[nameOf(sub.path)] {
				a.addPath(settings, sub.path)
			}
		}
	}
}
