package builder

import (
	"context"
	"fmt"
	"slices"
	"time"

	"landfall.build/engine/steps"
	"landfall.build/engine/targets"
	"landfall.build/platform/gitrepo"
	"landfall.build/services/builder/caches"
	"landfall.build/services/builder/execution"
)

// server is a sandbox in which Bazel's server outlives a step. It belongs to one tree and one set of changes, and never sees another
// tree. Code that runs in it can disturb a later step there as it could disturb another target of its own group.
type server struct {
	*execution.Session
	// key names the tree, the changes and the caches that it belongs to.
	key        string
	tree       *gitrepo.Worktree
	repository string
	// caches, folders, layered and paths are what its steps are given. reports is the folder of their reports.
	caches  []*caches.Use
	folders map[string]string
	layered map[string]bool
	paths   []string
	reports string
	// end gives the caches back. passed is set while all steps have passed.
	end    func(passed bool)
	passed bool
	// idle ends the server. used is set while a step runs in it.
	idle *time.Timer
	used bool
}

// serverKey returns what a server has to be of to serve a job; "" if none may, or the step is none of a server's.
func (w *worker) serverKey(j *job, tree string, target targets.Target) string {
	key, results := groupOf(target)
	if key == "" || results != targets.BazelBuild && results != targets.BazelTest {
		return ""
	}
	return fmt.Sprintf("%q %q %q %q", j.queue, tree, target.Commands[0].Needs.Caches, changeNames(j))
}

// changeNames returns the changes whose code a job runs.
func changeNames(j *job) (list []string) {
	for _, c := range ranBy(j.step.Build) {
		list = append(list, fmt.Sprintf("%s %d", c.GetChange(), c.GetRevision()))
	}
	slices.Sort(list)
	return list
}

// takeServer returns the worker's server if it may serve a job. Any other is ended: the worktree is about to change. What failed,
// or had no result, is run again in a sandbox that nothing has run in.
func (w *worker) takeServer(j *job, key string) *server {
	w.serving.Lock()
	defer w.serving.Unlock()
	again := slices.ContainsFunc(j.all(), func(s steps.Step) bool { return s.Attempt > 1 })
	if w.server == nil || w.server.key != key || again || !w.server.Alive() {
		w.endServer()
		return nil
	}
	w.server.idle.Stop()
	w.server.used = true
	return w.server
}

// restServer lets the server wait for the next step, for a while.
func (w *worker) restServer() {
	w.serving.Lock()
	defer w.serving.Unlock()
	s := w.server
	if s == nil {
		return
	}
	if !s.Alive() {
		w.endServer()
		return
	}
	s.used = false
	s.idle = time.AfterFunc(w.serverIdle, func() {
		w.serving.Lock()
		defer w.serving.Unlock()
		if w.server == s && !s.used {
			w.endServer()
		}
	})
}

// leaveServer ends the worker's server, if there is one.
func (w *worker) leaveServer() {
	w.serving.Lock()
	defer w.serving.Unlock()
	w.endServer()
}

// endServer ends the worker's server, if there is one, and with it all of its processes. w.serving is held.
func (w *worker) endServer() {
	s := w.server
	if s == nil {
		return
	}
	w.server = nil
	if s.idle != nil {
		s.idle.Stop()
	}
	leftovers := s.End()
	s.end(s.passed && leftovers == 0)
	if err := execution.RemoveAll(s.reports); err != nil {
		w.Logger.Warn("the folder of a group's reports could not be removed", "folder", s.reports, "error", err)
	}
	if leftovers > 0 && w.worktrees[s.repository] == s.tree {
		w.abandon(&workplace{tree: s.tree, repository: s.repository})
	}
}

// openServer opens a server for a step whose request is filled, and gives it the step's caches.
func (w *worker) openServer(place *workplace, j *job) error {
	opened, err := execution.Open(place.request)
	if err != nil {
		return err
	}
	s := &server{
		Session: opened, key: place.serverKey, tree: place.tree, repository: place.repository, passed: true, used: true,
		caches: place.caches, folders: place.step.Caches, layered: place.step.Layered, paths: place.step.Paths, reports: w.reportsFolder(),
	}
	by := ranBy(j.step.Build)
	s.end = func(passed bool) {
		for _, use := range s.caches {
			use.End(passed, by)
		}
	}
	place.server = s
	w.serving.Lock()
	defer w.serving.Unlock()
	w.server = s
	return nil
}

// serve runs a step by the server that it was laid out for, or in one of its own.
func (w *worker) serve(ctx context.Context, place *workplace, j *job) execution.Result {
	if place.server == nil {
		if err := w.openServer(place, j); err != nil {
			return couldNotRun("The step's sandbox could not be made: %v.", err)
		}
	}
	result := place.server.Run(ctx, place.request)
	place.server.passed = place.server.passed && result.Outcome == execution.Passed
	return result
}

// reportsFolder is where the tools of groups write reports.
func (w *worker) reportsFolder() string { return w.scratch + "-group" }
