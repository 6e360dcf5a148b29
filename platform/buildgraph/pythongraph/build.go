package pythongraph

import (
	"slices"
	"strings"

	"landfall.build/engine/targets"
	"landfall.build/platform/buildgraph/glob"
)

// addInputs defines what the options say that targets depend on besides.
func (a *assembler) addInputs() {
	for n, in := range a.loading.loader.inputs {
		node := a.defineText("python:input " + strings.Repeat("+", n))
		for i := range a.entries {
			if slices.ContainsFunc(in.files, func(p glob.Pattern) bool { return p.MatchesFile(a.entries[i].Path) }) {
				a.edge(node, a.moduleOrFile(int32(i)))
			}
		}
		a.inputNodes = append(a.inputNodes, node)
	}
}

// addCommon adds what every target of a folder depends on.
func (a *assembler) addCommon(target targets.Node, dir string) {
	a.edge(target, a.environment)
	for n, in := range a.loading.loader.inputs {
		if len(in.folders) == 0 || slices.ContainsFunc(in.folders, func(p glob.Pattern) bool { return p.MatchesFolder(dir) }) {
			a.edge(target, a.inputNodes[n])
		}
	}
}

// steps returns the templates for a project.
func (a *assembler) steps(p *project) Steps {
	commands := a.loading.loader.options.Commands
	switch p.kind {
	case uvProject:
		return commands.UV
	case poetryProject:
		return commands.Poetry
	}
	return commands.Plain
}

// siteOf returns where the templates for a target of a project are applied.
func (a *assembler) siteOf(p *project, dir string) site {
	s := site{project: p.dir(), folder: relativeTo(p.dir(), dir), name: p.name}
	if p.options.coverage {
		s.coverage = " --no-cov"
	}
	if p.py != nil {
		s.pytest = p.py.bringsPytest.option(p.kind)
		if root := a.pyprojects[folderOf(p.lock)]; p.kind == uvProject && !p.py.bringsPytest.Declared && root != nil && root.pytestGroup != "" {
			s.pytest = " --group " + root.pytestGroup
		}
	}
	for _, root := range p.roots {
		s.roots = append(s.roots, climb(p.dir(), root))
	}
	if p.native {
		s.refresh = p.distributions()
	}
	for i, reached := range p.reach {
		if reached && i != p.index {
			q := a.projects[i]
			s.refresh = append(s.refresh, q.distributions()...)
			s.roots = append(s.roots, climb(p.dir(), q.dir()), climb(p.dir(), below(q.dir(), "src")))
		}
	}
	for _, root := range a.loading.loader.options.Roots {
		s.roots = append(s.roots, climb(p.dir(), root))
	}
	return s
}

// distributions returns the names under which a project can be installed, as far as an option can name them.
func (p *project) distributions() []string {
	var names []string
	for _, name := range p.names {
		if name = normalName(name); isPlainName(name) {
			names = append(names, name)
		}
	}
	return unique(names)
}

// isPlainName reports whether a normal name is one of a distribution, which a shell takes for one word.
func isPlainName(name string) bool {
	return name != "" && name[0] != '-' && !strings.ContainsFunc(name, func(r rune) bool { return r != '-' && (r < 'a' || r > 'z') && (r < '0' || r > '9') })
}

// addPackage defines the target of a project.
func (a *assembler) addPackage(p *project) {
	s := a.siteOf(p, p.dir())
	sources := a.sourcesOf(p)
	for _, source := range sources {
		s.sources = append(s.sources, relativeTo(p.dir(), source))
		if name := a.importable(p, source); name != "" {
			s.importable = append(s.importable, name)
		}
	}
	if a.find(below(p.dir(), "setup.py")) >= 0 {
		s.sources = append(s.sources, "setup.py") // which addProjectFiles has among the inputs
	}
	target := a.builder.Target(targetName(p.dir(), ""), "package", expand(a.steps(p).Package, s))
	a.addCommon(target, p.dir())
	a.refDefinition(target, developName(p.dir()))
	a.refDefinition(target, codeName(p.dir()))
	a.edge(target, a.plugins(p))
	a.edge(target, a.hidden(p))
	if p.options.doctests() {
		a.edge(target, a.wholeProject(p)) // Which files are tests rests on what they say.
	}
	for _, source := range sources {
		i := a.find(source)
		if i >= 0 {
			a.edge(target, a.moduleOrFile(i))
			continue
		}
		a.refListing(target, codeBelow(source))
		for pending := []*folder{a.folders[source]}; len(pending) > 0; {
			f := pending[len(pending)-1]
			pending = append(pending[:len(pending)-1], f.subs...)
			for _, i := range f.files {
				if a.isCode(f, i) {
					a.edge(target, a.moduleOrFile(i))
				}
			}
		}
	}
}

// aside are names of folders and modules beside a project's own, as setuptools has them.
var aside = func() map[string]bool {
	names := map[string]bool{}
	for name := range strings.FieldsSeq(`ci bin debian doc docs documentation manpages news newsfragments changelog test tests unit_test
		unit_tests example examples scripts tools util utils python build benchmark benchmarks exercise exercises htmlcov tasks fabfile
		site_scons setup conftest toxfile noxfile pavement dodo testing hatch_build pdm_build`) {
		names[name] = true
	}
	return names
}()

// sourcesOf returns the top-level packages and modules of a project, relative to the root: those in src if there are any,
// else those beside the project's file.
func (a *assembler) sourcesOf(p *project) []string {
	if sources, ok := a.sources[p]; ok {
		return sources
	}
	var sources []string
	if src := a.folders[below(p.dir(), "src")]; src != nil && src.project == p && src.coded && !src.regular {
		for _, i := range src.files {
			if name := a.name(src, i); strings.HasSuffix(name, ".py") {
				sources = append(sources, a.entries[i].Path)
			}
		}
		for _, sub := range src.subs {
			if sub.coded {
				sources = append(sources, sub.path)
			}
		}
	}
	if sources == nil {
		for _, i := range p.folder.files {
			if name := moduleName(a.name(p.folder, i)); name != "" && strings.HasSuffix(a.entries[i].Path, ".py") && !aside[name] && !p.isTest(a.entries[i].Path) {
				sources = append(sources, a.entries[i].Path)
			}
		}
		for _, sub := range p.folder.subs {
			if sub.regular && sub.project == p && !aside[nameOf(sub.path)] {
				sources = append(sources, sub.path)
			}
		}
	}
	slices.Sort(sources)
	a.sources[p] = sources
	return sources
}

// importable returns the name by which a source is imported to see that it can be, empty for one that may be a script.
func (a *assembler) importable(p *project, source string) string {
	if f := a.folders[source]; f != nil && a.find(source) < 0 {
		if f.regular && isDotted(nameOf(source)) && !strings.Contains(nameOf(source), ".") {
			return nameOf(source)
		}
		return ""
	}
	name := moduleName(nameOf(source))
	if folderOf(source) != p.dir() || normalName(name) == p.name {
		return name
	}
	return ""
}

// addLockTargets defines a target for each uv.lock: that it fits all projects that it holds, which no step of theirs asks.
func (a *assembler) addLockTargets() {
	for file, k := range a.locks {
		if nameOf(file) != "uv.lock" {
			continue
		}
		dir := folderOf(file)
		s := site{project: dir, folder: ".", name: nameOf(dir)}
		target := a.builder.Target(targetName(dir, " [lock]"), "lock", expand(a.loading.loader.options.Commands.Lock, s))
		a.addCommon(target, dir)
		a.edge(target, a.files[a.find(file)])
		for _, name := range []string{lockName(file), projectName(dir), markersName(dir), membersName(dir), uvName(dir)} {
			a.refDefinition(target, name)
		}
		above(dir, func(dir string) {
			for _, name := range toolFiles {
				a.ref(target, targets.KindFile, below(dir, name))
			}
		})
		for _, p := range k.packages {
			a.ref(target, targets.KindExternal, lockedName(file, p.name))
			if at, ok := join(dir, p.local); p.isLocal && ok {
				a.refDefinition(target, projectName(at))
				a.refDefinition(target, developName(at))
			}
		}
		if p := a.pyprojects[dir]; p != nil && p.members != nil {
			for _, f := range a.membersOf(dir) {
				a.refDefinition(target, projectName(f.path))
				a.refDefinition(target, developName(f.path))
			}
		}
	}
}
