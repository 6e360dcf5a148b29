// Package caches keeps the folders that outlive steps: by queue and name, each with a bound. What they hold goes by
// content, so that a folder may be emptied at any time between steps.
//
// Nothing is ever removed from a folder that a step uses: a tool that has just found a file would miss it, and a good
// change would fail. So a folder is trimmed when nobody uses it. One that is never free and has grown to twice its
// bound is begun anew beside, and removed once its last step has ended.
package caches

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	"landfall.build/platform/configuration"
	"landfall.build/services/builder/execution"
)

// Store keeps the caches of one process, in Dir. It may be used from several goroutines.
type Store struct {
	// Dir is an absolute path that belongs to this process alone.
	Dir    string
	Logger *slog.Logger
	// Every is how often a folder's size is found out, at most; 0 means a minute.
	Every time.Duration

	mu      sync.Mutex
	folders map[string]*folder
}

// folder is one cache of one queue, or of one worker.
type folder struct {
	mu sync.Mutex
	// dir holds the generations; generation is the number of the one that is given out, 0 before the first.
	dir        string
	generation int
	// users counts the steps that use each generation.
	users    map[int]int
	measured time.Time
}

// Use is a cache that a step uses.
type Use struct {
	// Dir is its absolute path.
	Dir    string
	folder *folder
	number int
	store  *Store
	bound  configuration.Cache
}

// Acquire returns the folder of a queue's cache for a step of a worker, and makes it if there is none. End must be called.
func (s *Store) Acquire(queue, name, worker string, cache configuration.Cache) (*Use, error) {
	dir := filepath.Join(s.Dir, queue, name)
	if cache.Share == configuration.ShareWorker {
		dir = filepath.Join(s.Dir, queue, name+"@"+worker)
	}
	f := s.folder(dir)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.generation == 0 {
		if err := f.open(); err != nil {
			return nil, fmt.Errorf("the folder of cache %s: %w", name, err)
		}
	}
	use := &Use{Dir: f.path(f.generation), folder: f, number: f.generation, store: s, bound: cache}
	if err := os.MkdirAll(use.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("the folder of cache %s: %w", name, err)
	}
	f.users[f.generation]++
	return use, nil
}

func (s *Store) folder(dir string) *folder {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.folders[dir]
	if f == nil {
		if s.folders == nil {
			s.folders = map[string]*folder{}
		}
		f = &folder{dir: dir, users: map[int]int{}}
		s.folders[dir] = f
	}
	return f
}

func (f *folder) path(generation int) string { return filepath.Join(f.dir, strconv.Itoa(generation)) }

// open finds the generation that a former process left, and removes older ones.
func (f *folder) open() error {
	entries, err := os.ReadDir(f.dir)
	if err != nil && !os.IsNotExist(err) {
		return err
	}
	var there []int
	for _, e := range entries {
		if number, err := strconv.Atoi(e.Name()); err == nil && number > 0 {
			there = append(there, number)
		}
	}
	f.generation = 1
	if len(there) > 0 {
		f.generation = slices.Max(there)
	}
	for _, number := range there {
		if number != f.generation {
			_ = execution.RemoveAll(f.path(number))
		}
	}
	return nil
}

// End gives the folder back, and trims it if it is too large.
func (u *Use) End() {
	f := u.folder
	f.mu.Lock()
	defer f.mu.Unlock()
	f.users[u.number]--
	free := f.users[u.number] == 0
	if free {
		delete(f.users, u.number)
	}
	if u.number != f.generation {
		if free {
			u.store.warn(f.path(u.number), execution.RemoveAll(f.path(u.number)))
		}
		return
	}
	every := u.store.Every
	if every == 0 {
		every = time.Minute
	}
	if now := time.Now(); now.Sub(f.measured) < every {
		return
	}
	limit := int64(u.bound.MaxSize)
	files, size, err := list(u.Dir)
	f.measured = time.Now()
	switch {
	case err != nil:
		u.store.warn(u.Dir, err)
	case size <= limit:
	case free && u.bound.Trim == configuration.TrimFiles:
		u.store.warn(u.Dir, removeOldest(files, size, limit))
	case free:
		u.store.warn(u.Dir, execution.RemoveAll(u.Dir))
	case size > 2*limit:
		f.generation++
	}
}

func (s *Store) warn(dir string, err error) {
	if err != nil && s.Logger != nil {
		s.Logger.Warn("a cache could not be trimmed", "folder", dir, "error", err)
	}
}
