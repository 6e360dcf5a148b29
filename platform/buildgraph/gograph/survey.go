package gograph

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"golang.org/x/mod/semver"
)

// survey is what a tree holds, before any Go file was read.
type survey struct {
	*snapshot
	links   links
	modules []*repoModule          // by folder
	works   map[string]*moduleFile // the go.work files, by folder
	vendors map[string]vendorFile  // by the path of the vendor folder
	lists   []*buildList           // by name
	// incomplete holds the reasons why the graph is not known to be whole.
	incomplete []string
	// followed are the files that were read because C code names them, by entry.
	followed map[int32]bool
	// headerWork counts the places where they were examined for.
	headerWork int
}

// survey finds modules, workspaces and packages.
func (l *loading) survey(ctx context.Context) (*survey, error) {
	s := &survey{snapshot: l.snapshot, followed: map[int32]bool{}}
	if err := l.readLinks(ctx, s); err != nil {
		return nil, err
	}
	if err := l.readModules(ctx, s); err != nil {
		return nil, err
	}
	if len(s.modules) == 0 {
		return nil, ErrNoModule
	}
	invalid := &Invalid{}
	for _, m := range s.modules {
		if m.file.problem != "" && !m.hidden {
			invalid.add("%s:%s", below(m.folder.path, "go.mod"), m.file.problem)
		}
	}
	for _, dir := range slices.Sorted(maps.Keys(s.works)) {
		if work := s.works[dir]; work.problem != "" {
			invalid.add("%s:%s", below(dir, "go.work"), work.problem)
		}
	}
	if len(invalid.Problems) > 0 {
		return nil, invalid
	}
	if err := l.readVendors(ctx, s); err != nil {
		return nil, err
	}
	s.findShared()
	s.findUnsupported()
	for _, f := range s.all {
		f.pkg = s.findPackage(f)
	}
	return s, l.findLists(ctx, s)
}

// findUnsupported finds what this adapter does not follow. The tree's changes then
// conflict with everything.
func (s *survey) findUnsupported() {
	for _, m := range s.modules {
		if m.file.path == "std" || m.file.path == "cmd" {
			s.noteIncomplete("%s: module %s is the Go distribution itself, whose imports do not say it", below(m.folder.path, "go.mod"), m.file.path)
		}
	}
	for _, f := range s.all {
		for _, name := range []string{"go.mod", "go.work"} {
			if i := s.named(f, name); i >= 0 && !f.ignored && s.entries[i].Mode&modeType == modeLink {
				s.noteIncomplete("%s is a symbolic link; put the file there, or name its folder in ignored folders", s.entries[i].Path)
			}
		}
	}
	for _, dir := range slices.Sorted(maps.Keys(s.works)) {
		for _, used := range usedFolders(dir, s.works[dir]) {
			s.linkedFolder(below(dir, "go.work"), "use", used)
		}
	}
}

// readLinks reads the symbolic links.
func (l *loading) readLinks(ctx context.Context, s *survey) error {
	var entries []int32
	var objects []string
	for i := range s.entries {
		if s.entries[i].Mode&modeType == modeLink {
			entries, objects = append(entries, int32(i)), append(objects, s.entries[i].Object)
		}
	}
	texts, err := parseBlobs(ctx, l, &l.loader.linkTexts, objects, maxLinkBytes,
		func(content []byte) *string { text := string(content); return &text })
	if err != nil {
		return err
	}
	s.links = make(links, len(entries))
	for i, entry := range entries {
		s.links[entry] = ""
		if texts[i] != nil {
			s.links[entry] = *texts[i]
		}
	}
	return nil
}

// readModules reads the go.mod files, which tells each folder its module, and
// the go.work files.
func (l *loading) readModules(ctx context.Context, s *survey) error {
	var moduleObjects, workObjects, workFolders []string
	fixture := map[*folder]bool{}
	for _, f := range s.all {
		name := nameOf(f.path)
		if f.parent != nil {
			f.ignored = f.parent.ignored
			fixture[f] = fixture[f.parent] || name == "testdata" || name == "vendor"
		}
		f.ignored = f.ignored || f.path != "" && slices.Contains(l.loader.options.IgnoreFolders, f.path)
		if object := s.content(f, "go.mod"); object != "" && !f.ignored {
			f.module = &repoModule{folder: f, hidden: fixture[f]}
			f.hidden = fixture[f]
			s.modules = append(s.modules, f.module)
			moduleObjects = append(moduleObjects, object)
		} else if f.parent != nil {
			f.module, f.hidden = f.parent.module, f.parent.hidden || isHiddenName(name)
		}
		if object := s.content(f, "go.work"); object != "" && !f.ignored && !fixture[f] && l.loader.options.variable("GOWORK") != "off" {
			workFolders, workObjects = append(workFolders, f.path), append(workObjects, object)
		}
	}
	if len(s.modules) > maxModules || len(workFolders) > maxModules {
		return &Invalid{Problems: []string{fmt.Sprintf("go.mod:1: the repository has more than %d modules", maxModules)}}
	}
	files, err := parseBlobs(ctx, l, &l.loader.moduleFiles, moduleObjects, maxModuleBytes, parseModuleFile)
	if err != nil {
		return err
	}
	for i, file := range files {
		if file == nil {
			file = &moduleFile{problem: "1: too large or not a file"}
		}
		s.modules[i].file = file
	}
	files, err = parseBlobs(ctx, l, &l.loader.workFiles, workObjects, maxModuleBytes, parseWorkFile)
	if err != nil {
		return err
	}
	s.works = map[string]*moduleFile{}
	for i, file := range files {
		if file == nil {
			file = &moduleFile{problem: "1: too large or not a file"}
		}
		s.works[workFolders[i]] = file
	}
	return nil
}

// content returns the blob of a file in a folder, through symbolic links; empty if
// there is none.
func (s *survey) content(f *folder, name string) string {
	i := s.named(f, name)
	if i < 0 {
		return ""
	}
	return s.object(s.resolveLinks(i))
}

// resolveLinks returns the entry that an entry leads to through links, or -1.
func (s *survey) resolveLinks(i int32) int32 {
	if i < 0 || s.entries[i].Mode&modeType != modeLink {
		return i
	}
	w := s.follow(s.entries[i].Path, s.links)
	if !w.ok {
		return -1
	}
	return s.find(w.end)
}

// object returns an entry's blob; empty if it is none.
func (s *survey) object(i int32) string {
	if i < 0 || s.entries[i].Mode&modeType == modeSubmodule || s.entries[i].Kind == "commit" {
		return ""
	}
	return s.entries[i].Object
}

// findShared finds which modules share their path, and whose packages can have the
// import paths of another module's: a module with a path below another's whose
// folder is not where that path would be in the other.
func (s *survey) findShared() {
	named := map[string][]*repoModule{}
	for _, m := range s.modules {
		if !m.hidden {
			named[m.file.path] = append(named[m.file.path], m)
		}
	}
	for _, m := range s.modules {
		m.shared = len(named[m.file.path]) > 1
		for prefix := folderOf(m.file.path); prefix != ""; prefix = folderOf(prefix) {
			for _, above := range named[prefix] {
				if dir := below(above.folder.path, m.file.path[len(prefix)+1:]); dir != m.folder.path {
					m.rivals = append(m.rivals, dir)
				}
			}
		}
	}
}

// findLists makes the build lists: one of each workspace, and one of each module
// that is in none.
func (l *loading) findLists(ctx context.Context, s *survey) error {
	byName := map[string]*buildList{}
	for _, m := range s.modules {
		if m.hidden {
			continue
		}
		name, dir, work := m.folder.path, m.folder.path, (*moduleFile)(nil)
		if at, ok := s.workspaceOf(m); ok {
			name, dir, work = below(at, "go.work"), at, s.works[at]
		}
		list := byName[name]
		if list == nil {
			list = &buildList{name: name, dir: dir, workspace: work}
			byName[name] = list
			s.lists = append(s.lists, list)
		}
		m.list = list
		list.mains = append(list.mains, m)
	}
	slices.SortFunc(s.lists, func(x, y *buildList) int { return strings.Compare(x.name, y.name) })
	for _, list := range s.lists {
		if err := l.complete(ctx, s, list); err != nil {
			return err
		}
	}
	return nil
}

// workspaceOf returns the folder of the nearest go.work at or above a module that
// uses it. (Go stops at the nearest one, and builds nothing if that does not use
// the module.)
func (s *survey) workspaceOf(m *repoModule) (string, bool) {
	for _, dir := range upward(m.folder.path) {
		if work, ok := s.works[dir]; ok && slices.Contains(usedFolders(dir, work), m.folder.path) {
			return dir, true
		}
	}
	return "", false
}

// usedFolders returns the folders that a go.work uses, as far as they are in the
// repository.
func usedFolders(dir string, work *moduleFile) []string {
	var folders []string
	for _, use := range work.uses {
		if used, inside := join(dir, use); inside {
			folders = append(folders, used)
		}
	}
	return folders
}

// upward returns a folder and all above it.
func upward(dir string) []string {
	list := []string{dir}
	for dir != "" {
		dir = folderOf(dir)
		list = append(list, dir)
	}
	return list
}

// complete reads what else a build list rests on, and resolves it.
func (l *loading) complete(ctx context.Context, s *survey, list *buildList) error {
	for _, m := range list.mains {
		list.sumPaths = append(list.sumPaths, below(m.folder.path, "go.sum"))
	}
	if list.workspace != nil {
		list.sumPaths = append(list.sumPaths, below(list.dir, "go.work.sum"))
	}
	var objects []string
	for _, file := range list.sumPaths {
		if object := s.object(s.resolveLinks(s.find(file))); object != "" {
			objects = append(objects, object)
		}
	}
	sums, err := parseBlobs(ctx, l, &l.loader.sumFiles, objects, maxSumBytes, func(content []byte) *sumFile {
		sums := parseSumFile(content)
		return &sums
	})
	if err != nil {
		return err
	}
	for i, sum := range sums {
		if sum == nil {
			s.incomplete = append(s.incomplete, fmt.Sprintf("go.sum (blob %s) is larger than %d bytes", objects[i], maxSumBytes))
			continue
		}
		list.sums = append(list.sums, *sum)
	}
	s.linkedVendor(list.dir)
	list.vendor = s.vendorOf(list, l.loader.options)
	list.resolve(s.moduleAt)
	for _, path := range slices.Sorted(maps.Keys(list.inside)) {
		for _, dir := range list.inside[path] {
			s.linkedFolder(below(list.dir, "go.mod"), "the replacement of "+path, dir)
		}
	}
	return nil
}

// readVendors reads what the vendor folders hold by what they say. A folder without a modules.txt counts: go takes it
// for that of a module.
func (l *loading) readVendors(ctx context.Context, s *survey) error {
	var with []*folder
	var objects []string
	s.vendors = map[string]vendorFile{}
	for _, f := range s.all {
		if nameOf(f.path) != "vendor" || f.ignored {
			continue
		}
		s.vendors[f.path] = vendorFile{}
		if object := s.content(f, "modules.txt"); object != "" {
			with, objects = append(with, f), append(objects, object)
		}
	}
	files, err := parseBlobs(ctx, l, &l.loader.vendorFiles, objects, maxVendorBytes, func(content []byte) *vendorFile {
		modules := parseVendorFile(content)
		return &modules
	})
	if err != nil {
		return err
	}
	for i, file := range files {
		if file == nil {
			s.noteIncomplete("%s is larger than %d bytes", below(with[i].path, "modules.txt"), maxVendorBytes)
			continue
		}
		s.vendors[with[i].path] = *file
	}
	return nil
}

// vendorOf returns the vendor folder that external packages of a build list come from, or nil.
func (s *survey) vendorOf(list *buildList, o Options) vendorFile {
	mode, set := o.flag("mod")
	found, there := s.vendors[below(list.dir, "vendor")]
	switch {
	case !there || set && mode != "vendor":
		return nil
	case set || found.ofWorkspace() == (list.workspace != nil) && semver.Compare(semver.MajorMinor("v"+list.language()), "v1.14") >= 0:
		return found
	}
	return nil
}
