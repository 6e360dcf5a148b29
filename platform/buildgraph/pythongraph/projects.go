package pythongraph

import (
	"maps"
	"path"
	"slices"
	"strings"

	"landfall.build/platform/buildgraph/glob"
)

// pytestFiles are files of pytest's settings besides pyproject.toml, which it looks for before tox.ini, and setup.cfg.
var pytestFiles = []string{"pytest.toml", ".pytest.toml", "pytest.ini", ".pytest.ini", "tox.ini"}

// findProjects finds the folders that are projects, and which project each folder belongs to.
func (s *survey) findProjects() {
	for dir, p := range s.pyprojects {
		if p.isProject {
			s.markers[dir] = append(s.markers[dir], pyprojectFile)
		}
	}
	for file, c := range s.configs {
		if c.isProject {
			s.markers[folderOf(file)] = append(s.markers[folderOf(file)], nameOf(file))
		}
	}
	for file := range s.scripts {
		s.markers[folderOf(file)] = append(s.markers[folderOf(file)], nameOf(file))
	}
	for file := range s.requirements {
		if nameOf(file) == "requirements.txt" {
			s.markers[folderOf(file)] = append(s.markers[folderOf(file)], nameOf(file))
		}
	}
	for _, f := range s.all {
		if f.parent != nil {
			f.project = f.parent.project
		}
		slices.Sort(s.markers[f.path])
		if !s.makesProject(f) {
			continue
		}
		p := &project{index: len(s.projects), folder: f, py: s.pyprojects[f.path]}
		s.projects = append(s.projects, p)
		f.project = p
	}
	for _, f := range slices.Backward(s.all) {
		f.holdsProjects = f.holdsProjects || len(s.markers[f.path]) > 0
		if f.holdsProjects && f.parent != nil {
			f.parent.holdsProjects = true
		}
	}
}

// makesProject reports whether a folder is a project of its own. A setup.py within a package is a module like others, and a
// requirements.txt below a project is one of its lists.
func (s *survey) makesProject(f *folder) bool {
	for _, marker := range s.markers[f.path] {
		switch marker {
		case pyprojectFile, "setup.cfg":
			return true
		case "setup.py":
			if !f.regular {
				return true
			}
		case "requirements.txt":
			if f.project == nil {
				return true
			}
		}
	}
	return false
}

// findNeeds collects what projects need, from all their files.
func (s *survey) findNeeds() {
	for _, p := range s.projects {
		if p.py != nil {
			p.native, p.plugins = p.py.native, slices.Clone(p.py.plugins)
			p.names = append(p.names, p.py.name)
			p.addNeeds(&p.needs, p.dir(), p.py.needs)
			p.addNeeds(&p.develops, p.dir(), p.py.develops)
		}
		for _, other := range []*setup{s.configs[below(p.dir(), "setup.cfg")], s.scripts[below(p.dir(), "setup.py")]} {
			if other == nil {
				continue
			}
			p.names = append(p.names, other.name)
			p.native = p.native || other.native
			p.plugins = append(p.plugins, other.plugins...)
			p.addNeeds(&p.needs, p.dir(), other.needs)
		}
		for _, file := range s.requirementsOf(p) {
			p.addNeeds(&p.develops, folderOf(file), s.requirements[file].needs)
		}
		p.plugins = unique(p.plugins)
		p.needs, p.develops = sortedNeeds(p.needs), sortedNeeds(p.develops)
		p.names = slices.DeleteFunc(p.names, func(name string) bool { return name == "" })
		p.name = normalName(nameOf(p.dir()))
		if len(p.names) > 0 {
			p.name = p.names[0]
		}
	}
}

// addNeeds makes paths of requirements relative to the root.
func (p *project) addNeeds(to *[]requirement, dir string, needs []requirement) {
	for _, r := range needs {
		if r.path != "" {
			at, ok := join(dir, r.path)
			if !ok {
				continue // Outside the repository.
			}
			// A path of "" is none.
			if r.path = at; at == "" {
				r.path = "."
			}
		}
		*to = append(*to, r)
	}
}

// requirementsOf returns the requirements files of a project, those that they include among them: in its folder, and in a
// folder requirements.
func (s *survey) requirementsOf(p *project) []string {
	var pending []string
	for _, dir := range []string{p.dir(), below(p.dir(), "requirements")} {
		f := s.folders[dir]
		if f == nil || f.project != p {
			continue
		}
		for _, i := range f.files {
			if s.requirements[s.entries[i].Path] != nil {
				pending = append(pending, s.entries[i].Path)
			}
		}
	}
	seen := map[string]bool{}
	for len(pending) > 0 {
		file := pending[len(pending)-1]
		pending = pending[:len(pending)-1]
		r := s.requirements[file]
		if r == nil || seen[file] {
			continue
		}
		seen[file] = true
		for _, include := range r.includes {
			if at, ok := join(folderOf(file), include); ok {
				pending = append(pending, at)
			}
		}
	}
	return slices.Sorted(maps.Keys(seen))
}

// above yields a folder and those above it, up to the root.
func above(dir string, visit func(dir string)) {
	for {
		visit(dir)
		if dir == "" {
			return
		}
		dir = folderOf(dir)
	}
}

// findLocks finds which lock file holds for each project.
func (s *survey) findLocks() {
	for _, p := range s.projects {
		above(p.dir(), func(dir string) {
			if file := below(dir, "uv.lock"); p.lock == "" && s.locks[file] != nil && s.locks[file].entry(climb(dir, p.dir())) != nil {
				p.lock, p.kind = file, uvProject
			}
		})
		if p.lock != "" {
			continue
		}
		for _, i := range p.folder.files {
			if name := s.name(p.folder, i); isLock(name) && (p.lock == "" || name == "poetry.lock") {
				p.lock = s.entries[i].Path
			}
		}
		if nameOf(p.lock) == "poetry.lock" || p.lock == "" && p.py != nil && p.py.usesPoetry {
			p.kind = poetryProject
		}
	}
}

// entry returns what a lock file says of a folder relative to its own, or nil.
func (k *lock) entry(folder string) *locked {
	for _, p := range k.packages {
		if p.isLocal && p.local == folder {
			return p
		}
	}
	return nil
}

// findUses finds the projects of the repository that others need: by path, by name, and by what a lock file says.
func (s *survey) findUses() {
	byName := map[string][]*project{}
	for _, p := range s.projects {
		for _, name := range unique(slices.Clone(p.names)) {
			byName[name] = append(byName[name], p)
		}
	}
	uses := func(p *project, needs []requirement) (used []*project) {
		for _, r := range needs {
			if r.path != "" {
				if q := s.projectAt(folderPath(r.path)); q != nil {
					used = append(used, q)
				}
			}
			if r.name != "" {
				used = append(used, byName[r.name]...)
			}
		}
		return used
	}
	for _, p := range s.projects {
		p.uses, p.usesAll = uses(p, p.needs), uses(p, p.develops)
		main, all := s.locals(p)
		p.uses = distinct(append(p.uses, main...))
		p.usesAll = distinct(slices.Concat(p.uses, p.usesAll, all))
	}
	for _, p := range s.projects {
		p.reach = make([]bool, len(s.projects))
		p.reach[p.index] = true
		pending := slices.Clone(p.usesAll)
		for len(pending) > 0 {
			q := pending[len(pending)-1]
			pending = pending[:len(pending)-1]
			if !p.reach[q.index] {
				p.reach[q.index] = true
				pending = append(pending, q.uses...)
			}
		}
	}
}

// folderPath turns the root's name in a requirement, ".", into its path.
func folderPath(p string) string {
	if p == "." {
		return ""
	}
	return p
}

// projectAt returns the project whose folder that is, or nil.
func (s *survey) projectAt(dir string) *project {
	if f := s.folders[dir]; f != nil && f.project != nil && f.project.folder == f {
		return f.project
	}
	return nil
}

func distinct(list []*project) []*project {
	slices.SortFunc(list, func(x, y *project) int { return x.index - y.index })
	return slices.Compact(list)
}

// locals returns the projects that a lock file says a project needs, directly or through packages that are not here.
func (s *survey) locals(p *project) (main, all []*project) {
	k := s.locks[p.lock]
	if k == nil {
		return nil, nil
	}
	local, needs := map[string]*project{}, map[string][]string{}
	for _, l := range k.packages {
		if !l.isLocal {
			needs[l.name] = l.needs
		}
		if dir, ok := join(folderOf(p.lock), l.local); l.isLocal && ok {
			if q := s.projectAt(dir); q != nil && q != p {
				local[l.name] = q
			}
		}
	}
	entry := k.entry(climb(folderOf(p.lock), p.dir()))
	if entry == nil {
		for _, name := range k.packages {
			if q := local[name.name]; q != nil {
				all = append(all, q)
			}
		}
		return nil, all
	}
	reached := func(names []string) (found []*project) {
		seen := map[string]bool{}
		for names = slices.Clone(names); len(names) > 0; {
			name := names[len(names)-1]
			names = names[:len(names)-1]
			if q := local[name]; q != nil {
				found = append(found, q)
			} else if !seen[name] {
				seen[name] = true
				names = append(names, needs[name]...)
			}
		}
		return found
	}
	return reached(entry.needs), reached(entry.develops)
}

// membersOf returns the folders that the patterns of a uv workspace name, apart from its own.
func (s *survey) membersOf(dir string) []*folder {
	parse := func(texts []string) (patterns []glob.Pattern) {
		for _, text := range texts {
			if p, err := glob.Parse(path.Clean(below(dir, text))); err == nil {
				patterns = append(patterns, p)
			}
		}
		return patterns
	}
	members, exclude := parse(s.pyprojects[dir].members), parse(s.pyprojects[dir].exclude)
	matches := func(patterns []glob.Pattern, f *folder) bool {
		return slices.ContainsFunc(patterns, func(p glob.Pattern) bool { return p.MatchesFolder(f.path) })
	}
	var found []*folder
	for _, f := range s.all {
		if f.path != dir && within(f.path, dir) && matches(members, f) && !matches(exclude, f) && !strings.HasPrefix(nameOf(f.path), ".") {
			found = append(found, f)
		}
	}
	return found
}
