package builder

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/gitrepo"
	"landfall.build/services/builder/caches"
	"landfall.build/services/builder/execution"
	"landfall.build/services/builder/provision"
)

// worker runs one step at a time in worktrees of its own.
type worker struct {
	*session
	name    string
	number  int
	scratch string
	// worktrees has them by repository; abandoned counts those that a step's leftovers made unusable.
	worktrees map[string]*gitrepo.Worktree
	abandoned int

	// Only the dispatcher uses these.
	busy      bool
	lastBuild string
}

func newWorker(s *session, number int) *worker {
	return &worker{
		session: s, number: number, name: s.Instance + "/" + strconv.Itoa(number), worktrees: map[string]*gitrepo.Worktree{},
		scratch: filepath.Join(s.dir, "scratch", fileName(s.Instance), strconv.Itoa(number)),
	}
}

func (w *worker) release() {
	for _, tree := range w.worktrees {
		tree.Release()
	}
}

// work claims an attempt, makes it if the claim holds, and writes its end.
func (w *worker) work(ctx context.Context, j *job, now time.Time) {
	// The tree is laid out while the lease goes to the log and back.
	layingOut, stop := context.WithCancelCause(ctx)
	ready := make(chan *workplace, 1)
	go func() { ready <- w.layOut(layingOut, j) }()
	held := w.takeLease(ctx, j, now)
	if !held {
		stop(errLost)
		<-ready
		return
	}
	renewed := make(chan struct{})
	renewing, stopRenewing := context.WithCancel(context.WithoutCancel(ctx))
	go func() { defer close(renewed); w.renewLease(renewing, j) }()
	place := <-ready
	stop(nil)
	record := w.runStep(ctx, j, place)
	stopRenewing()
	<-renewed
	if errors.Is(context.Cause(ctx), errLost) {
		return
	}
	// A service that stops still writes how its steps ended, for a while.
	writing, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	ending := context.AfterFunc(ctx, func() { time.AfterFunc(endingLimit, cancel) })
	defer ending()
	if err := w.publish(writing, j.queue, changeOf(j.step.Build), j.step.Origin.Trace, record); err != nil {
		w.Logger.Error("the end of a step could not be written; it is run again once its lease lapses",
			"queue", j.queue, "target", j.step.Target, "outcome", record.Outcome, "error", err)
	}
}

// takeLease writes the lease, reads it back, and reports whether it is the one that counts.
func (w *worker) takeLease(ctx context.Context, j *job, now time.Time) bool {
	// Whatever happens, it is waited for: if it is in the log and nobody uses it, the step waits until it lapses.
	writing, cancel := context.WithTimeout(context.WithoutCancel(ctx), w.lease)
	defer cancel()
	offset, err := w.append(writing, j.queue, w.envelope(j.queue, changeOf(j.step.Build), j.step.Origin.Trace, w.leaseRecord(j, now)))
	if err != nil {
		w.Logger.Warn("a lease could not be written", "queue", j.queue, "target", j.step.Target, "error", err)
		w.fitness.failed(time.Now())
		return false
	}
	partition := w.partitionOf(j.queue)
	return w.await(writing, func() bool {
		if w.shared.builds[partition] <= offset {
			return false
		}
		j.held = w.shared.queue(j.queue).Holder(j.step.Version, j.step.Attempt) == j.lease
		return true
	}) && j.held
}

func (w *worker) leaseRecord(j *job, now time.Time) *eventsv1.StepLeased {
	return &eventsv1.StepLeased{
		Target: j.step.Target, Hash: j.step.Hash, Attempt: j.step.Attempt, Lease: j.lease, Worker: w.name,
		StampUs: now.UnixMicro(), UntilUs: now.Add(w.lease).UnixMicro(), Build: j.step.Build.GetBuild(), Exclusive: j.step.Claims.GetExclusive(),
	}
}

// renewLease extends the lease while the step runs. The step goes on if that cannot be written: its result counts if it comes
// first.
func (w *worker) renewLease(ctx context.Context, j *job) {
	ticker := time.NewTicker(max(w.lease/3, time.Millisecond))
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-ticker.C:
			_, err := w.append(ctx, j.queue, w.envelope(j.queue, changeOf(j.step.Build), j.step.Origin.Trace, w.leaseRecord(j, now)))
			if err != nil && ctx.Err() == nil {
				w.Logger.Warn("a lease could not be extended", "queue", j.queue, "target", j.step.Target, "error", err)
			}
		}
	}
}

// workplace is what a step needs to run, or why it cannot run.
type workplace struct {
	request    execution.Request
	step       provision.Step
	tree       *gitrepo.Worktree
	repository string
	caches     []*caches.Use
	// problem is why it cannot run, one sentence; workerFault is set if another worker may do better.
	problem     string
	workerFault bool
}

// layOut prepares the workplace. It does not fail: the workplace has the problem, also that of a panic.
func (w *worker) layOut(ctx context.Context, j *job) (place *workplace) {
	defer func() {
		if failure := recover(); failure != nil {
			w.Logger.Error("panic while a step was laid out", "worker", w.name, "target", j.step.Target, "panic", failure, "stack", string(debug.Stack()))
			place = &workplace{problem: fmt.Sprintf("The worker failed: %v.", failure), workerFault: true}
		}
	}()
	loader := w.graphs[j.queue]
	if loader == nil {
		return &workplace{problem: "The queue is not in this builder's configuration.", workerFault: true}
	}
	a, err := w.assembled(ctx, j.step.Build)
	if err == nil && a.conflict != "" {
		err = errors.New(a.conflict)
	}
	var tree string
	if err == nil {
		tree, err = a.tree(j.step.Part)
	}
	if err != nil {
		return &workplace{problem: fmt.Sprintf("The worker could not make the tree: %v.", err), workerFault: true}
	}
	part, invalid, err := loader.Part(ctx, a.repo, tree)
	if err != nil {
		return &workplace{problem: fmt.Sprintf("The worker could not read the tree's targets: %v.", err), workerFault: true}
	}
	target, found := part.Target(j.step.Target)
	switch {
	case !found || target.Hash.String() != j.step.Hash:
		return &workplace{workerFault: true, problem: "The worker finds another version of the target in the tree than the one asked for: " +
			"builders of several versions, or with several configurations, are running."}
	case len(target.Commands) == 0:
		why := ""
		if invalid != nil {
			why = " (" + strings.TrimSuffix(invalid.Message, ".") + ")"
		}
		return &workplace{problem: "The tree's targets are not known" + why + " and the queue has no analysis.whole_repository_steps, so nothing can verify it."}
	}
	place, err = w.checkOut(ctx, j.step.Build.GetRepository(), a.repo, tree)
	if err != nil {
		return &workplace{problem: fmt.Sprintf("The worker could not check the tree out: %v.", err), workerFault: true}
	}
	if lacking := w.lacking(j.step.Claims.GetResources()); lacking != "" {
		return &workplace{problem: lacking}
	}
	w.fillRequest(place, j, target)
	if place.problem, err = w.denied(ctx, j, a, target); err != nil {
		place.problem, place.workerFault = fmt.Sprintf("The worker could not read the mainline's targets: %v.", err), true
	}
	return place
}

func (w *worker) checkOut(ctx context.Context, repository string, repo *gitrepo.Repo, tree string) (*workplace, error) {
	worktree := w.worktrees[repository]
	if worktree == nil {
		name := strconv.Itoa(w.number)
		if w.abandoned > 0 {
			name += "-" + strconv.Itoa(w.abandoned)
		}
		dir := filepath.Join(w.dir, "worktrees", fileName(w.Instance), fileName(repository), name)
		if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
			return nil, err
		}
		var err error
		if worktree, err = repo.AddWorktree(ctx, dir); err != nil {
			return nil, err
		}
		w.worktrees[repository] = worktree
	}
	if err := worktree.Checkout(ctx, tree); err != nil {
		return nil, err
	}
	return &workplace{tree: worktree, repository: repository}, nil
}

// abandon gives up a worktree in which processes may still be running.
func (w *worker) abandon(place *workplace) {
	place.tree.Release()
	delete(w.worktrees, place.repository)
	w.abandoned++
}
