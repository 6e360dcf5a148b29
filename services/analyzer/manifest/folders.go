package manifest

import (
	"path"
	"slices"
	"strings"
)

// snapshot is a tree's entries arranged by folder.
type snapshot struct {
	entries []Entry // by path
	folders map[string]*folder
	// manifests are the paths of the landfall.yaml files that count, sorted.
	manifests []Entry
}

// folder is one folder's names, sorted. A manifest is not among its files: a
// wildcard does not select it, so that editing one target's definition leaves
// alone the others whose globs pass by.
type folder struct {
	files []string
	subs  []string
}

// newSnapshot arranges the entries. It does not change them.
func newSnapshot(entries []Entry) *snapshot {
	s := &snapshot{entries: make([]Entry, 0, len(entries)), folders: map[string]*folder{"": {}}}
	for _, e := range entries {
		if e.Kind != "tree" {
			s.entries = append(s.entries, e)
		}
	}
	if byPath := func(x, y Entry) int { return strings.Compare(x.Path, y.Path) }; !slices.IsSortedFunc(s.entries, byPath) {
		slices.SortFunc(s.entries, byPath)
	}
	for _, e := range s.entries {
		dir, name := split(e.Path)
		f := s.makeFolder(dir)
		if name == FileName {
			s.manifests = append(s.manifests, e)
		} else {
			f.files = append(f.files, name)
		}
	}
	// Entries come by whole path, where a-b/x stands before a/x: names of files
	// are in order within a folder, names of folders need not be.
	for _, f := range s.folders {
		slices.Sort(f.subs)
	}
	return s
}

// ignore makes ordinary files of the manifests below ignored folders.
func (s *snapshot) ignore(ignored []*pattern) {
	if len(ignored) == 0 {
		return
	}
	kept := s.manifests[:0]
	for _, e := range s.manifests {
		dir, name := split(e.Path)
		if dir == "" || !below(dir, ignored) {
			kept = append(kept, e)
			continue
		}
		f := s.folders[dir]
		at, _ := slices.BinarySearch(f.files, name)
		f.files = slices.Insert(f.files, at, name)
	}
	s.manifests = kept
}

// below tells whether a folder or one above it fits a pattern.
func below(dir string, patterns []*pattern) bool {
	for dir != "." {
		if excluded(dir, patterns) {
			return true
		}
		dir = path.Dir(dir)
	}
	return false
}

// makeFolder gives a folder, making it and those above it where needed.
func (s *snapshot) makeFolder(dir string) *folder {
	if f, ok := s.folders[dir]; ok {
		return f
	}
	f := &folder{}
	s.folders[dir] = f
	up, name := split(dir)
	above := s.makeFolder(up)
	above.subs = append(above.subs, name)
	return f
}

// split cuts a path into its folder, "" for the root, and its last name.
func split(file string) (dir, name string) {
	if i := strings.LastIndexByte(file, '/'); i >= 0 {
		return file[:i], file[i+1:]
	}
	return "", file
}

// join is the inverse of split.
func join(dir, name string) string {
	if dir == "" {
		return name
	}
	return dir + "/" + name
}

// Two listings per folder: a glob that looks for files does not care about a
// new folder next to them.

// filesListing names the listing of a folder's files.
func filesListing(dir string) string {
	if dir == "" {
		return "."
	}
	return dir
}

// subsListing names the listing of a folder's folders.
func subsListing(dir string) string { return filesListing(dir) + "/" }

// rootManifest gives the manifest of the root, if there is one.
func (s *snapshot) rootManifest() *Entry {
	i := slices.IndexFunc(s.manifests, func(e Entry) bool { return e.Path == FileName })
	if i < 0 {
		return nil
	}
	return &s.manifests[i]
}
