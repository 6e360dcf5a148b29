package pythongraph

import (
	"path"
	"slices"
	"strings"

	"landfall.build/platform/buildgraph/gittree"
)

// git's modes of what is not an ordinary file.
const (
	modeType      = 0o170000
	modeFile      = 0o100000
	modeLink      = 0o120000
	modeSubmodule = 0o160000
)

// snapshot is a tree's entries arranged by folder.
type snapshot struct {
	entries []gittree.Entry // by path
	folders map[string]*folder
	all     []*folder // each after the one above it
	root    *folder
}

// folder is what stands in one folder.
type folder struct {
	path   string
	index  int // in all
	parent *folder
	subs   []*folder // by name
	files  []int32   // indexes of entries, by name
	// project is the innermost one at or above the folder, or nil.
	project *project
	// regular: it holds an __init__.py, so it is a package and no place where top-level modules are looked for.
	regular bool
	// holdsProjects: a file that makes a project stands in or below it.
	holdsProjects bool
	// coded: a module, or what may lead to one, stands in or below it.
	coded bool
}

// ordered returns the entries by path, without folders. It does not change them.
func ordered(entries []gittree.Entry) []gittree.Entry {
	byPath := func(x, y gittree.Entry) int { return strings.Compare(x.Path, y.Path) }
	isFolder := func(e gittree.Entry) bool { return e.Kind == "tree" }
	if slices.IsSortedFunc(entries, byPath) && !slices.ContainsFunc(entries, isFolder) {
		return entries
	}
	entries = slices.DeleteFunc(slices.Clone(entries), isFolder)
	slices.SortFunc(entries, byPath)
	return entries
}

// newSnapshot arranges entries that are in order.
func newSnapshot(entries []gittree.Entry) *snapshot {
	s := &snapshot{entries: entries, folders: make(map[string]*folder, len(entries)/4+1), root: &folder{}}
	s.folders[""] = s.root
	last := s.root
	for i := range s.entries {
		dir := folderOf(s.entries[i].Path)
		if dir != last.path {
			last = s.make(dir)
		}
		last.files = append(last.files, int32(i))
		last.regular = last.regular || s.name(last, int32(i)) == initFile
	}
	s.all = make([]*folder, 0, len(s.folders))
	pending := []*folder{s.root}
	for len(pending) > 0 {
		f := pending[len(pending)-1]
		pending = pending[:len(pending)-1]
		f.index = len(s.all)
		s.all = append(s.all, f)
		slices.SortFunc(f.subs, func(x, y *folder) int { return strings.Compare(x.path, y.path) })
		for _, sub := range slices.Backward(f.subs) {
			pending = append(pending, sub)
		}
	}
	for _, f := range slices.Backward(s.all) {
		f.coded = f.coded || slices.ContainsFunc(f.files, func(i int32) bool { return s.isCode(f, i) })
		if f.coded && f.parent != nil {
			f.parent.coded = true
		}
	}
	return s
}

// isCode reports whether an entry is a module, or can lead to some.
func (s *snapshot) isCode(f *folder, i int32) bool {
	name := s.name(f, i)
	return strings.HasSuffix(name, ".py") || !s.isFile(i) || moduleName(name) != ""
}

// make returns the folder of a path, which it adds with those above it.
func (s *snapshot) make(dir string) *folder {
	var added []*folder
	at := dir
	for s.folders[at] == nil {
		f := &folder{path: at}
		s.folders[at] = f
		added = append(added, f)
		at = folderOf(at)
	}
	for _, f := range added {
		f.parent = s.folders[folderOf(f.path)]
		f.parent.subs = append(f.parent.subs, f)
	}
	return s.folders[dir]
}

// find returns the index of a file's entry, or -1.
func (s *snapshot) find(file string) int32 {
	f := s.folders[folderOf(file)]
	if f == nil {
		return -1
	}
	name := nameOf(file)
	at, ok := slices.BinarySearchFunc(f.files, name, func(i int32, name string) int {
		return strings.Compare(s.name(f, i), name)
	})
	if !ok {
		return -1
	}
	return f.files[at]
}

// beginning returns the files of a folder whose names begin so.
func (s *snapshot) beginning(f *folder, prefix string) []int32 {
	at, _ := slices.BinarySearchFunc(f.files, prefix, func(i int32, prefix string) int { return strings.Compare(s.name(f, i), prefix) })
	end := at
	for end < len(f.files) && strings.HasPrefix(s.name(f, f.files[end]), prefix) {
		end++
	}
	return f.files[at:end]
}

// name returns an entry's last name, given its folder.
func (s *snapshot) name(f *folder, i int32) string {
	if f.path == "" {
		return s.entries[i].Path
	}
	return s.entries[i].Path[len(f.path)+1:]
}

// isFile reports whether an entry is an ordinary file.
func (s *snapshot) isFile(i int32) bool { return s.entries[i].Mode&modeType == modeFile }

// isLink reports whether an entry is a symbolic link.
func (s *snapshot) isLink(i int32) bool { return s.entries[i].Mode&modeType == modeLink }

// folderOf cuts the last name off a path; "" is the root.
func folderOf(file string) string {
	return file[:max(strings.LastIndexByte(file, '/'), 0)]
}

func nameOf(file string) string { return file[strings.LastIndexByte(file, '/')+1:] }

// join puts a relative path below a folder and cleans it. ok is false when the result is outside the repository.
func join(dir, relative string) (_ string, ok bool) {
	if strings.HasPrefix(relative, "/") {
		return "", false
	}
	joined := path.Join(dir, relative)
	switch {
	case joined == ".":
		return "", true
	case joined == ".." || strings.HasPrefix(joined, "../"):
		return "", false
	}
	return joined, true
}

// below joins two clean paths, each of which may be empty.
func below(dir, rest string) string {
	switch {
	case dir == "":
		return rest
	case rest == "":
		return dir
	}
	return dir + "/" + rest
}

// within reports whether a path is a folder or stands in or below it.
func within(name, dir string) bool {
	return dir == "" || name == dir || strings.HasPrefix(name, dir) && name[len(dir)] == '/'
}

// relativeTo returns a path as seen from a folder in or below which it stands; "." is the folder itself.
func relativeTo(dir, name string) string {
	switch {
	case name == dir:
		return "."
	case dir == "":
		return name
	}
	return name[len(dir)+1:]
}

// climb returns the way from a folder to a path that may stand elsewhere.
func climb(dir, name string) string {
	if within(name, dir) {
		return relativeTo(dir, name)
	}
	if dir == "" {
		return name
	}
	up := ".."
	for at := folderOf(dir); !within(name, at); at = folderOf(at) {
		up += "/.."
	}
	common := dir
	for !within(name, common) {
		common = folderOf(common)
	}
	if rest := relativeTo(common, name); rest != "." {
		return up + "/" + rest
	}
	return up
}
