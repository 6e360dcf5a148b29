package gograph

import (
	"slices"
	"strings"

	"landfall.build/engine/targets"
)

// testTarget is the target of a package's tests.
type testTarget struct {
	node targets.Node
	pkg  *pkg
	// named are the paths that its own files name outside of the working folder.
	named []string
	// runs is set if the tests of the packages that it names are part of it too.
	runs bool
}

// reader is a package whose code, without its tests, names paths outside of a folder.
type reader struct {
	pkg             *pkg
	nodes           []targets.Node // its target, and its views
	outside, beside []string
}

// noteReader notes a node of a package, and the paths that the package names, if it names any.
func (a *assembler) noteReader(node targets.Node, p *pkg) {
	r := a.readerOf[p]
	if r == nil {
		r = &reader{pkg: p}
		a.readerOf[p] = r
		for _, one := range p.sources {
			if one.facts == nil {
				continue
			}
			r.beside = append(r.beside, one.facts.beside...)
			for _, name := range one.facts.outside {
				// What a program does with the folders above is up to whoever calls it.
				if p.helpsTests(one) || strings.HasPrefix(name, "../") && !isAbove(name) {
					r.outside = append(r.outside, name)
				}
			}
		}
		if len(r.outside)+len(r.beside) > 0 {
			a.readers = append(a.readers, r)
		}
	}
	r.nodes = append(r.nodes, node)
}

// helpsTests reports whether a file of a package is there for tests: by what it imports, or by the folder's name.
func (p *pkg) helpsTests(one source) bool {
	return isTestFolder(p.folder.path) || slices.Contains(one.facts.imports, "testing")
}

// isTestFolder reports whether the code of a folder is there for tests.
func isTestFolder(dir string) bool { return strings.Contains(nameOf(dir), "test") }

// addReadByTest makes the tests of a package depend on what their files name outside of its folder, where go runs them.
func (a *assembler) addReadByTest(node targets.Node, p *pkg) {
	test := testTarget{node: node, pkg: p}
	for _, one := range p.tests {
		if one.facts != nil {
			test.named = append(test.named, one.facts.outside...)
		}
	}
	test.runs = slices.Contains(test.named, testsToo)
	for _, one := range p.tests {
		if one.facts != nil {
			a.addReads(test, p.folder, one.facts.beside)
		}
	}
	a.addReads(test, p.folder, test.named)
	a.tests = append(a.tests, test)
}

// addReadByHelpers makes tests depend on the paths that the packages they use name: from the test's folder, and, where a package asks
// where its file is, from the package's.
func (a *assembler) addReadByHelpers() {
	for _, r := range a.readers {
		users := a.builder.Dependents(r.nodes)
		for _, test := range a.tests {
			if int(test.node) >= len(users) || !users[test.node] || a.edges > maxEdges {
				continue
			}
			if !test.runs && slices.Contains(r.outside, testsToo) {
				test.runs = true
				a.addReads(test, test.pkg.folder, test.named) // which it may be called with
			}
			a.addReads(test, test.pkg.folder, r.outside)
			if len(r.beside) > 0 {
				a.addReads(test, r.pkg.folder, r.beside)
				a.addReads(test, r.pkg.folder, test.named) // which it may be called with
			}
		}
	}
}

// addReads makes a test depend on paths, from a folder.
func (a *assembler) addReads(test testTarget, from *folder, names []string) {
	for _, name := range names {
		a.addRead(test, from, name)
	}
}

// addRead makes a test depend on a path, from a folder.
func (a *assembler) addRead(test testTarget, from *folder, name string) {
	switch name {
	case ".":
		a.edge(test.node, a.dataNode(from))
		return
	case testsToo:
		return
	case wholeFolder:
		a.addEverything(test, from.path)
		return
	case wholeRepository:
		a.addEverything(test, "")
		return
	case wholeModule:
		if from.module != nil {
			a.addEverything(test, from.module.folder.path)
		}
		return
	}
	if !strings.HasPrefix(name, "..") {
		a.addReadBelow(test, from, name)
		return
	}
	path, ok := join(from.path, name)
	switch {
	case !ok: // It is outside of the repository.
	case path == "" || isWithin(test.pkg.folder.path, path) || isWithin(from.path, path):
		a.addEverything(test, path)
	default:
		a.addNamedOutside(test, path)
	}
}

// addEverything makes a test depend on all that is in and below a folder.
func (a *assembler) addEverything(test testTarget, dir string) {
	a.edge(test.node, a.everythingNode(dir))
	if test.runs {
		a.edge(test.node, a.testTargetsNode(dir))
	}
}

// addNamedOutside makes a test depend on what is at a path.
func (a *assembler) addNamedOutside(test testTarget, path string) {
	a.edge(test.node, a.outsideNode(path))
	if !test.runs {
		return
	}
	if path = a.follow(path, a.links).end; a.folders[path] == nil && strings.HasSuffix(path, ".go") {
		a.addTestTarget(test.node, folderOf(path))
		return
	}
	a.edge(test.node, a.testTargetsNode(path))
}

// addReadBelow makes a test depend on what a text names: what is there by a path below a folder, and a package by its import path.
func (a *assembler) addReadBelow(test testTarget, from *folder, name string) {
	text, all := strings.CutSuffix(name, allPackages)
	if path, ok := join(from.path, text); ok && a.isCode(from, path, all) {
		a.addNamedOutside(test, path)
	}
	w := a.listNodes[test.pkg.folder.module.list]
	switch module := w.longest(text); {
	case module == "":
	case all && w.inside[module] != nil:
		for _, dir := range w.inside[module] {
			a.addEverything(test, below(dir, strings.TrimPrefix(text[len(module):], "/")))
		}
	default:
		a.addImports(test.node, w, []string{text})
		if !test.runs {
			return
		}
		for _, dir := range w.inside[module] {
			a.addTestTarget(test.node, below(dir, strings.TrimPrefix(text[len(module):], "/")))
		}
	}
}

// isCode reports whether a path below a folder leads to anything that is not data of the folder's tests, which depend on these
// already.
func (a *assembler) isCode(from *folder, path string, all bool) bool {
	if f := a.folders[path]; f != nil {
		return !f.hidden || f.pkg != nil && !all
	}
	if a.find(path) >= 0 {
		return strings.HasSuffix(path, ".go") || a.folders[folderOf(path)].module != from.module
	}
	return len(a.follow(path, a.links).via) > 0
}

// isWithin reports whether a folder is another one, or below it.
func isWithin(dir, above string) bool { return above == "" || strings.HasPrefix(dir+"/", above+"/") }

// everythingNode returns the node of all that is in and below a folder.
func (a *assembler) everythingNode(dir string) targets.Node {
	node, ok := a.everything[dir]
	if !ok {
		node = a.builder.Definition("all of "+below(dir, "..."), nil)
		a.everything[dir] = node
		a.edge(node, a.builder.Ref(targets.KindListing, allBelow(dir)))
		if f := a.folders[dir]; f != nil {
			a.addBelow(node, f)
			a.addPrograms(node, f, func(f *folder) bool { return !f.hidden })
		} else {
			a.addPlace(node, dir)
		}
	}
	return node
}

// outsideNode returns the node of a path that tests name. All of them share it.
func (a *assembler) outsideNode(named string) targets.Node {
	if node, ok := a.outside[named]; ok {
		return node
	}
	node := a.builder.Definition("named by tests: "+named, nil)
	a.outside[named] = node
	a.addPath(node, named)
	w := a.follow(named, a.links)
	if len(w.via) > 0 {
		a.eachOnPath(w, func(on targets.Node) { a.edge(node, on) })
		if !w.ok {
			return node
		}
		a.addPath(node, w.end)
	}
	if f := a.folders[folderOf(w.end)]; strings.HasSuffix(w.end, ".go") && a.find(w.end) >= 0 {
		a.addProgram(node, f)
		return node
	}
	if f := a.folders[w.end]; f != nil {
		a.addPrograms(node, f, func(*folder) bool { return true })
	}
	return node
}

// testTargetsNode returns the node of the tests in and below a folder. Which there are decides what everythingNode and outsideNode name.
func (a *assembler) testTargetsNode(dir string) targets.Node {
	node, ok := a.testsBelow[dir]
	if !ok {
		node = a.builder.Definition("tests of "+below(dir, "..."), nil)
		a.testsBelow[dir] = node
		pending := []string{dir}
		for len(pending) > 0 && a.edges <= maxEdges {
			at := pending[len(pending)-1]
			pending = pending[:len(pending)-1]
			a.addTestTarget(node, at)
			if f := a.folders[at]; f != nil {
				for _, sub := range f.subs {
					pending = append(pending, sub.path)
				}
			}
		}
	}
	return node
}

// addTestTarget makes a node depend on the tests of a folder, there or not.
func (a *assembler) addTestTarget(node targets.Node, dir string) {
	a.edge(node, a.builder.Ref(targets.KindListing, testsIn(dir)))
	f := a.folders[dir]
	if f == nil || f.pkg == nil || len(f.pkg.tests) == 0 || f.module == nil {
		return
	}
	switch m := f.module; {
	case m.list == nil:
	case f.hidden:
		a.pending = append(a.pending, pendingView{node: node, list: a.listNodes[m.list], pkg: f.pkg, tests: true})
	default:
		a.edge(node, a.builder.Ref(targets.KindTarget, a.targetName(m, m.rest(dir))+" [test]"))
		a.addRivalNames(m, m.rest(dir), func(on targets.Node) { a.edge(node, on) })
	}
}

// addPrograms makes a node depend on the packages of the folders that count, in and below one.
func (a *assembler) addPrograms(node targets.Node, top *folder, counts func(*folder) bool) {
	pending := []*folder{top}
	for len(pending) > 0 && a.edges <= maxEdges {
		f := pending[len(pending)-1]
		if pending = pending[:len(pending)-1]; counts(f) {
			a.addProgram(node, f)
			pending = append(pending, f.subs...)
		}
	}
}

// addProgram makes a node depend on the package of a folder, which the go command may be told to run.
func (a *assembler) addProgram(node targets.Node, f *folder) {
	m := f.module
	if f.pkg == nil || !f.pkg.hasLibrary(a.snapshot) || m == nil || m.list == nil {
		return
	}
	for at := f; at.parent != nil && at != m.folder; at = at.parent {
		a.edge(node, a.borderNode(at))
	}
	if f.hidden {
		a.edge(node, a.view(a.listNodes[m.list], f.path))
		return
	}
	a.edge(node, a.builder.Ref(targets.KindTarget, a.targetName(m, m.rest(f.path))))
	a.addRivalNames(m, m.rest(f.path), func(on targets.Node) { a.edge(node, on) })
}
