package execution

import (
	"crypto/rand"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

const (
	// longestRemoved is how long paths below a folder become while it is removed, in bytes: longer than what tools leave, and short, as
	// each system call goes along the whole of it.
	longestRemoved = 500
	// removedAtOnce is how many entries of a folder are read at a time.
	removedAtOnce = 1000
)

// RemoveAll is os.RemoveAll, also of what a step made read-only, as Go makes its module cache, and of what it nested without
// bound: os.RemoveAll holds a descriptor for each level, and fails where there are no more.
func RemoveAll(directory string) error {
	info, err := os.Lstat(directory)
	if err == nil && info.IsDir() {
		err = emptyFolder(directory, directory)
	}
	if err != nil {
		return ignoreMissing(err)
	}
	return ignoreMissing(os.Remove(directory))
}

// emptyFolder removes what is in a folder at or below top, and goes on after an error. What lies too deep is moved to top, which
// therefore is empty last.
func emptyFolder(top, folder string) error {
	_ = os.Chmod(folder, 0o700) // what that keeps from being removed has an error of its own
	for {
		entries, err := someOf(folder)
		if err != nil || len(entries) == 0 {
			return ignoreMissing(err)
		}
		failed := 0
		for _, e := range entries {
			name := filepath.Join(folder, e.Name())
			if wrong := removeEntry(top, name, e.IsDir()); wrong != nil {
				failed++
				err = wrong
			}
		}
		if failed == len(entries) || failed > 0 && len(entries) < removedAtOnce {
			return err
		}
	}
}

func removeEntry(top, name string, isFolder bool) error {
	if isFolder {
		if len(name)-len(top) > longestRemoved {
			_ = os.Chmod(name, 0o700) // a folder that is read-only is not moved
			return os.Rename(name, filepath.Join(top, rand.Text()))
		}
		if err := emptyFolder(top, name); err != nil {
			return err
		}
	}
	return ignoreMissing(os.Remove(name))
}

// someOf returns up to removedAtOnce entries of a folder.
func someOf(folder string) ([]fs.DirEntry, error) {
	file, err := os.Open(folder)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	entries, err := file.ReadDir(removedAtOnce)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return entries, err
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
