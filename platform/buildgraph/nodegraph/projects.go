package nodegraph

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Package managers.
const (
	npm  = "npm"
	pnpm = "pnpm"
	yarn = "yarn"
	bun  = "bun"
)

const pnpmWorkspace = "pnpm-workspace.yaml"

// lockNames are the lock files that each manager looks for, the first that is there counts.
var lockNames = map[string][]string{
	npm: {"npm-shrinkwrap.json", "package-lock.json"}, pnpm: {"pnpm-lock.yaml"}, yarn: {"yarn.lock"}, bun: {"bun.lock", "bun.lockb"},
}

// fixtureFolders are names of folders in which no project is looked for: a package.json there is data of tests.
var fixtureFolders = map[string]bool{
	"fixtures": true, "__fixtures__": true, "fixture": true, "__testfixtures__": true, "test-fixtures": true, "testdata": true, "test-data": true, "__mocks__": true,
}

// testFolders are names of folders in which no project is looked for where a package is around them.
var testFolders = map[string]bool{"test": true, "tests": true, "__tests__": true, "spec": true, "specs": true}

// project is what is installed together: a workspace with its members, or a single package.
type project struct {
	dir     string
	folder  *folder
	manager string
	// present are the names of all lock files in the folder; lockFile is the path of the one that the manager reads,
	// empty if there is none.
	present  []string
	lockFile string
	lock     *lock   // nil without a lock file
	root     *pack   // nil for a workspace without a package.json of its own
	members  []*pack // by folder, the root among them
	byName   map[string][]*pack
	// byProgram has the members, without the root, that bring a program of a name.
	byProgram map[string][]*pack
}

// pack is a package of the repository.
type pack struct {
	dir     string
	folder  *folder
	project *project
	file    *packageFile
	// buildRun is the build script as an argument of commands, shared by all who need it.
	buildRun string
	// hasAddon: an install compiles what the package holds.
	hasAddon bool
}

// isWorkspace reports whether a project has members besides its root.
func (p *project) isWorkspace() bool { return len(p.members) > 1 || p.root == nil }

// survey is what was found in a tree.
type survey struct {
	*snapshot
	manifests  map[*folder]*packageFile
	pnpms      map[*folder]*pnpmFile
	candidates []*folder // with a package.json or pnpm-workspace.yaml, each after those above it
	projects   []*project
	packs      []*pack // by folder
	incomplete []string
	problems   problems
	matched    int // work of patterns
	// oddities are symbolic links, and manifests in other formats than JSON.
	oddities []int32
	// memberLinks are the symbolic links that the patterns of workspaces match, which may lead to folders.
	memberLinks []int32
}

func (s *survey) noteIncomplete(format string, args ...any) {
	s.incomplete = append(s.incomplete, fmt.Sprintf(format, args...))
}

// pnpmFile is what a pnpm-workspace.yaml says.
type pnpmFile struct {
	packages []string
	problem  string
	line     int
}

// survey finds the projects and packages of a tree.
func (l *loading) survey(ctx context.Context) (*survey, error) {
	s := &survey{snapshot: l.snapshot, manifests: map[*folder]*packageFile{}, pnpms: map[*folder]*pnpmFile{}}
	if err := l.readManifests(ctx, s); err != nil {
		return nil, err
	}
	for i, e := range s.entries {
		if name := nameOf(e.Path); e.Mode&modeType == modeLink || name == "package.json5" || name == "package.yaml" {
			s.oddities = append(s.oddities, int32(i))
		}
	}
	for _, f := range s.all {
		s.place(f, l.loader.options.IgnoreFolders)
	}
	slices.SortFunc(s.packs, func(x, y *pack) int { return cmp.Compare(x.dir, y.dir) })
	if len(s.projects) == 0 {
		return nil, ErrNoPackage
	}
	for _, p := range s.packs {
		if p.file.problem != "" {
			s.problems.add(below(p.dir, manifestName), p.file.line, "%s", p.file.problem)
		}
	}
	for _, p := range s.projects {
		if w := s.pnpms[p.folder]; w != nil && w.problem != "" {
			s.noteIncomplete("%s:%d: %s", below(p.dir, pnpmWorkspace), w.line, w.problem)
		}
	}
	if len(s.packs) > maxPackages {
		s.noteIncomplete("the repository has more than %d packages", maxPackages)
	}
	if err := l.readLocks(ctx, s); err != nil {
		return nil, err
	}
	return s, s.problems.invalid()
}

// readManifests reads what can say that a folder is a package or a project.
func (l *loading) readManifests(ctx context.Context, s *survey) error {
	var files, workspaces []int32
	for _, f := range s.all {
		if f.modules {
			continue
		}
		isCandidate := false
		for _, c := range []struct {
			name string
			list *[]int32
		}{{manifestName, &files}, {pnpmWorkspace, &workspaces}} {
			i := s.named(f, c.name)
			if i < 0 {
				continue
			}
			if s.entries[i].Mode&modeType == modeLink || s.entries[i].Mode&modeType == modeSubmodule {
				s.noteIncomplete("%s is a symbolic link or submodule; put the file there", s.entries[i].Path)
				continue
			}
			*c.list = append(*c.list, i)
			isCandidate = true
		}
		if isCandidate {
			s.candidates = append(s.candidates, f)
		}
	}
	manifests, err := parseBlobs(ctx, l, &l.loader.manifests, s.objects(files), maxManifestBytes, parsePackageFile)
	if err != nil {
		return err
	}
	for k, i := range files {
		if manifests[k] == nil {
			s.noteIncomplete("%s is larger than %d bytes", s.entries[i].Path, maxManifestBytes)
			manifests[k] = &packageFile{}
		}
		s.manifests[s.folders[folderOf(s.entries[i].Path)]] = manifests[k]
	}
	pnpms, err := parseBlobs(ctx, l, &l.loader.workspaces, s.objects(workspaces), maxManifestBytes, parsePnpmFile)
	if err != nil {
		return err
	}
	for k, i := range workspaces {
		if pnpms[k] == nil {
			s.noteIncomplete("%s is larger than %d bytes", s.entries[i].Path, maxManifestBytes)
			pnpms[k] = &pnpmFile{}
		}
		s.pnpms[s.folders[folderOf(s.entries[i].Path)]] = pnpms[k]
	}
	return nil
}

func (s *survey) objects(files []int32) []string {
	objects := make([]string, len(files))
	for k, i := range files {
		objects[k] = s.entries[i].Object
	}
	return objects
}

// place decides what a folder is, those above it being decided.
func (s *survey) place(f *folder, ignored []string) {
	file, workspace := s.manifests[f], s.pnpms[f]
	switch {
	case f.pack != nil: // A member of a workspace above.
		if file.isRoot {
			s.addMembers(f.pack.project, f, file.workspaces) // Workspaces of yarn can be in each other.
		}
		return
	case f.parent != nil:
		f.pack = f.parent.pack
	}
	if file == nil && workspace == nil || slices.ContainsFunc(ignored, func(dir string) bool { return isWithin(dir, f.path) }) || s.isData(f) {
		return
	}
	p := &project{dir: f.path, folder: f, byName: map[string][]*pack{}}
	for _, manager := range slices.Sorted(maps.Keys(lockNames)) {
		for _, name := range lockNames[manager] {
			if s.has(f, name) {
				p.present = append(p.present, name)
			}
		}
	}
	isRoot := workspace != nil || file != nil && file.isRoot
	if !isRoot && len(p.present) == 0 && f.pack != nil {
		return
	}
	p.choose(file, workspace != nil)
	for _, name := range lockNames[p.manager] {
		if p.lockFile == "" && s.has(f, name) {
			p.lockFile = below(f.path, name)
		}
	}
	s.projects = append(s.projects, p)
	if file != nil {
		f.pack = nil
		p.root = s.addMember(p, f)
	}
	switch {
	case workspace != nil && (p.manager == pnpm || file == nil || !file.isRoot):
		s.addMembers(p, f, workspace.packages)
	case file != nil && file.isRoot:
		s.addMembers(p, f, file.workspaces)
	}
}

// isData reports whether a folder is below one that holds data of tests.
func (s *survey) isData(f *folder) bool {
	around := ""
	if f.pack != nil {
		around = f.pack.dir
	}
	for at := f.path; at != around && at != ""; at = folderOf(at) {
		if name := nameOf(at); fixtureFolders[name] || f.pack != nil && testFolders[name] && !s.isProjectOfTests(f, at) {
			return true
		}
	}
	return false
}

// isProjectOfTests reports whether a folder is that of tests, or directly in it, and has tests and a lock file of its own, as those
// have that run a browser.
func (s *survey) isProjectOfTests(f *folder, tests string) bool {
	file := s.manifests[f]
	if file == nil || file.scripts["test"] == "" || f.path != tests && folderOf(f.path) != tests {
		return false
	}
	for _, names := range lockNames {
		if slices.ContainsFunc(names, func(name string) bool { return s.has(f, name) }) {
			return true
		}
	}
	return false
}

// choose finds the package manager of a project, by what it says, then by its lock files.
func (p *project) choose(file *packageFile, hasWorkspaceFile bool) {
	named := ""
	if file != nil {
		named, _, _ = strings.Cut(file.manager, "@")
	}
	has := func(manager string) bool {
		return slices.ContainsFunc(lockNames[manager], func(name string) bool { return slices.Contains(p.present, name) })
	}
	switch {
	case lockNames[named] != nil:
		p.manager = named
	case has(pnpm) || hasWorkspaceFile:
		p.manager = pnpm
	case has(yarn):
		p.manager = yarn
	case has(bun) && !has(npm):
		p.manager = bun
	default:
		p.manager = npm
	}
}

func (s *survey) addMember(p *project, f *folder) *pack {
	one := &pack{dir: f.path, folder: f, project: p, file: s.manifests[f], hasAddon: s.find(below(f.path, addonFile)) >= 0}
	one.buildRun = run(one, "build")
	f.pack = one
	p.members = append(p.members, one)
	if one.file.name != "" {
		p.byName[one.file.name] = append(p.byName[one.file.name], one)
	}
	s.packs = append(s.packs, one)
	slices.SortFunc(p.byName[one.file.name], func(x, y *pack) int { return cmp.Compare(x.dir, y.dir) })
	return one
}

// addMembers finds the members that a folder's patterns take.
func (s *survey) addMembers(p *project, top *folder, texts []string) {
	patterns, err := parseMemberPatterns(texts)
	if err != nil {
		s.noteIncomplete("%s: %v", dot(top.path), err)
		return
	}
	for _, f := range s.candidates {
		if f == top || !isWithin(top.path, f.path) || f.pack != nil && f.pack.folder == f {
			continue
		}
		if s.matched += len(patterns); s.matched > maxMatchWork {
			return
		}
		if s.manifests[f] != nil && patterns.take(relativeTo(top.path, f.path)) {
			s.addMember(p, f)
		}
	}
	slices.SortFunc(p.members, func(x, y *pack) int { return cmp.Compare(x.dir, y.dir) })
	s.notePatternLinks(top, patterns)
}

// notePatternLinks names what a package manager takes for a member and is not in the tree as a package: folders behind
// symbolic links, and manifests in other formats than JSON.
func (s *survey) notePatternLinks(top *folder, patterns memberPatterns) {
	for _, i := range s.oddities {
		e := &s.entries[i]
		if s.matched += len(patterns); s.matched > maxMatchWork || !isWithin(top.path, e.Path) {
			continue
		}
		isLink := e.Mode&modeType == modeLink
		f := s.folders[folderOf(e.Path)]
		switch {
		case f.modules:
		case isLink && patterns.take(relativeTo(top.path, e.Path)):
			s.memberLinks = append(s.memberLinks, i)
		case !isLink && s.manifests[f] == nil && patterns.take(relativeTo(top.path, f.path)):
			s.noteIncomplete("%s: manifests are read in JSON only; write package.json", e.Path)
		}
	}
}
