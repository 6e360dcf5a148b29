// Package folders looks into folders that a step may have filled: with any number of entries, nested as deep as it likes, under names as
// long as the system takes. What it holds of them at a time is bounded.
package folders

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

var (
	// ErrTooMany is the error for folders whose names take more than their bound.
	ErrTooMany = errors.New("there are too many names")
	// ErrTooDeep is the error for a folder of many entries that lies in too many others of many entries.
	ErrTooDeep = errors.New("there are too many folders of many entries within each other")
)

const (
	// AtOnce is how many entries of a folder are read at a time where they are not needed together. Each folder on the way has as many.
	AtOnce = 100
	// perEntry is what an entry takes besides its path, in bytes.
	perEntry = 100
	// mostOpen is how many folders are open at a time, each below the one before. One with fewer entries than AtOnce is closed before what
	// is below it is visited.
	mostOpen = 20
	// mostBelow is how many folders one is opened below another that is open: each of them is opened on the way.
	mostBelow = 128
	// longest is how long a path may be on Linux.
	longest = 4095
)

// Bounded returns the files of a folder for [fs.WalkDir]. Folders are listed only until their entries take that many bytes: their paths, and
// perEntry for each. Then listing fails with [ErrTooMany]. WalkDir holds a whole folder at once, and its callers may keep the paths. No link
// leads out of root; one to what is in it is followed where it takes the place of a folder that was just listed. It is for one goroutine.
func Bounded(root *os.Root, bytes int) fs.FS { return &bounded{root, bytes} }

type bounded struct {
	root *os.Root
	left int
}

// Open does not wait for who writes to a pipe: where a step still runs, one can take the place of a folder that was just listed.
func (b *bounded) Open(name string) (fs.File, error) { return b.open(name) }

func (b *bounded) open(name string) (*os.File, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
	}
	return b.root.OpenFile(filepath.FromSlash(name), os.O_RDONLY|syscall.O_NONBLOCK, 0)
}

// Stat asks without opening.
func (b *bounded) Stat(name string) (fs.FileInfo, error) { return fs.Stat(b.root.FS(), name) }

// ReadDir returns the entries of a folder, sorted by name.
func (b *bounded) ReadDir(name string) (list []fs.DirEntry, err error) {
	folder, err := b.open(name)
	if err != nil {
		return nil, err
	}
	defer folder.Close()
	for {
		some, err := folder.ReadDir(AtOnce)
		for _, e := range some {
			b.left -= len(name) + len(e.Name()) + perEntry
		}
		if b.left < 0 {
			return nil, &fs.PathError{Op: "readdir", Path: name, Err: ErrTooMany}
		}
		list = append(list, some...)
		if err != nil || len(some) == 0 {
			slices.SortFunc(list, func(x, y fs.DirEntry) int { return strings.Compare(x.Name(), y.Name()) })
			if errors.Is(err, io.EOF) {
				err = nil
			}
			return list, err
		}
	}
}

// Each calls do for each entry below a folder, in no order; for a folder, before its entries. For a folder that cannot be read, and for an
// entry whose path is too long, it calls do with the error and no entry; the error is [ErrTooDeep] if too many would be open. It ends at
// do's first error, and leaves out what vanishes meanwhile, or gives way to another folder. A step that still runs can put a pipe or a link
// in the place of a folder that was just listed, or of one above it: nobody waits for the pipe, and the link is not followed.
func Each(folder string, do func(path string, e fs.DirEntry, err error) error) error {
	root, err := os.OpenRoot(folder + "/.") // there is none in a pipe
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return do(folder, nil, err)
	}
	defer root.Close()
	return each(place{path: folder, root: root, name: ".", open: 1}, do)
}

// place is where Each is.
type place struct {
	path   string
	listed fs.FileInfo // what was listed there; nil for the top folder
	root   *os.Root    // a folder above it, or itself
	name   string      // its name in root
	below  int         // how many folders it is below root
	open   int         // how many folders above it are open
}

// each is Each of the top folder or one in it.
func each(at place, do func(path string, e fs.DirEntry, err error) error) error {
	if at.below == mostBelow {
		root, err := at.root.OpenRoot(at.name)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return do(at.path, nil, err)
		}
		defer root.Close()
		at.root, at.name, at.below, at.open = root, ".", 0, at.open+1
	}
	opened, err := at.root.OpenFile(at.name, os.O_RDONLY|syscall.O_DIRECTORY, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return do(at.path, nil, err)
	}
	defer opened.Close()
	if at.listed != nil {
		info, err := opened.Stat()
		if err != nil {
			return do(at.path, nil, err)
		}
		if !os.SameFile(info, at.listed) {
			return nil
		}
	}
	for {
		some, err := opened.ReadDir(AtOnce) // with what is known of each, as it was opened in a root
		open := at.open + 1
		switch {
		case len(some) < AtOnce:
			opened.Close() // folders may be nested deeper than there may be open files
			open = at.open
		case open > mostOpen:
			return do(at.path, nil, ErrTooDeep)
		}
		for _, e := range some {
			path := filepath.Join(at.path, e.Name())
			if len(path) > longest {
				if err := do(path, nil, &fs.PathError{Op: "lstat", Path: path, Err: syscall.ENAMETOOLONG}); err != nil {
					return err
				}
				continue
			}
			if err := do(path, e, nil); err != nil {
				return err
			}
			if !e.IsDir() {
				continue
			}
			listed, err := e.Info()
			if err != nil {
				return err
			}
			if err := each(place{path, listed, at.root, filepath.Join(at.name, e.Name()), at.below + 1, open}, do); err != nil {
				return err
			}
		}
		switch {
		case err != nil && !errors.Is(err, io.EOF):
			return do(at.path, nil, err)
		case len(some) < AtOnce:
			return nil
		}
	}
}
