package builder

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"landfall.build/platform/retention"
	"landfall.build/platform/steplog"
	"landfall.build/services/builder/execution"
)

// Kinds of what is kept, as metrics have them.
const (
	keptLogs      = "logs"
	keptWorktrees = "worktrees"
	keptOutputs   = "outputs"
)

// startRetaining begins to look for what need not be kept, if it is time, and returns how long it is until then. It is the
// dispatcher's.
func (s *session) startRetaining(ctx context.Context, now time.Time) (wait time.Duration) {
	if s.retaining || now.Before(s.retainAt) {
		return max(s.retainAt.Sub(now), time.Millisecond)
	}
	if _, live := s.neededLogs(); !live {
		return time.Hour // it is called again when that changes
	}
	s.retaining = true
	s.task(func() func() {
		s.retainLogs(ctx, now)
		s.outputs.Trim(ctx)
		places := s.listPlaces(ctx)
		return func() {
			s.retaining, s.retainAt = false, now.Add(s.Configuration.Retention.Every)
			s.retainPlaces(ctx, places, now)
		}
	})
	return time.Hour
}

// neededLogs returns the folder and the steplog.Key of each version to which a pending change or a live build refers. It is known once all
// partitions are read up to where they ended at the start.
func (s *session) neededLogs() (needed map[string]bool, live bool) {
	needed = map[string]bool{}
	s.shared.read(func() {
		for p := range s.Log.Partitions() {
			if !s.shared.live[p] {
				return
			}
		}
		live = true
		for name, q := range s.shared.queues {
			for v := range q.Needed() {
				needed[name+"/"+steplog.Key(s.Log.ID(), name, v.Target, v.Hash)] = true
			}
		}
	})
	return needed, live
}

// retainLogs deletes logs that go beyond a bound.
func (s *session) retainLogs(ctx context.Context, now time.Time) {
	dir, bounds := LogDir(s.dir), s.Configuration.Retention.Logs
	unlock, err := retention.TryLock(filepath.Join(dir, "retention.lock"))
	if errors.Is(err, retention.ErrLocked) {
		return // another builder with this directory is at it
	}
	if err != nil {
		s.Logger.Warn("logs of steps cannot be deleted", "error", err)
		return
	}
	defer unlock()
	var items []retention.Item
	var keys []string
	for _, folder := range s.folders(dir) {
		for _, file := range s.entries(filepath.Join(dir, folder.Name())) {
			info, err := file.Info()
			if err != nil || !info.Mode().IsRegular() || !strings.HasSuffix(file.Name(), steplog.Ending) {
				continue
			}
			key, _, _ := strings.Cut(file.Name(), "-")
			item := retention.Item{
				Path: filepath.Join(dir, folder.Name(), file.Name()), Size: retention.SizeOf(info), Used: info.ModTime(),
				Age: bounds.Age, Setting: "retention.logs.age",
			}
			if strings.HasSuffix(file.Name(), steplog.FailedEnding) {
				item.Age, item.Setting = bounds.FailedAge, "retention.logs.failed_age"
			}
			items, keys = append(items, item), append(keys, folder.Name()+"/"+key)
		}
	}
	needed, _ := s.neededLogs()
	for i, key := range keys {
		items[i].InUse = needed[key]
	}
	byFolder := map[string][]retention.Victim{}
	for _, v := range retention.Excess(items, int64(bounds.Size), "retention.logs.size", now) {
		folder := filepath.Dir(v.Path)
		byFolder[folder] = append(byFolder[folder], v)
	}
	for _, folder := range slices.Sorted(maps.Keys(byFolder)) {
		if ctx.Err() != nil {
			return
		}
		deleted, err := retention.Delete(folder, byFolder[folder], now)
		s.account(keptLogs, filepath.Base(folder), deleted, err)
	}
	s.Kept.Keep(keptLogs, retention.Measure(ctx, dir))
}

// entries lists a folder. One that cannot be read has none: it keeps nobody from deleting elsewhere.
func (s *session) entries(dir string) []os.DirEntry {
	list, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		s.Logger.Warn("a folder cannot be searched for what need not be kept", "error", err)
	}
	return list
}

// folders lists the folders in a folder.
func (s *session) folders(dir string) []os.DirEntry {
	return slices.DeleteFunc(s.entries(dir), func(e os.DirEntry) bool { return !e.IsDir() })
}

// account writes down what was deleted, in a line for each bound.
func (s *session) account(kind, of string, deleted []retention.Victim, err error) {
	count, bytes := map[retention.Bound]int{}, map[retention.Bound]int64{}
	for _, v := range deleted {
		count[v.Bound]++
		bytes[v.Bound] += v.Size
		s.Kept.Delete(kind, v.Size)
	}
	for _, bound := range slices.Sorted(maps.Keys(count)) {
		s.Logger.Info("what need not be kept was deleted", "kind", kind, "of", of, "count", count[bound], "bytes", bytes[bound], "why", bound)
	}
	if err != nil {
		s.Logger.Warn("not all that need not be kept could be deleted", "kind", kind, "of", of, "error", err)
	}
}

// place is a worktree, or the scratch folder of a builder that may no longer run.
type place struct {
	retention.Item
	// worker is the number of this process's worker whose worktree it is, else 0.
	worker int
	// lock is the file that its owner has locked.
	lock string
}

// listPlaces measures the worktrees, and the scratch folders of other instances.
func (s *session) listPlaces(ctx context.Context) (list []place) {
	own := fileName(s.Instance)
	trees, scratch := filepath.Join(s.dir, "worktrees"), filepath.Join(s.dir, "scratch")
	add := func(path, lock string, worker int, times ...string) {
		p := place{worker: worker, lock: lock}
		p.Path, p.Size = path, retention.Measure(ctx, path)
		p.Age, p.Setting = s.Configuration.Retention.Worktrees.Age, "retention.worktrees.age"
		for _, file := range append(times, path) {
			if info, err := os.Lstat(file); err == nil && info.ModTime().After(p.Used) {
				p.Used = info.ModTime()
			}
		}
		list = append(list, p)
	}
	for _, instance := range s.folders(trees) {
		for _, repository := range s.folders(filepath.Join(trees, instance.Name())) {
			dir := filepath.Join(trees, instance.Name(), repository.Name())
			for _, e := range s.folders(dir) {
				if strings.HasPrefix(e.Name(), ".") {
					continue // a worktree has it on its way
				}
				worker := 0
				if instance.Name() == own {
					number, _, _ := strings.Cut(e.Name(), "-")
					worker, _ = strconv.Atoi(number)
				}
				path := filepath.Join(dir, e.Name())
				add(path, path+".lock", worker, path+".index")
			}
		}
	}
	for _, instance := range s.folders(scratch) {
		if instance.Name() != own {
			path := filepath.Join(scratch, instance.Name())
			var inside []string
			for _, e := range s.entries(path) {
				inside = append(inside, filepath.Join(path, e.Name()))
			}
			add(path, filepath.Join(s.dir, "instances", instance.Name()+".lock"), 0, inside...)
		}
	}
	return list
}

// retainPlaces removes the worktrees and scratch folders that go beyond a bound, but those of workers that run a step. A worker
// whose worktree is removed takes no step meanwhile. It is the dispatcher's.
func (s *session) retainPlaces(ctx context.Context, list []place, now time.Time) {
	var items []retention.Item
	places, total := map[string]place{}, int64(0)
	for _, p := range list {
		if p.worker > 0 && p.worker <= len(s.workers) {
			p.InUse = s.workers[p.worker-1].busy
		}
		places[p.Path] = p
		items = append(items, p.Item)
		total += p.Size
	}
	s.Kept.Keep(keptWorktrees, total)
	victims := retention.Excess(items, int64(s.Configuration.Retention.Worktrees.Size), "retention.worktrees.size", now)
	if len(victims) == 0 {
		return
	}
	taken := map[int]*worker{}
	for _, v := range victims {
		if n := places[v.Path].worker; n > 0 && n <= len(s.workers) {
			taken[n] = s.workers[n-1]
			taken[n].busy = true
		}
	}
	s.task(func() func() {
		var deleted []retention.Victim
		var err error
		for _, v := range victims {
			if ctx.Err() != nil {
				break
			}
			p := places[v.Path]
			if w := taken[p.worker]; w != nil {
				w.leave(p.Path)
			}
			removed, failure := removePlace(p)
			if err = errors.Join(err, failure); removed {
				deleted = append(deleted, v)
				total -= v.Size
			}
		}
		s.account(keptWorktrees, "", deleted, err)
		s.Kept.Keep(keptWorktrees, total)
		return func() {
			for _, w := range taken {
				w.busy = false
			}
		}
	})
}

// leave gives a worktree of the worker up.
func (w *worker) leave(path string) {
	w.leaveServer()
	for repository, tree := range w.worktrees {
		if tree.Dir() == path {
			tree.Release()
			delete(w.worktrees, repository)
		}
	}
}

// removePlace removes a worktree or scratch folder unless another process has it.
func removePlace(p place) (removed bool, err error) {
	unlock, err := retention.TryLock(p.lock)
	if errors.Is(err, retention.ErrLocked) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer unlock()
	if err := execution.RemoveAll(p.Path); err != nil {
		return false, err
	}
	for _, ending := range []string{".index", ".index.lock"} {
		if err := os.Remove(p.Path + ending); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return true, err
		}
	}
	return true, nil
}
