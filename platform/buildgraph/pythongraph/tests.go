package pythongraph

import (
	"maps"
	"slices"
	"strings"

	"landfall.build/engine/targets"
	"landfall.build/platform/buildgraph/glob"
)

// addTests defines a target for each folder that holds tests, and one for those of a project that cannot be collected together; or
// one for all tests of a project where they are not those of modules alone.
func (a *assembler) addTests() {
	tests, refused := map[*project][]int32{}, a.refused()
	named, searched := map[*project]map[string][]int32{}, map[*project]map[*folder][]int32{}
	for _, f := range a.all {
		if f.project == nil || f.project.collects {
			continue
		}
		files, whole := a.testsIn(f)
		if len(files) == 0 {
			continue
		}
		a.addTest(f, files, whole)
		tests[f.project] = append(tests[f.project], files...)
		if f.project.options.importlib {
			continue
		}
		if named[f.project] == nil {
			named[f.project], searched[f.project] = map[string][]int32{}, map[*folder][]int32{}
		}
		root := searchedFor(f)
		searched[f.project][root] = append(searched[f.project][root], files...)
		for _, i := range files {
			if name := a.importName(f, i); name != "" {
				named[f.project][name] = append(named[f.project][name], i)
			}
		}
	}
	for _, p := range a.projects {
		if p.collects {
			a.addWhole(p)
			continue
		}
		if refused[p] && len(tests[p]) > 0 {
			a.addCollectAll(p, tests[p])
			continue
		}
		var same []int32
		for _, name := range slices.Sorted(maps.Keys(named[p])) {
			if files := named[p][name]; len(files) > 1 {
				same = append(same, files...)
			}
		}
		same = append(same, a.rivals(searched[p])...)
		if slices.Sort(same); len(same) > 0 {
			a.addCollect(p, slices.Compact(same))
		}
	}
}

// refused returns the projects of which pytest can refuse the tests together whatever their names are: a conftest.py below the top
// names plugins or adds options, or several files add options.
func (a *assembler) refused() map[*project]bool {
	refused, adding := map[*project]bool{}, map[*project][]string{}
	for _, f := range a.all {
		if f.project == nil {
			continue
		}
		for _, i := range f.files {
			said := a.facts[i]
			if said == nil {
				continue
			}
			if said.options {
				adding[f.project] = append(adding[f.project], a.entries[i].Path)
			}
			below := a.name(f, i) == "conftest.py" && (said.options || said.plugins) && !f.project.loadsFirst(f)
			refused[f.project] = refused[f.project] || below || len(adding[f.project]) > 1
		}
	}
	for _, p := range a.projects {
		if len(adding[p]) > 0 {
			a.builder.Listing(optionsName(p), adding[p])
		}
	}
	return refused
}

// loadsFirst reports whether pytest loads the conftest.py in a folder before it looks for tests: in the project's, and in those
// there whose names begin with "test".
func (p *project) loadsFirst(f *folder) bool {
	return f == p.folder || f.parent == p.folder && strings.HasPrefix(nameOf(f.path), "test")
}

// searchedFor returns the folder in which pytest has Python look for the tests in a folder.
func searchedFor(f *folder) *folder {
	for f.regular && f.parent != nil {
		f = f.parent
	}
	return f
}

// rivals returns those of some tests beside which there is a module of a name that another folder has as well: in one run all import
// the first of them. The tests are given by the folder in which pytest has Python look for their modules.
func (a *assembler) rivals(searched map[*folder][]int32) (tests []int32) {
	having := map[string][]*folder{}
	for f := range searched {
		a.answers(f, func(name, _ string) {
			if name != "conftest" && !slices.Contains(having[name], f) {
				having[name] = append(having[name], f)
			}
		})
	}
	for _, folders := range having {
		if len(folders) > 1 {
			for _, f := range folders {
				tests = append(tests, searched[f]...)
			}
		}
	}
	return tests
}

// testsIn returns the files of a folder that pytest collects for its project. whole reports whether they are what it collects for
// the folder.
func (a *assembler) testsIn(f *folder) (files []int32, whole bool) {
	p := f.project
	for _, ignored := range a.loading.loader.options.IgnoreFolders {
		if within(f.path, ignored) {
			return nil, false
		}
	}
	searched := a.isSearched(f)
	whole = true
	for _, i := range f.files {
		name := a.name(f, i)
		found := p.isTest(a.entries[i].Path) || a.isDoctest(p, i)
		collected := found && searched || strings.HasSuffix(name, ".py") && name != initFile && name != "conftest.py" &&
			slices.ContainsFunc(p.testPaths, func(t glob.Pattern) bool { return t.MatchesFile(a.entries[i].Path) })
		if collected {
			files = append(files, i)
		}
		whole = whole && found == collected
	}
	return files, whole
}

// isSearched reports whether pytest looks for tests in a folder.
func (a *assembler) isSearched(f *folder) bool {
	p := f.project
	for at := f; ; at = at.parent {
		if slices.ContainsFunc(p.testPaths, func(t glob.Pattern) bool { return t.MatchesFolder(at.path) }) {
			return true
		}
		if at == p.folder {
			return !p.bound
		}
		if slices.ContainsFunc(p.passedBy, func(pattern string) bool { return matchesPath(pattern, at.path) }) {
			return false
		}
	}
}

// isDoctest reports whether the settings of pytest make tests of the examples in a file.
func (a *assembler) isDoctest(p *project, i int32) bool {
	name := nameOf(a.entries[i].Path)
	if f := a.facts[i]; f != nil && p.options.doctestModules && name != "setup.py" && name != "__main__.py" && (f.examples || f.unread) {
		return true
	}
	if len(p.options.doctestGlobs) == 0 {
		return a.examples[i]
	}
	return slices.ContainsFunc(p.options.doctestGlobs, func(pattern string) bool { return fnmatch(pattern, name) })
}

// addTest defines the target of the tests in a folder.
func (a *assembler) addTest(f *folder, files []int32, whole bool) {
	p := f.project
	s := a.siteOf(p, f.path)
	var commands []targets.Command
	if whole {
		commands = expand(a.steps(p).Test, s)
	} else {
		for _, i := range files {
			s.folder = relativeTo(p.dir(), a.entries[i].Path)
			for _, c := range expand(a.steps(p).Test, s) {
				c.Name += " " + a.name(f, i)
				commands = append(commands, c)
			}
		}
	}
	target := a.builder.Target(targetName(f.path, " [test]"), "test", commands)
	a.addTestNeeds(target, p, f.path, files)
	for at := f; at != p.folder; at = at.parent {
		a.addInit(target, at.parent) // pytest imports it, also of a folder above one that is no package.
	}
	a.refDefinition(target, allMarkersName(f.path))
	if !p.options.importlib {
		a.answers(searchedFor(f), func(name, _ string) { a.edge(target, a.sameNamed(p, name)) })
	}
	all := namesTests(f)
	if f.holdsProjects && !all {
		a.refDefinition(target, ownDataName(f.path))
	} else {
		a.refDefinition(target, dataName(f.path))
	}
	for _, i := range f.files {
		if name := a.name(f, i); strings.HasSuffix(name, ".py") && (all || p.isTest(a.entries[i].Path) || name == initFile || name == "conftest.py") {
			a.edge(target, a.moduleOrFile(i))
		}
	}
	if !all {
		return
	}
	// Helpers that are found by their path. Tests below are targets of their own.
	for pending := slices.Clone(f.subs); len(pending) > 0; {
		sub := pending[len(pending)-1]
		pending = append(pending[:len(pending)-1], sub.subs...)
		for _, i := range sub.files {
			if name := a.name(sub, i); strings.HasSuffix(name, ".py") && name != "conftest.py" && !p.isTest(a.entries[i].Path) {
				a.edge(target, a.moduleOrFile(i))
			}
		}
	}
}

// addTestNeeds adds what tests in a folder need, whatever they are.
func (a *assembler) addTestNeeds(target targets.Node, p *project, dir string, files []int32) {
	a.addCommon(target, dir)
	a.refDefinition(target, developName(p.dir()))
	a.edge(target, a.settings(dir))
	a.refListing(target, optionsName(p))
	a.edge(target, a.plugins(p))
	a.edge(target, a.hidden(p))
	for _, q := range p.usesAll {
		a.edge(target, a.plugins(q))
	}
	for _, name := range p.loads {
		a.importModule(target, p, name)
	}
	for _, i := range files {
		a.edge(target, a.moduleOrFile(i))
		if a.isDoctest(p, i) {
			a.edge(target, a.wholeProject(p)) // What examples import is not read.
		}
		if name := moduleName(nameOf(a.entries[i].Path)); name != "" {
			a.edge(target, a.sameNamed(p, name))
		}
	}
}

// importName returns the name under which pytest imports a test module unless it is told otherwise: with those of the packages that
// it is in. It is empty for what is no module.
func (a *assembler) importName(f *folder, i int32) string {
	name := moduleName(a.name(f, i))
	for at := f; name != "" && at.regular && at.parent != nil; at = at.parent {
		name = nameOf(at.path) + "." + name
	}
	return name
}

// sameNamed returns the node of what decides which modules of a project have one name for pytest.
func (a *assembler) sameNamed(p *project, name string) targets.Node {
	key := sameName(p, name)
	node := a.builder.Ref(targets.KindDefinition, key)
	if a.settled[key] {
		return node
	}
	a.settled[key] = true
	a.builder.Definition(key, nil)
	a.refListing(node, indexName(p, name))
	for _, f := range a.index[name] {
		for at := f; f.project == p; at = at.parent {
			a.refListing(node, initName(at.path))
			if !at.regular || at.parent == nil {
				break
			}
		}
	}
	return node
}

// maxCollected bounds how many files one command names. With more it is given the whole folder.
const maxCollected = 1000

// addCollect defines the target of test modules that have one name in several folders: pytest runs each folder, but not all of
// them together.
func (a *assembler) addCollect(p *project, files []int32) {
	s := a.siteOf(p, p.dir())
	for _, i := range files {
		s.tests = append(s.tests, relativeTo(p.dir(), a.entries[i].Path))
	}
	if len(s.tests) > maxCollected {
		s.tests = []string{"."}
	}
	target := a.builder.Target(targetName(p.dir(), " [collect]"), "test", expand(a.steps(p).Collect, s))
	a.addTestNeeds(target, p, p.dir(), files)
	for _, i := range files {
		a.edge(target, a.settings(folderOf(a.entries[i].Path)))
	}
}

// addCollectAll defines the target of all tests of a project, which pytest collects as where nothing is named: then it loads a
// conftest.py later than for the folder.
func (a *assembler) addCollectAll(p *project, files []int32) {
	s := a.siteOf(p, p.dir())
	s.tests = a.apart(p)
	target := a.builder.Target(targetName(p.dir(), " [collect]"), "test", expand(a.steps(p).Collect, s))
	a.addTestNeeds(target, p, p.dir(), files)
	a.refDefinition(target, codeName(p.dir()))
	if p.options.doctests() {
		a.edge(target, a.wholeProject(p))
	}
	for _, i := range files {
		a.edge(target, a.settings(folderOf(a.entries[i].Path)))
	}
	for _, f := range a.areaOf(p) {
		if f.coded {
			a.edge(target, a.settings(f.path))
		}
	}
}

// apart returns the options with which pytest passes by what stands in a project's folder and is none of its tests.
func (a *assembler) apart(p *project) (options []string) {
	add := func(dir string) { options = append(options, "--ignore="+relativeTo(p.dir(), dir)) }
	for pending := []*folder{p.folder}; len(pending) > 0; {
		f := pending[len(pending)-1]
		pending = pending[:len(pending)-1]
		for _, sub := range f.subs {
			if sub.project != p {
				add(sub.path)
			} else if sub.holdsProjects {
				pending = append(pending, sub)
			}
		}
	}
	for _, dir := range a.loading.loader.options.IgnoreFolders {
		if dir != p.dir() && within(dir, p.dir()) {
			add(dir)
		}
	}
	slices.Sort(options)
	return options
}
