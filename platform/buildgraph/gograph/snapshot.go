package gograph

import (
	"path"
	"slices"
	"strings"

	"landfall.build/platform/buildgraph/gittree"
)

// git's modes of what is not an ordinary file.
const (
	modeType      = 0o170000
	modeLink      = 0o120000
	modeSubmodule = 0o160000
)

// snapshot is a tree's entries arranged by folder.
type snapshot struct {
	entries []gittree.Entry // by path
	folders map[string]*folder
	all     []*folder // by path, each after the one above it
	root    *folder
}

// folder is what stands in one folder and what that means to Go.
type folder struct {
	path    string
	index   int // in all
	parent  *folder
	subs    []*folder   // by name
	files   []int32     // indexes of entries, by name
	module  *repoModule // the innermost one around the folder, or nil
	hidden  bool        // go's wildcards do not reach it, but imports do
	ignored bool        // by the configuration: nothing in it is Go
	pkg     *pkg        // nil: no package
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

// newSnapshot arranges the entries. It does not change them.
func newSnapshot(entries []gittree.Entry) *snapshot {
	s := &snapshot{folders: make(map[string]*folder, len(entries)/4+1), root: &folder{}}
	s.folders[""] = s.root
	s.entries = ordered(entries)
	last := s.root
	for i := range s.entries {
		dir := folderOf(s.entries[i].Path)
		if dir != last.path {
			last = s.make(dir)
		}
		last.files = append(last.files, int32(i))
	}
	// Entries come by whole path, where a-b/x stands before a/x: names of files
	// are in order within a folder, names of folders need not be.
	s.all = make([]*folder, 0, len(s.folders))
	s.arrange(s.root)
	return s
}

func (s *snapshot) make(dir string) *folder {
	if f, ok := s.folders[dir]; ok {
		return f
	}
	above := s.make(folderOf(dir))
	f := &folder{path: dir, parent: above}
	s.folders[dir] = f
	above.subs = append(above.subs, f)
	return f
}

func (s *snapshot) arrange(top *folder) {
	// Not by recursion: a path can be of any depth.
	pending := []*folder{top}
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
}

// find returns the index of a file's entry, or -1.
func (s *snapshot) find(file string) int32 {
	f := s.folders[folderOf(file)]
	if f == nil {
		return -1
	}
	return s.named(f, nameOf(file))
}

// named returns the index of the entry of that name in a folder, or -1.
func (s *snapshot) named(f *folder, name string) int32 {
	at, ok := slices.BinarySearchFunc(f.files, name, func(i int32, name string) int {
		return strings.Compare(s.name(f, i), name)
	})
	if !ok {
		return -1
	}
	return f.files[at]
}

// name returns an entry's last name, given its folder.
func (s *snapshot) name(f *folder, i int32) string {
	if f.path == "" {
		return s.entries[i].Path
	}
	return s.entries[i].Path[len(f.path)+1:]
}

// folderOf cuts the last name off a path; "" is the root.
func folderOf(file string) string {
	return file[:max(strings.LastIndexByte(file, '/'), 0)]
}

func nameOf(file string) string { return file[strings.LastIndexByte(file, '/')+1:] }

// join puts a relative path below a folder and cleans it. ok is false when the
// result is outside the repository.
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

// isHiddenName reports whether go's wildcards pass by a folder of that name. A vendor
// folder holds packages of other import paths.
func isHiddenName(name string) bool {
	return name == "testdata" || name == "vendor" || strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_")
}
