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
)

// Bounded returns the files of a folder for [fs.WalkDir]. Folders are listed only until their entries take that many bytes: their paths, and
// perEntry for each. Then listing fails with [ErrTooMany]. WalkDir holds a whole folder at once, and its callers may keep the paths. It is for
// one goroutine.
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

// Each calls do for each entry below a folder, in no order; for a folder, before its entries. For a folder that cannot be read it calls do
// with the error and no entry; the error is [ErrTooDeep] if too many would be open. It ends at do's first error, and leaves out what
// vanishes meanwhile.
func Each(folder string, do func(path string, e fs.DirEntry, err error) error) error {
	return each(folder, true, 0, do)
}

// each is Each of the top folder or one in it, below a number of folders that are open.
func each(folder string, top bool, above int, do func(path string, e fs.DirEntry, err error) error) error {
	// A step that still runs can put a pipe or a link in the place of a folder that was just listed.
	flags := os.O_RDONLY | syscall.O_NONBLOCK
	if !top {
		flags |= syscall.O_NOFOLLOW
	}
	opened, err := os.OpenFile(folder, flags, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return do(folder, nil, err)
	}
	defer opened.Close()
	for {
		some, err := opened.ReadDir(AtOnce)
		open := above + 1
		switch {
		case len(some) < AtOnce:
			opened.Close() // folders may be nested deeper than there may be open files
			open = above
		case open > mostOpen:
			return do(folder, nil, ErrTooDeep)
		}
		for _, e := range some {
			path := filepath.Join(folder, e.Name())
			if err := do(path, e, nil); err != nil {
				return err
			}
			if !e.IsDir() {
				continue
			}
			if err := each(path, false, open, do); err != nil {
				return err
			}
		}
		switch {
		case err != nil && !errors.Is(err, io.EOF):
			return do(folder, nil, err)
		case len(some) < AtOnce:
			return nil
		}
	}
}
