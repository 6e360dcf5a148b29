package caches

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"landfall.build/platform/folders"
	"landfall.build/services/builder/execution"
)

// file is one of a cache.
type file struct {
	path string
	size int64
	used time.Time
}

// measure returns how many files are below a folder, and their size together in bytes.
func measure(dir string) (files int, size int64, err error) {
	err = folders.Each(dir, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err == nil {
			files, size = files+1, size+info.Size()
		}
		return err
	})
	return files, size, err
}

// mostListed bounds the paths of files that are listed to find the oldest, in bytes.
const mostListed = 256 << 20

// trim removes the files of a folder that were not used for the longest time, until a fifth of the limit is free; all of them if they are
// too many to be listed.
func trim(dir string, size, limit int64) error {
	root, err := os.OpenRoot(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer root.Close()
	var files []file
	err = fs.WalkDir(folders.Bounded(root, mostListed), ".", func(name string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err == nil {
			files = append(files, file{filepath.Join(dir, name), info.Size(), lastUse(info)})
		}
		return err
	})
	switch {
	case errors.Is(err, folders.ErrTooMany):
		return emptied(dir)
	case err != nil:
		return err
	}
	return removeOldest(files, size, limit)
}

// emptied removes all that is in a folder.
func emptied(dir string) error {
	if err := execution.RemoveAll(dir); err != nil {
		return err
	}
	return os.Mkdir(dir, 0o700)
}

// removeOldest removes the files that were not used for the longest time, until a fifth of the limit is free.
func removeOldest(files []file, size, limit int64) error {
	slices.SortFunc(files, func(a, b file) int { return a.used.Compare(b.used) })
	var problems []error
	for _, f := range files {
		if size <= limit-limit/5 {
			break
		}
		if err := os.Remove(f.path); err != nil {
			problems = append(problems, err)
			continue
		}
		size -= f.size
	}
	return errors.Join(problems...)
}
