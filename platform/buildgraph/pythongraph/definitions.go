package pythongraph

import (
	"fmt"
	"slices"
	"strings"

	"landfall.build/engine/targets"
)

// addMarkers defines which files make projects, in each folder by itself and in and below it.
func (a *assembler) addMarkers() {
	for _, f := range a.all {
		if !f.holdsProjects {
			continue
		}
		all := a.defineText(allMarkersName(f.path))
		a.refDefinition(all, markersName(f.path))
		for _, sub := range f.subs {
			if sub.holdsProjects {
				a.refDefinition(all, allMarkersName(sub.path))
			}
		}
		markers := a.markers[f.path]
		if len(markers) == 0 {
			continue
		}
		node := a.defineText(markersName(f.path), markers...)
		if slices.Contains(markers, "setup.py") {
			a.refListing(node, initName(f.path))
		}
	}
}

// addLocks defines what lock files and requirements files say, and what [tool.uv] does.
func (a *assembler) addLocks() {
	for file, k := range a.locks {
		a.builder.Definition(lockName(file), k.header)
		folders := map[string]string{} // of the repository's own, by name
		for _, p := range k.packages {
			if dir, ok := join(folderOf(file), p.local); p.isLocal && ok {
				folders[p.name] = dir
			}
		}
		for _, p := range k.packages {
			node := a.builder.External(lockedName(file, p.name), append(append([]byte{}, p.pin...), p.local...))
			if dir, ok := join(folderOf(file), p.local); p.isLocal && ok {
				a.defineText(localName(file, dir), p.name)
			}
			for _, need := range p.needs {
				a.ref(node, targets.KindExternal, lockedName(file, need))
				if dir, is := folders[need]; is && !p.isLocal {
					// Code that is not here imports what it needs of the project.
					a.refDefinition(node, projectName(dir))
					if q := a.projectAt(dir); q != nil {
						a.edge(node, a.wholeProject(q))
					}
				}
			}
		}
	}
	lists := map[string][]string{}
	for file, r := range a.requirements {
		lists[folderOf(file)] = append(lists[folderOf(file)], nameOf(file))
		node := a.defineText(requirementsName(file), r.lines...)
		for _, include := range r.includes {
			if at, ok := join(folderOf(file), include); ok {
				a.refDefinition(node, requirementsName(at))
				if a.requirements[at] == nil {
					a.ref(node, targets.KindFile, at)
				}
			}
		}
		for _, dir := range r.settings {
			if at, ok := join(folderOf(file), dir); ok && at != "" {
				a.addFolder(node, at)
			}
		}
	}
	for dir, names := range lists {
		a.builder.Listing(requirementsIn(dir), names)
	}
	for dir, p := range a.pyprojects {
		if p.uv != nil {
			a.builder.Definition(uvName(dir), p.uv)
		}
		if p.pytest.normal != nil {
			a.builder.Definition(pytestName(dir), p.pytest.normal)
		}
		if p.pytestGroup != "" {
			a.defineText(pytestGroupName(dir), p.pytestGroup)
		}
		if p.members != nil {
			a.defineText(membersName(dir), a.oddMembers(dir)...)
		}
	}
}

// oddMembers returns the folders that a uv workspace names and that are no projects: uv refuses the workspace then.
func (a *assembler) oddMembers(dir string) []string {
	var odd []string
	for _, f := range a.membersOf(dir) {
		if p := a.pyprojects[f.path]; p == nil || !p.isProject {
			odd = append(odd, f.path)
		}
	}
	return odd
}

// toolFiles decide how the tools of a folder and of those below it work: hatchling builds nothing of what .gitignore names.
var toolFiles = []string{".python-version", ".python-versions", ".tool-versions", "uv.toml", "poetry.toml", "runtime.txt", "mise.toml", ".gitignore"}

// addProjects defines what each project is: the files of its folder, what it needs, and the projects of the repository
// that it uses.
func (a *assembler) addProjects() {
	byName := map[string][]string{}
	for _, p := range a.projects {
		for _, name := range unique(slices.Clone(p.names)) {
			byName[name] = append(byName[name], p.dir())
		}
	}
	for name, dirs := range byName {
		a.builder.Listing(distributionName(name), dirs)
	}
	for _, p := range a.projects {
		var content []byte
		if p.py != nil {
			content = p.py.normal
		}
		node, develop := a.builder.Definition(projectName(p.dir()), content), a.builder.Definition(developName(p.dir()), nil)
		a.edge(develop, node)
		a.addProjectFiles(node, p)
		a.addProjectLock(node, develop, p)
		a.addCollectors(node, develop, p)
		a.addNeeded(node, p.needs)
		a.addNeeded(develop, p.develops)
		for _, q := range p.uses {
			a.refDefinition(node, projectName(q.dir()))
		}
		for _, q := range p.usesAll {
			a.refDefinition(develop, projectName(q.dir()))
		}
		a.refListing(develop, requirementsIn(p.dir()))
		a.refListing(develop, requirementsIn(below(p.dir(), "requirements")))
		for _, file := range a.requirementsOf(p) {
			a.refDefinition(develop, requirementsName(file))
		}
		a.edge(node, a.search(p.dir()))
		above(p.dir(), func(dir string) {
			a.refDefinition(node, markersName(dir))
			if p.kind == uvProject && within(dir, folderOf(p.lock)) {
				a.refDefinition(node, uvName(dir))
				a.refDefinition(node, membersName(dir))
			}
			for _, name := range toolFiles {
				a.ref(node, targets.KindFile, below(dir, name))
			}
		})
	}
}

// addProjectFiles adds the files that decide how a project is built.
func (a *assembler) addProjectFiles(node targets.Node, p *project) {
	a.refDefinition(node, filesName(p.dir()))
	a.refDefinition(node, allMarkersName(p.dir()))
	for _, name := range []string{"setup.py", "build.py", "hatch_build.py", "pdm_build.py"} {
		file := below(p.dir(), name)
		if i := a.find(file); i >= 0 {
			a.edge(node, a.moduleOrFile(i))
		} else {
			a.ref(node, targets.KindFile, file)
		}
	}
	if p.py != nil {
		for _, name := range p.py.files {
			a.ref(node, targets.KindFile, below(p.dir(), name))
		}
		for _, name := range p.py.names {
			a.importModule(node, p, name)
		}
		for _, dir := range p.py.licenses {
			if dir == "" {
				a.refDefinition(node, documentsName(p.dir()))
			} else {
				a.addFolder(node, below(p.dir(), dir))
			}
		}
	}
	a.addBesides(node, p)
	if p.native {
		a.edge(node, a.wholeProject(p))
		a.refDefinition(node, dataName(p.dir()))
	}
}

// addBesides adds which folders stand beside the file of a project.
func (a *assembler) addBesides(node targets.Node, p *project) {
	a.refDefinition(node, besidesName(p.dir()))
	besides := a.besides(p)
	if len(besides) == 0 {
		return
	}
	to := a.defineText(besidesName(p.dir()), besides...)
	for _, name := range besides {
		if dir := below(p.dir(), name); !a.folders[dir].coded {
			a.refListing(to, allBelow(dir)) // Two changes can end a folder together.
		}
	}
}

// besides returns the names of the folders of a project that setuptools takes for packages where nothing tells it which there are,
// whatever is in them. If there are several it refuses the project.
func (a *assembler) besides(p *project) (names []string) {
	if p.py == nil || !p.py.discovers || a.folders[below(p.dir(), "src")] != nil {
		return nil
	}
	for _, sub := range p.folder.subs {
		if name := nameOf(sub.path); isDotted(name) && !strings.Contains(name, ".") && !aside[name] && name[0] != '_' {
			names = append(names, name)
		}
	}
	return names
}

// addNeeded adds what decides which projects of the repository meet requirements.
func (a *assembler) addNeeded(node targets.Node, needs []requirement) {
	for _, r := range needs {
		if r.name != "" {
			a.refListing(node, distributionName(r.name))
		}
		if r.path == "" {
			continue
		}
		dir := folderPath(r.path)
		a.refDefinition(node, markersName(dir))
		a.refDefinition(node, projectName(dir))
		if a.projectAt(dir) == nil && dir != "" {
			a.addFolder(node, dir)
		}
	}
}

// addProjectLock adds what lock files say of a project's needs.
func (a *assembler) addProjectLock(node, develop targets.Node, p *project) {
	above(p.dir(), func(dir string) {
		// One that comes to hold for the project, or that goes.
		a.refDefinition(node, localName(below(dir, "uv.lock"), p.dir()))
	})
	for _, name := range []string{"poetry.lock", "pylock.toml"} {
		a.refDefinition(node, lockName(below(p.dir(), name)))
	}
	k := a.locks[p.lock]
	if k == nil {
		return
	}
	a.refDefinition(node, lockName(p.lock))
	locked := func(from targets.Node, name string) { a.ref(from, targets.KindExternal, lockedName(p.lock, name)) }
	if entry := k.entry(climb(folderOf(p.lock), p.dir())); entry != nil {
		locked(node, entry.name)
		// With --all-groups, and with --group for one that a member lacks, uv takes the groups of the workspace's own folder for every
		// member.
		a.refDefinition(develop, pytestGroupName(folderOf(p.lock)))
		shared := k.develops
		if root := k.entry("."); root != nil && root != entry {
			shared = root.develops
		}
		for _, name := range shared {
			locked(develop, name)
		}
		for _, name := range entry.develops {
			locked(develop, name)
		}
		return
	}
	for _, r := range p.needs {
		locked(node, r.name)
	}
	for _, one := range k.packages {
		locked(develop, one.name)
	}
}

// settings returns the node of what decides about tests in a folder: settings of pytest and conftest.py there and above.
func (a *assembler) settings(dir string) targets.Node {
	node := a.builder.Ref(targets.KindDefinition, settingsName(dir))
	if a.settled[dir] {
		return node
	}
	a.settled[dir] = true
	a.builder.Definition(settingsName(dir), nil)
	a.refDefinition(node, pytestName(dir))
	if p := a.pyprojects[dir]; p == nil || !p.isProject {
		a.ref(node, targets.KindFile, below(dir, pyprojectFile))
	}
	for _, name := range append(slices.Clone(pytestFiles), "setup.cfg", "conftest.py") {
		file := below(dir, name)
		if i := a.find(file); i >= 0 {
			a.edge(node, a.moduleOrFile(i))
		} else {
			a.ref(node, targets.KindFile, file)
		}
	}
	if dir != "" {
		a.edge(node, a.settings(folderOf(dir)))
	}
	return node
}

// search returns the node of what settings of pytest, in a folder and above it, say about where modules and tests are. Each
// file by itself: two that say the same can each lose it.
func (a *assembler) search(dir string) targets.Node {
	node := a.builder.Ref(targets.KindDefinition, searchName(dir))
	key := searchName(dir)
	if a.settled[key] {
		return node
	}
	a.settled[key] = true
	a.builder.Definition(key, nil)
	say := func(file string, s *pytestSettings) {
		name := searchName(below(dir, file))
		a.refDefinition(node, name)
		switch {
		case s == nil:
		case s.searches():
			a.builder.Definition(name, fmt.Appendf(nil, "%q %q %q %q %v %v %+v", s.folders, s.files, s.paths, s.passedBy, s.passes, a.testPathsIn(below(dir, file), s).found, s.options))
		case s.hold(file):
			a.defineText(name, "hides those above")
		}
	}
	for _, name := range append(slices.Clone(pytestFiles), "setup.cfg") {
		say(name, a.pytests[below(dir, name)])
	}
	if p := a.pyprojects[dir]; p != nil {
		say(pyprojectFile, &p.pytest)
	} else {
		say(pyprojectFile, nil)
	}
	if dir != "" {
		a.edge(node, a.search(folderOf(dir)))
	}
	return node
}

// plugins returns the node of the modules that a project, and those that it uses, name as entry points for others.
func (a *assembler) plugins(p *project) targets.Node {
	node := a.builder.Ref(targets.KindDefinition, pluginsName(p.dir()))
	key := pluginsName(p.dir())
	if a.settled[key] {
		return node
	}
	a.settled[key] = true
	a.builder.Definition(pluginsName(p.dir()), nil)
	for _, module := range p.plugins {
		a.importModule(node, p, module)
	}
	for _, q := range p.uses {
		a.edge(node, a.plugins(q))
	}
	return node
}
