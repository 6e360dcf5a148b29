package bazelgraph

import (
	"context"
	"fmt"
	"path"
	"slices"
	"sort"
	"strings"

	"landfall.build/platform/gitrepo"
)

// Repository is what is needed of a git mirror; *gitrepo.Repo is one.
type Repository interface {
	Tree(ctx context.Context, treeish string) ([]gitrepo.Entry, error)
	Blob(ctx context.Context, id string, maxBytes int64) ([]byte, error)
}

// snapshot is the files of a tree, without what they hold.
type snapshot struct {
	entries []gitrepo.Entry // by path
	folders map[string]*folder
	links   map[string]string // by the path of a symbolic link: what it says
}

// folder is a folder of the tree.
type folder struct {
	path    string
	files   []int32 // entries
	folders []*folder
	build   bool // it has a BUILD file
}

// maxLink is how many links are followed on one way.
const maxLink = 40

// newSnapshot sorts a listing into folders, and reads the links.
func newSnapshot(ctx context.Context, repo Repository, entries []gitrepo.Entry) (*snapshot, error) {
	if !slices.IsSortedFunc(entries, comparePaths) {
		entries = slices.SortedFunc(slices.Values(entries), comparePaths)
	}
	s := &snapshot{entries: entries, folders: map[string]*folder{"": {}}, links: map[string]string{}}
	for i, e := range entries {
		dir, name := split(e.Path)
		f := s.folder(dir)
		f.files = append(f.files, int32(i))
		f.build = f.build || isBuildFile(name) && e.Kind != gitrepo.Submodule
		if e.Kind != gitrepo.Symlink {
			continue
		}
		text, err := repo.Blob(ctx, e.Object, 4096)
		if err != nil {
			return nil, fmt.Errorf("the link %q: %w", e.Path, err)
		}
		s.links[e.Path] = string(text)
	}
	return s, nil
}

func comparePaths(a, b gitrepo.Entry) int { return strings.Compare(a.Path, b.Path) }

// split returns a path's folder and name; the root is "".
func split(file string) (dir, name string) {
	i := strings.LastIndexByte(file, '/')
	return file[:max(i, 0)], file[i+1:]
}

func (s *snapshot) folder(dir string) *folder {
	if f := s.folders[dir]; f != nil {
		return f
	}
	f := &folder{path: dir}
	s.folders[dir] = f
	above, _ := split(dir)
	parent := s.folder(above)
	parent.folders = append(parent.folders, f)
	return f
}

// find returns the entry of a path, or -1.
func (s *snapshot) find(file string) int32 {
	i := sort.Search(len(s.entries), func(i int) bool { return s.entries[i].Path >= file })
	if i < len(s.entries) && s.entries[i].Path == file {
		return int32(i)
	}
	return -1
}

// walk follows a path through the links of the tree: which links are on the way, and where it ends. ok is
// false if that is outside the tree, or nowhere.
func (s *snapshot) walk(file string) (links []string, end string, ok bool) {
	left := strings.Split(path.Clean(file), "/")
	var done []string
	for len(left) > 0 {
		part := left[0]
		left = left[1:]
		switch part {
		case "", ".":
			continue
		case "..":
			if len(done) == 0 {
				return links, "", false
			}
			done = done[:len(done)-1]
			continue
		}
		at := strings.Join(append(done, part), "/")
		text, is := s.links[at]
		if !is {
			done = append(done, part)
			continue
		}
		links = append(links, at)
		if len(links) > maxLink || strings.HasPrefix(text, "/") {
			return links, "", false
		}
		left = append(strings.Split(text, "/"), left...)
	}
	return links, strings.Join(done, "/"), true
}

// hasBuildFiles reports whether any folder may be a package.
func (s *snapshot) hasBuildFiles() bool {
	for _, f := range s.folders {
		if f.build {
			return true
		}
	}
	return len(s.links) > 0 // One may lead to a folder.
}

// isWorkspace reports whether Bazel takes the root for a workspace.
func (s *snapshot) isWorkspace() bool {
	for _, name := range boundaries {
		if s.find(name) >= 0 {
			return true
		}
	}
	return false
}

// boundaries are the files that mark the root of a workspace.
var boundaries = []string{"MODULE.bazel", "REPO.bazel", "WORKSPACE", "WORKSPACE.bazel"}
