package caches

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// file is one of a cache.
type file struct {
	path string
	size int64
	used time.Time
}

// list returns the files below a folder, and their size together in bytes. What vanishes meanwhile is left out.
func list(dir string) (files []file, size int64, err error) {
	err = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		if entry.IsDir() {
			return nil
		}
		info, err := entry.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		files = append(files, file{path, info.Size(), lastUse(info)})
		size += info.Size()
		return nil
	})
	return files, size, err
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
