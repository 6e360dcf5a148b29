package nodegraph

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
	parent *folder
	subs   []*folder // by path
	files  []int32   // indexes of entries, by name
	// modules: the folder is node_modules or below one. What stands there are files, never packages of the repository.
	modules bool
	pack    *pack // the package that holds the folder's files; nil if none does
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
	}
	s.all = make([]*folder, 0, len(s.folders))
	// Not by recursion: a path can be of any depth.
	for pending := []*folder{s.root}; len(pending) > 0; {
		f := pending[len(pending)-1]
		pending = pending[:len(pending)-1]
		f.modules = f.parent != nil && f.parent.modules || nameOf(f.path) == "node_modules"
		s.all = append(s.all, f)
		slices.SortFunc(f.subs, func(x, y *folder) int { return strings.Compare(x.path, y.path) })
		for _, sub := range slices.Backward(f.subs) {
			pending = append(pending, sub)
		}
	}
	return s
}

// make returns the folder of that path, and makes those above it that are not there.
func (s *snapshot) make(dir string) *folder {
	var missing []string
	above := dir
	for s.folders[above] == nil {
		missing = append(missing, above)
		above = folderOf(above)
	}
	f := s.folders[above]
	for _, at := range slices.Backward(missing) {
		next := &folder{path: at, parent: f}
		s.folders[at] = next
		f.subs = append(f.subs, next)
		f = next
	}
	return f
}

// find returns the index of a file's entry, or -1.
func (s *snapshot) find(file string) int32 {
	if f := s.folders[folderOf(file)]; f != nil {
		return s.named(f, nameOf(file))
	}
	return -1
}

// named returns the index of the entry of that name in a folder, or -1.
func (s *snapshot) named(f *folder, name string) int32 {
	at, ok := slices.BinarySearchFunc(f.files, name, func(i int32, name string) int {
		return strings.Compare(nameOf(s.entries[i].Path), name)
	})
	if !ok {
		return -1
	}
	return f.files[at]
}

// has reports whether a folder holds an entry of that name that is not itself a folder.
func (s *snapshot) has(f *folder, name string) bool { return s.named(f, name) >= 0 }

// nearest returns the innermost folder of the tree at or above a path.
func (s *snapshot) nearest(dir string) *folder {
	for {
		if f := s.folders[dir]; f != nil {
			return f
		}
		dir = folderOf(dir)
	}
}

// folderOf cuts the last name off a path; "" is the root.
func folderOf(file string) string { return file[:max(strings.LastIndexByte(file, '/'), 0)] }

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

// isWithin reports whether a path is a folder or below it.
func isWithin(dir, path string) bool {
	return dir == "" || path == dir || strings.HasPrefix(path, dir) && path[len(dir)] == '/'
}

// relativeTo returns the path of what is at or below a folder, seen from there; "." for the folder itself.
func relativeTo(dir, path string) string {
	switch {
	case path == dir:
		return "."
	case dir == "":
		return path
	}
	return path[len(dir)+1:]
}

// dot returns a folder as it is written where an empty text would be odd.
func dot(dir string) string {
	if dir == "" {
		return "."
	}
	return dir
}
