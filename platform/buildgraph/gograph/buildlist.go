package gograph

import (
	"go/version"
	"slices"
	"strings"

	"golang.org/x/mod/module"
	"golang.org/x/mod/semver"

	"landfall.build/engine/targets"
)

// repoModule is a folder with a go.mod.
type repoModule struct {
	folder *folder
	file   *moduleFile
	// hidden modules are fixtures: they have no targets, but a replace directive
	// can name them.
	hidden bool
	// shared: another module of the repository has the same path, so that names of
	// targets say the folder too.
	shared bool
	// rivals are folders that are where the module's path leads in others: a package
	// there has the import path of one of the module's.
	rivals []string
	// list is where the module's own targets are built; nil if it is hidden.
	list *buildList
}

// buildList is what imports are examined up in: the modules that one main module,
// or the modules of one workspace, are built with.
type buildList struct {
	// name identifies the build list: the main module's folder, or the path of the
	// go.work.
	name string
	// dir is the folder that the vendor folder would be in.
	dir   string
	mains []*repoModule
	// workspace is nil for a main module by itself.
	workspace *moduleFile
	// vendor is nil unless external packages come from the vendor folder.
	vendor vendorFile

	// inside are the folders of the repository that hold modules, by module path.
	inside map[string][]string
	// outside are the external modules at the versions that are used.
	outside map[string]*external
	// unpublished: a module of the workspace is required at a version that go writes where there is none, so go cannot list all modules.
	unpublished bool
	// disagreements are the reasons for which go refuses to build anything.
	disagreements []string
	sums          []sumFile
	sumPaths      []string
}

// noVersion is what the go command writes for a module without a version.
const noVersion = "v0.0.0-00010101000000-000000000000"

// external is a module outside the repository.
type external struct {
	required module.Version
	// replaced is what stands for it, or nil.
	replaced *replacement
}

// source returns the module whose content is used.
func (e *external) source() module.Version {
	if e.replaced != nil {
		return e.replaced.new
	}
	return e.required
}

// replacements finds what replaces a version: the workspace's directives come
// before those of its modules.
type replacements struct {
	exact, any map[module.Version]replacement
}

func (r *replacements) add(list []replacement, dir string) {
	for _, one := range list {
		one.dir = dir
		into := r.exact
		if one.old.Version == "" {
			into = r.any
		}
		if _, ok := into[one.old]; !ok {
			into[one.old] = one
		}
	}
}

func (r *replacements) of(version module.Version) *replacement {
	if one, ok := r.exact[version]; ok {
		return &one
	}
	if one, ok := r.any[module.Version{Path: version.Path}]; ok {
		return &one
	}
	return nil
}

// resolve finds the modules of the list. at gives the repository's module in a
// folder, or nil.
func (l *buildList) resolve(at func(dir string) *repoModule) {
	l.inside, l.outside = map[string][]string{}, map[string]*external{}
	replaced := &replacements{map[module.Version]replacement{}, map[module.Version]replacement{}}
	if l.workspace != nil {
		replaced.add(l.workspace.replaces, l.dir)
	}
	pending := slices.Clone(l.mains)
	seen := map[*repoModule]bool{}
	for _, m := range l.mains {
		seen[m] = true
		l.inside[m.file.path] = append(l.inside[m.file.path], m.folder.path)
		replaced.add(m.file.replaces, m.folder.path)
	}
	versions := map[string]module.Version{}
	for len(pending) > 0 {
		m := pending[0]
		pending = pending[1:]
		for _, required := range m.file.requires {
			if old, ok := versions[required.Path]; !ok || semver.Compare(old.Version, required.Version) < 0 {
				versions[required.Path] = required
			}
			r := replaced.of(required)
			if r == nil && l.workspace != nil && l.inside[required.Path] != nil && (required.Version == "v0.0.0" || required.Version == noVersion) {
				l.unpublished = true
			}
			if r == nil || r.new.Version != "" {
				continue
			}
			dir, ok := join(r.dir, r.new.Path)
			if !ok || slices.Contains(l.inside[required.Path], dir) {
				continue
			}
			l.inside[required.Path] = append(l.inside[required.Path], dir)
			if next := at(dir); next != nil && !seen[next] && next.file.problem == "" {
				seen[next] = true
				pending = append(pending, next)
			}
		}
	}
	// What go.mod need not list has its packages in the vendor folder by modules.txt alone.
	for path, lines := range l.vendor {
		if _, ok := versions[path]; !ok && path != "" {
			versions[path] = versionOf(strings.TrimPrefix(lines[0], "# "))
		}
	}
	for path, used := range versions {
		if _, ok := l.inside[path]; !ok {
			l.outside[path] = &external{required: used, replaced: replaced.of(used)}
		}
	}
	l.compare(replaced, seen)
}

// compare finds what go's checks before any build would refuse. Such a tree is
// red for every target, so the reasons are part of the environment.
func (l *buildList) compare(replaced *replacements, members map[*repoModule]bool) {
	if l.vendor != nil {
		l.compareVendor(replaced)
	}
	for m := range members {
		if version.Compare("go"+m.file.goVersion, "go"+l.language()) > 0 {
			l.disagreements = append(l.disagreements, m.file.path+" requires go "+m.file.goVersion)
		}
	}
	if l.workspace == nil {
		main := l.mains[0]
		listed := map[string]string{}
		for _, required := range main.file.requires {
			listed[required.Path] = required.Version
		}
		for m := range members {
			for _, required := range m.file.requires {
				if old, ok := listed[required.Path]; ok && semver.Compare(old, required.Version) < 0 {
					l.disagreements = append(l.disagreements, m.file.path+" requires "+required.String())
				}
			}
		}
	}
	slices.Sort(l.disagreements)
	l.disagreements = slices.Compact(l.disagreements)
}

// compareVendor notes what modules.txt and go.mod do not agree in.
func (l *buildList) compareVendor(replaced *replacements) {
	said := map[string]bool{}
	sayReplaced := func(list []replacement) {
		for _, r := range list {
			said[replacedMark(r.old, r.new)] = true
		}
	}
	if l.workspace != nil {
		sayReplaced(l.workspace.replaces)
	}
	for _, m := range l.mains {
		sayReplaced(m.file.replaces)
		for _, required := range m.file.requires {
			said[requiredMark(required)] = true
			if r := replaced.of(required); r != nil {
				said[replacedMark(required, r.new)] = true
			}
		}
	}
	marked := l.vendor.marks()
	for mark := range said {
		if !marked[mark] {
			l.disagreements = append(l.disagreements, "vendor/modules.txt lacks: "+mark)
		}
	}
	for mark := range marked {
		if !said[mark] {
			l.disagreements = append(l.disagreements, "vendor/modules.txt alone "+mark)
		}
	}
	for _, needed := range l.vendor.goVersions() {
		if version.Compare("go"+needed, "go"+l.language()) > 0 {
			l.disagreements = append(l.disagreements, "a vendored module requires go "+needed)
		}
	}
}

// language returns the go line of what is built.
func (l *buildList) language() string {
	if l.workspace != nil {
		return l.workspace.goVersion
	}
	return l.mains[0].file.goVersion
}

// longest returns the longest module path of the list that could provide a
// package, or an empty text.
func (l *buildList) longest(importPath string) string {
	for prefix := importPath; prefix != ""; prefix = folderOf(prefix) {
		if l.inside[prefix] != nil || l.outside[prefix] != nil {
			return prefix
		}
	}
	return ""
}

// suffix distinguishes nodes of this list from those of others.
func (l *buildList) suffix() string {
	if l.name == "" {
		return ""
	}
	return " in " + l.name
}

// targetName returns the name of a package's target, whose folder is below the
// module's by rest: its import path, with the module's folder if that is not
// enough.
func (a *assembler) targetName(m *repoModule, rest string) string {
	name := below(m.file.path, rest)
	if m.shared || slices.ContainsFunc(m.rivals, func(dir string) bool { return a.holdsGo(below(dir, rest)) }) {
		name += m.distinction()
	}
	return name
}

// holdsGo reports whether a folder has the files of a package or of tests.
func (s *snapshot) holdsGo(dir string) bool {
	f := s.folders[dir]
	return f != nil && slices.ContainsFunc(f.files, func(i int32) bool {
		class := classOf(s.name(f, i))
		return class == goFile || class == testFile
	})
}

// addRivalNames adds the nodes that a target's name rests on.
func (a *assembler) addRivalNames(m *repoModule, rest string, add func(targets.Node)) {
	for _, dir := range m.rivals {
		add(a.builder.Ref(targets.KindListing, sourcesIn(below(dir, rest))))
		add(a.builder.Ref(targets.KindListing, testsIn(below(dir, rest))))
	}
}

// moduleTarget returns the name of the target of the module as a whole.
func (m *repoModule) moduleTarget() string {
	if m.shared {
		return m.file.path + m.distinction() + " [module]"
	}
	return m.file.path + " [module]"
}

// distinction returns what a name says of the module's folder. No import path has a
// space in it.
func (m *repoModule) distinction() string {
	return " (" + strings.TrimPrefix(m.folder.path+"/", "/") + ")"
}

// rest returns a folder's path below the module's folder.
func (m *repoModule) rest(dir string) string {
	return strings.TrimPrefix(strings.TrimPrefix(dir, m.folder.path), "/")
}
