package gitrepo

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"

	"golang.org/x/sys/unix"

	"landfall.build/platform/folders"
)

const (
	// peelDepth is how many levels of unexpected directories are walked at once. What lies
	// deeper (a step can nest without bound) is first moved up, since each level holds a
	// descriptor.
	peelDepth = 100
	maxPeels  = 10_000
	// maxPasses is how often a directory is read. Twice is enough where a file system lists what was there before the first name was
	// removed; others leave out some of it.
	maxPasses = 10
)

// sweep removes from a directory whatever has no place in a tree: other names, and files,
// links or directories where the tree holds another kind or other permissions. It mends
// the permissions of directories, and removes those with other attributes. A file or link stays only if nobody has changed it since
// its entry in stats was written. It works on open directories and follows no link, so
// nothing outside can be reached through what a step left behind.
func sweep(dir string, nodes map[string]*treeNode, tree string, dirMode fs.FileMode, dirAttributes string, stats map[string]fileStat) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	s := sweeper{dir: dir, top: root, nodes: nodes, dirMode: dirMode, dirAttributes: dirAttributes, stats: stats, remove: (*os.Root).Remove}
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
	// dirAttributes are those of a new directory.
	dirAttributes string
	stats         map[string]fileStat
	peeled        int // directories moved up to the top so far
	// remove is [os.Root.Remove], but in tests.
	remove func(at *os.Root, name string) error
}

// nowhere is the id of no tree: every name below it is unexpected.
const nowhere = ""

// sweep works on the open directory at prefix; alien counts the levels of unexpected
// directories that it is in.
func (s *sweeper) sweep(at *os.Root, prefix, tree string, alien int) error {
	dir, err := at.Open(".")
	if err != nil {
		return err
	}
	defer dir.Close()
	var expected map[string]*Entry
	kept, peeled := map[string]bool{}, s.peeled
	for pass, first, removed := 1, true, false; ; first = false {
		found, err := dir.ReadDir(folders.AtOnce)
		whole := first && len(found) < folders.AtOnce
		if whole {
			dir.Close() // each level would hold one
		}
		if expected == nil && len(found) > 0 {
			expected = s.expected(tree)
		}
		for _, item := range found {
			if kept[item.Name()] {
				continue
			}
			gone, err := s.sweepItem(at, prefix, item, expected[item.Name()], alien)
			if err != nil {
				return err
			}
			if removed = removed || gone; !gone && expected[item.Name()] != nil {
				kept[item.Name()] = true
			}
		}
		switch {
		case err != nil && !errors.Is(err, io.EOF):
			return err
		case whole || err != nil && !removed:
			return nil
		case err != nil && pass == maxPasses && s.peeled > peeled:
			return nil // the names may be of what was moved up, for which all is swept again
		case err != nil && pass == maxPasses:
			return fmt.Errorf("%s: names appear while it is cleared: %w", filepath.Join(s.dir, prefix), ErrTooLarge)
		case err != nil:
			// Not every file system lists all of a directory that is changed meanwhile.
			pass, removed = pass+1, false
			if _, err := dir.Seek(0, io.SeekStart); err != nil {
				return err
			}
		}
	}
}

// expected returns what a directory with this tree holds, by name.
func (s *sweeper) expected(tree string) map[string]*Entry {
	expected := make(map[string]*Entry)
	if node := s.nodes[tree]; node != nil {
		for i := range node.entries {
			expected[node.entries[i].Path] = &node.entries[i]
		}
	}
	return expected
}

// sweepItem works on what a directory has under one name, where entry is expected, and reports whether it is gone.
func (s *sweeper) sweepItem(at *os.Root, prefix string, item fs.DirEntry, entry *Entry, alien int) (gone bool, err error) {
	belongs := entry != nil && item.Type() == typeOf(entry.Kind)
	if item.IsDir() {
		below := nowhere
		if belongs && entry.Kind == directory {
			below = entry.Object
		}
		usual, moved, err := s.enter(at, prefix, item.Name(), below, alien)
		if err != nil || moved {
			return moved, err
		}
		belongs = belongs && usual
	} else if belongs {
		if belongs, err = s.isAsLeft(path.Join(prefix, item.Name()), entry); err != nil {
			return false, err
		}
	}
	if belongs {
		return false, nil
	}
	if err := s.remove(at, item.Name()); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		return false, err
	}
	return true, nil
}

// enter sweeps one directory. It moves one that lies too deep up, and empties one with unusual attributes.
func (s *sweeper) enter(at *os.Root, prefix, name, tree string, alien int) (usual, moved bool, err error) {
	if err := mendDir(at, name, s.dirMode); err != nil {
		return false, false, err
	}
	if alien == 0 {
		given, err := attributesAt(at.Open(name))
		if err != nil {
			return false, false, err
		}
		if usual = given == s.dirAttributes; !usual {
			tree = nowhere
		}
	}
	if tree == nowhere {
		if alien++; alien > peelDepth {
			s.peeled++
			return false, true, s.top.Rename(path.Join(prefix, name), fmt.Sprintf(".landfall-peeled-%d", s.peeled))
		}
	}
	below, err := at.OpenRoot(name)
	if err != nil {
		return false, false, err
	}
	defer below.Close()
	return usual, false, s.sweep(below, path.Join(prefix, name), tree, alien)
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
