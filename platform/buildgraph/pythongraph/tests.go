package pythongraph

import (
	"maps"
	"path"
	"slices"
	"strings"

	"landfall.build/engine/targets"
	"landfall.build/platform/buildgraph/glob"
)

// addTests defines a target for each folder that holds tests, and one for those of a project that cannot be collected together.
func (a *assembler) addTests() {
	named, searched := map[*project]map[string][]int32{}, map[*project]map[*folder][]int32{}
	for _, f := range a.all {
		if f.project == nil {
			continue
		}
		files, whole := a.testsIn(f)
		if len(files) == 0 {
			continue
		}
		a.addTest(f, files, whole)
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
		found := p.isTest(name) || a.isDoctest(p, i)
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
			return len(p.testPaths) == 0
		}
		if slices.ContainsFunc(p.passedBy, func(pattern string) bool { ok, _ := path.Match(pattern, nameOf(at.path)); return ok }) {
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
	return slices.ContainsFunc(p.options.doctestGlobs, func(pattern string) bool { ok, _ := path.Match(pattern, name); return ok })
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
		if name := a.name(f, i); strings.HasSuffix(name, ".py") && (all || p.isTest(name) || name == initFile || name == "conftest.py") {
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
			if name := a.name(sub, i); strings.HasSuffix(name, ".py") && name != "conftest.py" && !p.isTest(name) {
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
