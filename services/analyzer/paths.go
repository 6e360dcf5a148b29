package analyzer

import (
	"context"
	"errors"
	"path"
	"slices"
	"strings"
	"sync"

	"landfall.build/engine/agenda"
	"landfall.build/engine/targets"
	"landfall.build/platform/buildgraph/manifest"
	"landfall.build/platform/gitrepo"
	"landfall.build/platform/landing"
)

// maxKeptPaths bounds the paths that are kept of one change. One that touches more counts as touching
// everything.
const maxKeptPaths = 50_000

// touched is the set of paths that a change adds, alters or deletes; both sides of a rename are in it.
type touched struct {
	paths []string // sorted
	// everything: there are more than are kept.
	everything bool
	// count is the number of paths, or a lower bound of it.
	count int
}

// pathMemory caches what pending changes touch, which does not depend on the mainline.
type pathMemory struct {
	mu      sync.Mutex
	changes map[agenda.Key]touched
}

func newPathMemory() *pathMemory { return &pathMemory{changes: map[agenda.Key]touched{}} }

func (m *pathMemory) get(key agenda.Key) (touched, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	t, ok := m.changes[key]
	return t, ok
}

func (m *pathMemory) put(key agenda.Key, t touched) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.changes[key] = t
}

func (m *pathMemory) size() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.changes)
}

func (m *pathMemory) keepOnly(keys map[agenda.Key]bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for key := range m.changes {
		if !keys[key] {
			delete(m.changes, key)
		}
	}
}

// touchedBy reads what the landing commits of a change alter by themselves: its paths, and the differences
// one by one, as long as there are not too many.
func touchedBy(ctx context.Context, repo *gitrepo.Repo, picks []landing.Pick) (touched, []gitrepo.Changed, error) {
	var all []gitrepo.Changed
	for _, p := range picks {
		changed, err := repo.DiffTrees(ctx, p.Base, p.Head)
		if errors.Is(err, gitrepo.ErrTooLarge) {
			return touched{everything: true, count: gitrepo.MaxCompared}, nil, nil
		}
		if errors.Is(err, gitrepo.ErrBadObject) {
			// A tree that nobody can check out: its own analysis reports it, and no other fails.
			return touched{everything: true}, nil, nil
		}
		if err != nil {
			return touched{}, nil, err
		}
		if len(all)+len(changed) > gitrepo.MaxCompared { // a change has a thousand commits at most, each of which may alter as many
			return touched{everything: true, count: gitrepo.MaxCompared}, nil, nil
		}
		all = append(all, changed...)
	}
	paths := make([]string, len(all))
	for i, c := range all {
		paths[i] = c.Path
	}
	slices.Sort(paths)
	paths = slices.Compact(paths)
	if len(paths) > maxKeptPaths {
		return touched{everything: true, count: len(paths)}, all, nil
	}
	return touched{paths: paths, count: len(paths)}, all, nil
}

// shared lists the paths, at most maxPaths, in which two changes meet: those that both touch, and those of
// one that the other has a file above or below of.
func (t touched) shared(u touched) (paths []string, any bool) {
	if t.everything || u.everything {
		return nil, true
	}
	few, many := t.paths, u.paths
	if len(few) > len(many) {
		few, many = many, few
	}
	for _, p := range few {
		if len(paths) == maxPaths {
			break
		}
		if i, found := slices.BinarySearch(many, p); found {
			paths = append(paths, many[i])
		} else if below, _ := slices.BinarySearch(many, p+"/"); below < len(many) && strings.HasPrefix(many[below], p+"/") {
			paths = append(paths, p)
		} else if hasFolderOf(many, p) {
			paths = append(paths, p)
		}
	}
	return paths, len(paths) > 0
}

// hasFolderOf reports whether sorted names a folder of the path as a file.
func hasFolderOf(sorted []string, p string) bool {
	for dir := path.Dir(p); dir != "." && dir != "/"; dir = path.Dir(dir) {
		if _, found := slices.BinarySearch(sorted, dir); found {
			return true
		}
	}
	return false
}

// definesTargets reports whether the change touches a manifest.
func (t touched) definesTargets() bool {
	return t.everything || slices.ContainsFunc(t.paths, func(p string) bool { return path.Base(p) == manifest.FileName })
}

// conflictingPaths names the files of a conflict. Where a file is in the way of a folder git makes a name
// of its own, "path~commit".
func conflictingPaths(c *landing.Conflict) []string {
	var paths []string
	for _, p := range c.Paths {
		if i := strings.LastIndexByte(p, '~'); i > 0 && gitrepo.IsID(p[i+1:]) {
			p = p[:i]
		}
		if !slices.Contains(paths, p) && len(paths) < maxPaths {
			paths = append(paths, p)
		}
	}
	return shownPaths(paths)
}

// shownPaths bounds paths for an event and makes them valid UTF-8, as labels are.
func shownPaths(paths []string) []string {
	var shown []string
	for _, p := range paths[:min(len(paths), maxPaths)] {
		shown = append(shown, strings.TrimPrefix(targets.Label(targets.KindFile, p), targets.Label(targets.KindFile, "")))
	}
	return shown
}
