package manifest

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"

	"landfall.build/platform/buildgraph/gittree"
)

// snapshot is a tree's entries arranged by folder.
type snapshot struct {
	entries []gittree.Entry // by path
	folders map[string]*folder
	// manifests are the paths of the landfall.yaml files that count, sorted.
	manifests []gittree.Entry
}

// folder is one folder's names, sorted. A manifest is not among its files: a
// wildcard does not select it, so that defining one target leaves alone the
// others whose globs pass by.
type folder struct {
	files []string
	subs  []string
}

// newSnapshot arranges the entries. It does not change them.
func newSnapshot(entries []gittree.Entry) *snapshot {
	s := &snapshot{entries: make([]gittree.Entry, 0, len(entries)), folders: map[string]*folder{"": {}}}
	for _, e := range entries {
		if e.Kind != "tree" {
			s.entries = append(s.entries, e)
		}
	}
	if byPath := func(x, y gittree.Entry) int { return strings.Compare(x.Path, y.Path) }; !slices.IsSortedFunc(s.entries, byPath) {
		slices.SortFunc(s.entries, byPath)
	}
	for _, e := range s.entries {
		dir, name := split(e.Path)
		f := s.makeFolder(dir)
		if name == FileName && !foreign(dir) {
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

// foreignFolders hold what was written for another repository. The list is
// fixed: were it a setting, a change of the setting and one of a file that it
// takes in would conflict without a common node.
var foreignFolders = []string{"testdata", "vendor", "node_modules"}

// foreign reports whether manifests in a folder are ordinary files.
func foreign(dir string) bool {
	for name := range strings.SplitSeq(dir, "/") {
		if slices.Contains(foreignFolders, name) {
			return true
		}
	}
	return false
}

// makeFolder returns a folder, making it and those above it where needed.
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

// Two listings per folder: a glob within one folder does not care about what
// is new below it.

// filesIn names the listing of the files in a folder.
func filesIn(dir string) string {
	if dir == "" {
		return "."
	}
	return dir
}

// allBelow names the listing of the files in and below a folder.
func allBelow(dir string) string { return filesIn(dir) + "/**" }

// listings yields the names in each listing that is not empty. Those of a folder
// below are given by their digest.
func (s *snapshot) listings(yield func(name string, names []string)) {
	s.listBelow("", yield)
}

func (s *snapshot) listBelow(dir string, yield func(name string, names []string)) []byte {
	f := s.folders[dir]
	if len(f.files) > 0 {
		yield(filesIn(dir), f.files)
	}
	all := slices.Clone(f.files)
	for _, sub := range f.subs {
		if below := s.listBelow(join(dir, sub), yield); below != nil {
			all = append(all, fmt.Sprintf("%s/%x", sub, below))
		}
	}
	if len(all) == 0 {
		return nil
	}
	yield(allBelow(dir), all)
	digest := sha256.New()
	for _, name := range all {
		// No name holds a NUL, so it separates.
		digest.Write(append([]byte(name), 0))
	}
	return digest.Sum(nil)
}
