package builder

import (
	"bytes"
	"context"
	"io"
	"path"
	"slices"
	"strings"
	"time"

	"landfall.build/engine/targets"
	"landfall.build/platform/configuration"
	"landfall.build/platform/gitrepo"
	"landfall.build/services/builder/caches"
	"landfall.build/services/builder/execution"
	"landfall.build/services/builder/provision"
)

const (
	goBuildCache = "go-build"
	// fillLimit bounds each command that fills a cache, mostFilled for how many modules there is one.
	fillLimit  = 5 * time.Minute
	mostFilled = 20
)

// Of a module that go refuses, notListed is printed, and the next one is compiled.
const (
	notListed = "landfall: go cannot list "
	orSay     = `"$@" || echo "` + notListed + `$0"`
)

// filling is the run that fills a queue's caches. done is closed at its end; whole is set before that, unless it was broken off.
type filling struct {
	done  chan struct{}
	whole bool
}

// fillCaches has Go's build cache filled from the mainline if there is nothing in it: what steps of a change write there is seen by no
// other step before the change has landed, so each of the first ones would compile the standard library. Steps that come meanwhile
// wait. Whatever goes wrong, steps run without.
func (w *worker) fillCaches(ctx context.Context, j *job, a *assembly, target targets.Target) {
	queue := w.Configuration.Queues[j.queue]
	cache, _ := queue.Steps.Cache(goBuildCache)
	step := provision.Step{Queue: queue, Isolated: w.isolated}
	if !slices.Contains(provision.CacheNames(queue, target), goBuildCache) || cache.Share != configuration.ShareMainline || !step.Sandboxed() {
		return
	}
	for {
		w.mu.Lock()
		f := w.fillings[j.queue]
		mine := f == nil
		if mine {
			f = &filling{done: make(chan struct{})}
			w.fillings[j.queue] = f
		}
		w.mu.Unlock()
		if mine {
			defer close(f.done)
			f.whole = true
			if w.caches.Cold(fileName(j.queue), goBuildCache) {
				defer j.waitForCache(goBuildCache)()
				w.fillFrom(ctx, j, a, goFlags(target))
			}
			if ctx.Err() != nil {
				f.whole = false
				w.mu.Lock()
				delete(w.fillings, j.queue)
				w.mu.Unlock()
			}
			return
		}
		select {
		case <-f.done:
		default:
			waited := j.waitForCache(goBuildCache)
			select {
			case <-f.done:
			case <-ctx.Done():
			}
			waited()
		}
		if ctx.Err() != nil || f.whole {
			return
		}
	}
}

// fillFrom compiles all of the mainline's modules and their tests, and what they import, and lays what that leaves in caches where
// all steps find it.
func (w *worker) fillFrom(ctx context.Context, j *job, a *assembly, flags []string) {
	repository := j.step.Build.GetRepository()
	worktree, err := w.worktreeOf(ctx, repository, a.repo)
	var modules []string
	if err == nil {
		err = worktree.CheckoutOnly(ctx, a.base, func(entries []gitrepo.Entry) map[string]bool {
			all := map[string]bool{}
			for _, e := range entries {
				all[e.Path] = true
				if isGoModule(e.Path) && len(modules) < mostFilled {
					modules = append(modules, path.Dir(e.Path))
				}
			}
			return all
		})
	}
	if err != nil {
		w.Logger.Warn("the mainline could not be checked out to fill a cache", "queue", j.queue, "error", err)
		return
	}
	if len(modules) == 0 {
		return
	}
	fill := targets.Target{}
	for _, dir := range modules {
		fill.Commands = append(fill.Commands, targets.Command{
			Name: "fill " + dir, Dir: dir, Timeout: fillLimit,
			Argv: slices.Concat([]string{"sh", "-c", orSay, dir, "go", "list", "-e", "-export", "-test", "-deps"}, flags, []string{"./..."}),
		})
	}
	place := &workplace{tree: worktree, repository: repository}
	w.fillRequest(place, j, fill)
	place.step.Caches, place.step.Layered = map[string]string{}, map[string]bool{}
	result, began := execution.Result{Outcome: execution.CouldNotRun}, time.Now()
	defer func() {
		for _, use := range place.caches {
			if result.Outcome != execution.Aborted && result.Outcome != execution.CouldNotRun && result.Leftovers == 0 {
				use.Lay()
			} else {
				use.End(false, nil)
			}
		}
	}()
	for _, name := range provision.CacheNames(place.step.Queue, place.step.Target) {
		cache, known := place.step.Queue.Steps.Cache(name)
		if !known || cache.Share != configuration.ShareMainline { // a change may have written to it
			continue
		}
		use, err := w.caches.Acquire(caches.Step{Queue: fileName(j.queue)}, name, cache)
		if err != nil {
			w.Logger.Warn("a cache could not be filled", "queue", j.queue, "error", err)
			return
		}
		place.caches = append(place.caches, use)
		place.step.Caches[name], place.step.Layered[name] = use.Dir, use.Overlay != nil
	}
	place.step.Fill(&place.request)
	place.request.Log = io.Discard
	place.giveOverlays()
	w.Logger.Info("filling Go's build cache from the mainline; steps wait for it", "queue", j.queue, "modules", len(modules))
	if result = execution.Run(ctx, place.request); result.Leftovers > 0 {
		w.abandon(place)
	}
	if ctx.Err() != nil {
		return
	}
	if result.Outcome == execution.Passed && !bytes.Contains(result.Tail, []byte(notListed)) {
		w.Logger.Info("Go's build cache is filled", "queue", j.queue, "seconds", int(time.Since(began).Seconds()))
		return
	}
	w.Logger.Warn("Go's build cache is filled from a part of the mainline alone, so each of the first steps may compile what it needs", "queue", j.queue,
		"reason", result.Reason, "output", string(result.Tail[max(0, len(result.Tail)-500):]))
}

// isGoModule reports whether a file is the go.mod of a module that the go command finds packages in.
func isGoModule(file string) bool {
	dir, name := path.Split(file)
	return name == "go.mod" && !slices.ContainsFunc(strings.Split(path.Clean(dir), "/"), func(part string) bool {
		return part == "vendor" || part == "testdata" || part != "." && strings.HasPrefix(part, ".") || strings.HasPrefix(part, "_")
	})
}

// goFlags returns the flags of a target's commands that have go compile packages in another way.
func goFlags(target targets.Target) (flags []string) {
	for _, c := range target.Commands {
		if len(c.Argv) == 0 || path.Base(c.Argv[0]) != "go" {
			continue
		}
		for _, flag := range c.Argv[1:] {
			name, _, _ := strings.Cut(strings.TrimLeft(flag, "-"), "=")
			alone := slices.Contains([]string{"race", "msan", "asan", "trimpath"}, name)
			if strings.HasPrefix(flag, "-") && (alone || name == "tags" && strings.Contains(flag, "=")) && !slices.Contains(flags, flag) {
				flags = append(flags, flag)
			}
		}
	}
	return flags
}
