package pythongraph

import (
	"maps"
	"slices"
	"strings"

	"landfall.build/engine/targets"
)

// topKey is a top-level name that modules of a project import; the project is nil for those outside all.
type topKey struct {
	project *project
	name    string
}

// top is what answers to a top-level name.
type top struct {
	node    targets.Node
	folders []*folder // packages, in which names below it are looked for
}

// module returns the node of a Python file and of all that importing it takes.
func (a *assembler) module(i int32) targets.Node {
	node, ok := a.modules[i]
	if !ok {
		node = a.builder.Definition(moduleNode(a.entries[i].Path), nil)
		a.modules[i] = node
		a.pending = append(a.pending, i)
	}
	return node
}

// fillModule adds what a module depends on.
func (a *assembler) fillModule(i int32) {
	node, said := a.modules[i], a.facts[i]
	a.edge(node, a.files[i])
	file := a.entries[i].Path
	f := a.folders[folderOf(file)]
	a.addAround(node, f, nameOf(file) == initFile)
	for _, im := range said.imports {
		a.addImport(node, f, im)
	}
	for _, name := range said.names {
		a.importModule(node, f.project, name)
	}
	if a.isTestCode(f, nameOf(file)) {
		a.addOutside(node, f, said)
		if said.manifests {
			a.refDefinition(node, allManifests)
		}
	}
	if said.unread {
		a.noteIncomplete("%s is larger than %d MiB or imports more than %d names", file, maxPythonBytes>>20, maxNames)
	}
	switch {
	case !said.dynamic && !(said.launches && a.isTestCode(f, nameOf(file))):
	case f.project == nil:
		a.addFolder(node, f.path)
	default:
		a.edge(node, a.wholeProject(f.project))
	}
}

// isTestCode reports whether a program that a file starts can be the project's own: it stands among tests, or in no package
// of the project.
func (a *assembler) isTestCode(f *folder, name string) bool {
	if f.project == nil || f.project.isTest(below(f.path, name)) || name == "conftest.py" || namesTests(f) {
		return true
	}
	for at := below(f.path, name); at != f.project.dir(); at = folderOf(at) {
		if _, is := slices.BinarySearch(a.sourcesOf(f.project), at); is {
			return false
		}
	}
	return true
}

// namesTests reports whether a folder is one of tests by its name, or by that of a folder above it in its project.
func namesTests(f *folder) bool {
	if f.project == nil {
		return false
	}
	for name := range strings.SplitSeq(relativeTo(f.project.dir(), f.path), "/") {
		for word := range strings.FieldsFuncSeq(name, func(r rune) bool { return r == '_' || r == '-' }) {
			if word == "test" || word == "tests" || word == "testing" {
				return true
			}
		}
	}
	return false
}

// addAround adds the package that a module is in, and the files beside it that are no modules.
func (a *assembler) addAround(node targets.Node, f *folder, isInit bool) {
	if around := f; !isInit || f.parent != nil {
		if isInit {
			around = f.parent
		}
		a.addInit(node, around)
	}
	a.refDefinition(node, allMarkersName(f.path))
	isRoot := f.project == nil || f.project.folder == f || slices.Contains(f.project.roots, f.path)
	if !f.regular && (f.holdsProjects || isRoot) {
		a.refDefinition(node, filesName(f.path))
	} else {
		a.refDefinition(node, dataName(f.path))
	}
}

// addInit makes a node depend on a folder being a package, or on it being none.
func (a *assembler) addInit(node targets.Node, f *folder) {
	file := below(f.path, initFile)
	i := a.find(file)
	if i < 0 {
		a.ref(node, targets.KindFile, file)
		return
	}
	a.edge(node, a.moduleOrFile(i))
}

// addImport adds what an import in a file of a folder leads to.
func (a *assembler) addImport(node targets.Node, f *folder, im imported) {
	var places []*folder
	if im.level == 0 {
		places = a.importModule(node, f.project, im.module)
	} else {
		at := f
		for range im.level - 1 {
			if at.parent == nil {
				return
			}
			at = at.parent
		}
		a.addInit(node, at)
		places = []*folder{at}
		if im.module != "" {
			places = a.importBelow(node, places, strings.Split(im.module, "."))
		}
	}
	switch im.name {
	case "":
	case "*":
		for _, place := range places {
			a.addStar(node, place)
		}
	default:
		a.importBelow(node, places, []string{im.name})
	}
}

// addStar adds what __all__ of a package can name.
func (a *assembler) addStar(node targets.Node, f *folder) {
	a.refListing(node, codeBelow(f.path))
	for _, i := range f.files {
		if strings.HasSuffix(a.entries[i].Path, ".py") {
			a.edge(node, a.moduleOrFile(i))
		}
	}
	for _, sub := range f.subs {
		if sub.coded {
			a.addInit(node, sub)
		}
	}
}

// importModule adds what "import a.b.c" in a project's module leads to, and returns the packages that it can be.
func (a *assembler) importModule(node targets.Node, p *project, module string) []*folder {
	name, rest, more := strings.Cut(module, ".")
	t := a.top(p, name)
	a.edge(node, t.node)
	if !more {
		return t.folders
	}
	return a.importBelow(node, t.folders, strings.Split(rest, "."))
}

// importBelow adds what names lead to, one within the other, and returns the packages that the last one can be.
func (a *assembler) importBelow(node targets.Node, places []*folder, names []string) []*folder {
	for _, name := range names {
		var next []*folder
		for _, f := range places {
			if found := a.answer(node, f.path, name); found != nil {
				next = append(next, found)
			}
		}
		places = next
	}
	return places
}

// answer adds what answers to a name in a folder, there or not, and returns the package among it. What is added must not rest
// on the folder being there: two changes can make and unmake that together.
func (a *assembler) answer(node targets.Node, dir, name string) *folder {
	a.refListing(node, answerName(dir, name))
	a.refListing(node, binariesName(dir))
	f := a.folders[dir]
	if f == nil {
		return nil
	}
	if i := a.find(below(f.path, name+".py")); i >= 0 {
		a.edge(node, a.moduleOrFile(i))
	}
	// A symbolic link or a submodule.
	if i := a.find(below(f.path, name)); i >= 0 && !a.isFile(i) {
		a.edge(node, a.moduleOrFile(i))
	}
	for _, i := range a.beginning(f, name+".") {
		if file := a.name(f, i); isData(file) && moduleName(file) == name {
			a.edge(node, a.files[i])
		}
	}
	sub := a.folders[below(f.path, name)]
	if sub == nil || !sub.coded {
		return nil
	}
	a.addInit(node, sub)
	a.addPresence(node, sub)
	return sub
}

// addPresence makes a node depend on a package being there. One without an __init__.py is there because of any module below.
func (a *assembler) addPresence(node targets.Node, f *folder) {
	a.refListing(node, initName(f.path))
	if !f.regular {
		a.refListing(node, codeBelow(f.path))
	}
}

// addCandidate makes a node depend on whether a folder holds an answer to a top-level name that counts.
func (a *assembler) addCandidate(node targets.Node, f *folder, name string) {
	a.refListing(node, initName(f.path))
	a.refListing(node, initName(below(f.path, name)))
	if sub := a.folders[below(f.path, name)]; sub != nil && sub.coded && !a.isProjectNamed(f, name) {
		a.addPresence(node, sub)
	}
}

// top returns what answers to a top-level name that modules of a project import.
func (a *assembler) top(p *project, name string) *top {
	key := topKey{p, name}
	if t := a.tops[key]; t != nil {
		return t
	}
	t := &top{}
	a.tops[key] = t
	candidates := a.index[name]
	var seen, found bool
	if p != nil {
		for _, f := range candidates {
			if f.project == nil || !p.reach[f.project.index] {
				continue
			}
			seen = true
			if a.isProjectNamed(f, name) {
				continue
			}
			if f.isRoot() {
				found = true
				if sub := a.folders[below(f.path, name)]; sub != nil && sub.coded {
					t.add(sub)
				}
			}
		}
	}
	outside := a.outsideRoots(p)
	if !seen && len(candidates) == 0 && len(outside) == 0 {
		t.node = a.builder.Ref(targets.KindListing, wholeIndexName(name))
		return t
	}
	t.node = a.builder.Definition("python:"+name+" imported in "+p.label(), nil)
	if seen {
		a.edge(t.node, a.seenFrom(p, name))
		for _, q := range p.usesAll {
			a.edge(t.node, a.seenFrom(q, name))
		}
	}
	for _, dir := range outside {
		t.add(a.answer(t.node, dir, name))
	}
	if found {
		return t
	}
	// It is installed, or of the standard library, or found by a path that the code makes: then it can be anywhere.
	a.refListing(t.node, wholeIndexName(name))
	for _, f := range candidates {
		a.addCandidate(t.node, f, name)
		if a.isProjectNamed(f, name) {
			continue
		}
		if !f.regular || f.project == p && p != nil && !standardModules[name] {
			t.add(a.answer(t.node, f.path, name))
		}
	}
	return t
}

// isProjectNamed reports whether all that answers to a name in a folder is the folder of a project, which is no package.
func (a *assembler) isProjectNamed(f *folder, name string) bool {
	sub := a.folders[below(f.path, name)]
	return sub != nil && !sub.regular && sub.project != nil && sub.project.folder == sub && a.find(below(f.path, name+".py")) < 0
}

// label names a project in definitions.
func (p *project) label() string {
	if p == nil {
		return "no project"
	}
	return below(p.dir(), ".")
}

func (t *top) add(f *folder) {
	if f != nil && !slices.Contains(t.folders, f) {
		t.folders = append(t.folders, f)
	}
}

// isRoot reports whether top-level modules are looked for in a folder: in one that is no package itself, and in those that
// its project names.
func (f *folder) isRoot() bool { return !f.regular || slices.Contains(f.project.roots, f.path) }

// outsideRoots returns the folders in which a project looks for modules and which are none of its own.
func (a *assembler) outsideRoots(p *project) []string {
	roots := a.loading.loader.options.Roots
	if p == nil {
		return roots
	}
	var outside []string
	for _, dir := range slices.Concat(p.roots, roots) {
		if a.ownerOf(dir) != p {
			outside = append(outside, dir)
		}
	}
	return outside
}

// ownerOf returns the project of a folder, there or not.
func (s *survey) ownerOf(dir string) *project {
	for s.folders[dir] == nil {
		dir = folderOf(dir)
	}
	return s.folders[dir].project
}

// seenFrom returns the node of what answers to a top-level name in a project and in those that it uses.
func (a *assembler) seenFrom(p *project, name string) targets.Node {
	key := seenKey{p, name}
	if node, ok := a.seen[key]; ok {
		return node
	}
	node := a.builder.Definition(seenName(p, name), nil)
	a.seen[key] = node
	a.refListing(node, indexName(p, name))
	a.refDefinition(node, allMarkersName(p.dir()))
	for _, f := range a.index[name] {
		if f.project != p {
			continue
		}
		a.addCandidate(node, f, name)
		if f.isRoot() && !a.isProjectNamed(f, name) {
			a.answer(node, f.path, name)
		}
	}
	for _, q := range p.uses {
		a.edge(node, a.seenFrom(q, name))
	}
	return node
}

// hidden returns the node of the modules that can hide one of the standard library's or pytest's: those of a project, and of the
// projects that it uses.
func (a *assembler) hidden(p *project) targets.Node {
	node := a.builder.Ref(targets.KindDefinition, hidingName(p.label()))
	if a.settled[hidingName(p.label())] {
		return node
	}
	a.settled[hidingName(p.label())] = true
	a.builder.Definition(hidingName(p.label()), nil)
	a.refListing(node, hidingName(p.label()))
	a.refDefinition(node, allMarkersName(p.dir()))
	for _, name := range slices.Sorted(maps.Keys(hiding)) {
		for _, f := range a.index[name] {
			if f.project != p {
				continue
			}
			a.addCandidate(node, f, name)
			if f.isRoot() && !a.isProjectNamed(f, name) {
				a.answer(node, f.path, name)
			}
		}
	}
	for _, dir := range a.outsideRoots(p) {
		a.edge(node, a.hiddenIn(dir))
	}
	for _, q := range p.usesAll {
		a.edge(node, a.hidden(q))
	}
	return node
}

// hiddenIn returns the node of such modules in a folder in which a project looks for modules and which is none of its own.
func (a *assembler) hiddenIn(dir string) targets.Node {
	name := hidingName(below(dir, "*"))
	node := a.builder.Ref(targets.KindDefinition, name)
	if a.settled[name] {
		return node
	}
	a.settled[name] = true
	a.builder.Definition(name, nil)
	for _, one := range slices.Sorted(maps.Keys(hiding)) {
		a.answer(node, dir, one)
	}
	return node
}

// wholeProject returns the node of everything in a project, and in those that it uses: for code that imports or runs what
// its text does not name.
func (a *assembler) wholeProject(p *project) targets.Node {
	if node, ok := a.whole[p]; ok {
		return node
	}
	node := a.builder.Definition(wholeName(p.dir()), nil)
	a.whole[p] = node
	a.refListing(node, allBelow(p.dir()))
	a.refDefinition(node, allMarkersName(p.dir()))
	for _, f := range a.areaOf(p) {
		a.refDefinition(node, filesName(f.path))
		for _, i := range f.files {
			if strings.HasSuffix(a.entries[i].Path, ".py") {
				a.edge(node, a.moduleOrFile(i))
			}
		}
	}
	for _, q := range p.usesAll {
		a.edge(node, a.wholeProject(q))
	}
	return node
}

// areaOf returns the folders of a project.
func (a *assembler) areaOf(p *project) []*folder {
	if len(a.areas) == 0 {
		for _, f := range a.all {
			if f.project != nil {
				a.areas[f.project] = append(a.areas[f.project], f)
			}
		}
	}
	return a.areas[p]
}
