package gitrepo

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"

	"golang.org/x/sys/unix"
)

const (
	// peelDepth is how many levels of unexpected directories are walked at once. What lies
	// deeper (a step can nest without bound) is first moved up, since each level holds a
	// descriptor.
	peelDepth = 100
	maxPeels  = 10_000
)

// sweep removes from a directory whatever has no place in a tree: other names, and files,
// links or directories where the tree holds another kind or other permissions. It mends
// the permissions of directories. A file or link stays only if nobody has changed it since
// its entry in stats was written. It works on open directories and follows no link, so
// nothing outside can be reached through what a step left behind.
func sweep(dir string, nodes map[string]*treeNode, tree string, dirMode fs.FileMode, stats map[string]fileStat) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	s := sweeper{dir: dir, top: root, nodes: nodes, dirMode: dirMode, stats: stats}
	for range maxPeels {
		peeled := s.peeled
		if err := s.sweep(root, "", tree, 0); err != nil {
			return err
		}
		if s.peeled == peeled {
			return nil
		}
	}
	return fmt.Errorf("%s is nested too deeply to be cleared: %w", dir, ErrTooLarge)
}

type sweeper struct {
	dir     string
	top     *os.Root
	nodes   map[string]*treeNode
	dirMode fs.FileMode
	stats   map[string]fileStat
	peeled  int // directories moved up to the top so far
}

// nowhere is the id of no tree: every name below it is unexpected.
const nowhere = ""

// sweep works on the open directory at prefix; alien counts the levels of unexpected
// directories that it is in.
func (s *sweeper) sweep(at *os.Root, prefix, tree string, alien int) error {
	found, err := readNames(at)
	if err != nil || len(found) == 0 {
		return err
	}
	expected := make(map[string]*Entry)
	if node := s.nodes[tree]; node != nil {
		for i := range node.entries {
			expected[node.entries[i].Path] = &node.entries[i]
		}
	}
	for _, item := range found {
		entry := expected[item.Name()]
		belongs := entry != nil && item.Type() == typeOf(entry.Kind)
		if item.IsDir() {
			below := nowhere
			if belongs && entry.Kind == directory {
				below = entry.Object
			}
			moved, err := s.enter(at, prefix, item.Name(), below, alien)
			if err != nil {
				return err
			}
			if moved {
				continue
			}
		}
		if belongs && !item.IsDir() {
			if belongs, err = s.isAsLeft(path.Join(prefix, item.Name()), entry); err != nil {
				return err
			}
		}
		if !belongs {
			if err := at.Remove(item.Name()); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
	}
	return nil
}

// enter sweeps one directory, or moves it up if it lies too deep.
func (s *sweeper) enter(at *os.Root, prefix, name, tree string, alien int) (moved bool, err error) {
	if err := mendDir(at, name, s.dirMode); err != nil {
		return false, err
	}
	if tree == nowhere {
		if alien++; alien > peelDepth {
			s.peeled++
			return true, s.top.Rename(path.Join(prefix, name), fmt.Sprintf(".landfall-peeled-%d", s.peeled))
		}
	}
	below, err := at.OpenRoot(name)
	if err != nil {
		return false, err
	}
	defer below.Close()
	return false, s.sweep(below, path.Join(prefix, name), tree, alien)
}

// isAsLeft reports whether a file or link is as the last checkout left it, to the nanosecond of its last change, and has the
// permissions of a new one. git looks at the owner's execute bit alone, and at times by the second; what is removed here it writes
// again.
func (s *sweeper) isAsLeft(name string, entry *Entry) (bool, error) {
	stat, st, err := statOf(filepath.Join(s.dir, name))
	if err != nil {
		return false, err
	}
	if left, ok := s.stats[name]; !ok || stat != left {
		return false, nil
	}
	want := s.dirMode & 0o666
	switch entry.Kind {
	case Executable:
		want = s.dirMode & fs.ModePerm
	case Symlink:
		return true, nil
	}
	return fs.FileMode(st.Mode)&fs.ModePerm == want && st.Mode&(unix.S_ISUID|unix.S_ISGID|unix.S_ISVTX) == 0, nil
}

func typeOf(kind Kind) fs.FileMode {
	switch kind {
	case directory, Submodule:
		return fs.ModeDir
	case Symlink:
		return fs.ModeSymlink
	}
	return 0
}

// mendDir gives a directory the permissions of a new one, where a step took them away.
func mendDir(at *os.Root, name string, mode fs.FileMode) error {
	info, err := at.Lstat(name)
	if err != nil {
		return err
	}
	if info.Mode()&permissionBits == mode {
		return nil
	}
	return at.Chmod(name, mode)
}

func readNames(at *os.Root) ([]fs.DirEntry, error) {
	dir, err := at.Open(".")
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	return dir.ReadDir(-1)
}
