// Package caches keeps the folders that outlive steps: by queue and name, each with a bound. What they hold goes by
// content, so that a folder may be emptied at any time between steps.
//
// Nothing is ever removed from a folder that a step uses: a tool that has just found a file would miss it, and a good
// change would fail. So a folder is trimmed when nobody uses it. If it is
// never free and grows to twice its bound, later steps get a new folder, and the old one is removed once its last step has
// ended. A folder that cannot be measured counts as too large.
//
// By default a cache is made of layers (layers.go): what a step writes is seen by no other one before the changes whose code
// it ran have landed.
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

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
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
	// Layers is set if steps can be given folders of layers.
	Layers bool

	mu      sync.Mutex
	folders map[string]*folder
	layers  map[string]*layered
	// begun has the folders in which caches of changes are that this process has begun with nothing in it.
	begun map[string]bool
}

// Step identifies a step that uses a cache.
type Step struct {
	// Queue is the name of its folder, Worker that of the worker.
	Queue, Worker string
	// By are the changes whose code the step runs; none for one of the mainline itself. The last one is its build's own.
	By []*eventsv1.ChangeRef
}

// folder is one cache of one queue, of one worker, or of one change.
type folder struct {
	// queue and change are set of a cache of a change. left is set once that is not pending any more; Store.mu guards it.
	queue  string
	change *eventsv1.ChangeRef
	left   bool

	mu sync.Mutex
	// gone is set when the last user is to remove it.
	gone bool
	// dir holds the generations; generation is the number of the one that is given out, 0 before the first.
	dir        string
	generation int
	// users counts the steps that use each generation.
	users    map[int]int
	measured time.Time
}

// Use is a cache that a step uses.
type Use struct {
	// Dir is its absolute path, for the step.
	Dir string
	// Overlay is set if the folder has to be made of layers for the step.
	Overlay *execution.Overlay

	store  *Store
	bound  configuration.Cache
	folder *folder
	number int
	// Of a cache in layers.
	layers *layered
	run    string
}

// Acquire returns the folder of a cache for a step, and makes it if there is none. End must be called.
func (s *Store) Acquire(step Step, name string, cache configuration.Cache) (*Use, error) {
	use, err := s.acquire(step, name, cache)
	if err != nil {
		return nil, fmt.Errorf("the folder of cache %s: %w", name, err)
	}
	return use, nil
}

func (s *Store) acquire(step Step, name string, cache configuration.Cache) (*Use, error) {
	dir := filepath.Join(s.Dir, step.Queue, name)
	var change *eventsv1.ChangeRef
	switch cache.Share {
	case configuration.ShareMainline:
		return s.layered(dir+"@mainline").acquire(s, cache)
	case configuration.ShareWorker:
		dir += "@" + step.Worker
	case configuration.ShareChange:
		own := "@mainline"
		if len(step.By) > 0 {
			change = step.By[len(step.By)-1]
			own = events.DeriveID("cache", change.GetChange(), strconv.FormatUint(change.GetRevision(), 10))
		}
		if err := s.beginChanges(dir + "@change"); err != nil {
			return nil, err
		}
		dir = filepath.Join(dir+"@change", own)
	}
	f := s.folder(dir, step.Queue, change)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.generation == 0 {
		if err := f.open(); err != nil {
			return nil, err
		}
	}
	use := &Use{Dir: f.path(f.generation), folder: f, number: f.generation, store: s, bound: cache}
	if err := os.MkdirAll(use.Dir, 0o700); err != nil {
		return nil, err
	}
	f.users[f.generation]++
	return use, nil
}

// beginChanges removes what a former process left of changes, which may have left meanwhile.
func (s *Store) beginChanges(dir string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.begun[dir] {
		return nil
	}
	if err := execution.RemoveAll(dir); err != nil {
		return err
	}
	if s.begun == nil {
		s.begun = map[string]bool{}
	}
	s.begun[dir] = true
	return nil
}

func (s *Store) layered(dir string) *layered {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.layers[dir]
	if l == nil {
		if s.layers == nil {
			s.layers = map[string]*layered{}
		}
		l = &layered{dir: dir, users: map[string]int{}, retired: map[string]bool{}}
		s.layers[dir] = l
	}
	return l
}

func (s *Store) folder(dir, queue string, change *eventsv1.ChangeRef) *folder {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.folders[dir]
	if f == nil {
		if s.folders == nil {
			s.folders = map[string]*folder{}
		}
		f = &folder{dir: dir, queue: queue, change: change, users: map[int]int{}}
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

// End gives the folder back, and trims it if it is too large. Of a cache in layers, what a step that passed has written is
// kept for when the changes by which it was have landed.
func (u *Use) End(passed bool, by []*eventsv1.ChangeRef) {
	if u.layers != nil {
		u.layers.end(u, passed, by)
		return
	}
	f := u.folder
	f.mu.Lock()
	defer f.mu.Unlock()
	f.users[u.number]--
	free := f.users[u.number] == 0
	if free {
		delete(f.users, u.number)
	}
	if f.gone && len(f.users) == 0 {
		u.store.warn(f.dir, execution.RemoveAll(f.dir))
		return
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
	_, size, err := measure(u.Dir)
	f.measured = time.Now()
	if err != nil { // a step can cause that; the cache can have any size
		u.store.warn(u.Dir, fmt.Errorf("it goes whole: %w", err))
	}
	switch {
	case err == nil && size <= limit:
	case err == nil && free && u.bound.Trim == configuration.TrimFiles:
		u.store.warn(u.Dir, trim(u.Dir, size, limit))
	case free:
		u.store.warn(u.Dir, execution.RemoveAll(u.Dir))
	case err != nil || size > 2*limit:
		f.generation++
	}
}

func (s *Store) warn(dir string, err error) {
	if err != nil && s.Logger != nil {
		s.Logger.Warn("a cache could not be trimmed", "folder", dir, "error", err)
	}
}
