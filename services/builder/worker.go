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
	"sync"
	"time"

	"landfall.build/engine/steps"
	"landfall.build/engine/targets"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/buildgraph"
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
	// serving guards server, which is nil if there is none.
	serving sync.Mutex
	server  *server

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
	w.leaveServer()
	for _, tree := range w.worktrees {
		tree.Release()
	}
}

// work claims an attempt, makes it if the claim holds, and writes its end. ctx is that of the step.
func (w *worker) work(ctx context.Context, j *job, now time.Time) {
	defer w.restServer()
	defer j.ending.cancel()
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
	if open := j.stillOpen(); len(open) > 1 {
		w.runGroup(ctx, j, place, open)
		stopRenewing()
		<-renewed
		return
	}
	record := w.runStep(ctx, j.only(place), place)
	stopRenewing()
	<-renewed
	if !errors.Is(context.Cause(ctx), errLost) {
		w.publishEnd(j, record)
	}
}

// ending is the context of what is written about the end of a job's steps. It goes on while the service works, however long a step
// takes to end. Once the service stops it goes on for limit, counted from the first record that is being written then.
type ending struct {
	service, ctx context.Context
	cancel       context.CancelFunc
	limit        time.Duration
	last         sync.Once
}

func newEnding(service context.Context, limit time.Duration) *ending {
	e := &ending{service: service, limit: limit}
	e.ctx, e.cancel = context.WithCancel(context.WithoutCancel(service))
	return e
}

// write calls f with the context.
func (e *ending) write(f func(context.Context)) {
	defer context.AfterFunc(e.service, func() { e.last.Do(func() { time.AfterFunc(e.limit, e.cancel) }) })()
	f(e.ctx)
}

// publishEnd writes the end of a step, and returns the record's offset; -1 if it could not be written.
func (w *worker) publishEnd(j *job, record *eventsv1.StepFinished) (offset int64) {
	var err error
	j.ending.write(func(ctx context.Context) {
		offset, err = w.publishAt(ctx, j.queue, changeOf(j.step.Build), j.step.Origin.Trace, record)
	})
	if err != nil {
		w.Logger.Error("the end of a step could not be written; it is run again once its lease lapses",
			"queue", j.queue, "target", record.Target, "outcome", record.Outcome, "error", err)
		return -1
	}
	return offset
}

// only returns the job of the one step that the lease holds for, and leaves the workplace to it.
func (j *job) only(place *workplace) *job {
	if len(j.companions) == 0 {
		return j
	}
	one := &job{queue: j.queue, step: j.stillOpen()[0], lease: j.lease, began: j.began, ending: j.ending, filled: j.filled}
	if target, laidOut := place.targets[one.step.Version]; laidOut {
		place.step.Target = target
	} else if place.problem == "" {
		place.problem, place.workerFault = otherVersion, true
	}
	return one
}

// takeLease writes the lease, reads it back, and reports whether it is the one that counts.
func (w *worker) takeLease(ctx context.Context, j *job, now time.Time) bool {
	// Whatever happens, it is waited for: if it is in the log and nobody uses it, the step waits until it lapses.
	writing, cancel := context.WithTimeout(context.WithoutCancel(ctx), w.lease)
	defer cancel()
	offset, err := w.append(writing, j.queue, w.envelope(j.queue, changeOf(j.step.Build), j.step.Origin.Trace, w.leaseRecord(j, j.all(), now)))
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
		var held []steps.Step
		for _, one := range j.all() {
			if w.shared.queue(j.queue).Holder(one.Version, one.Attempt) == j.lease {
				held = append(held, one)
			}
		}
		j.setOpen(held)
		j.held = len(held) > 0
		return true
	}) && j.held
}

// leaseRecord claims attempts, or extends the lease of them.
func (w *worker) leaseRecord(j *job, list []steps.Step, now time.Time) *eventsv1.StepLeased {
	first := list[0]
	l := &eventsv1.StepLeased{
		Target: first.Target, Hash: first.Hash, Attempt: first.Attempt, Lease: j.lease, Worker: w.name,
		StampUs: now.UnixMicro(), UntilUs: now.Add(w.lease).UnixMicro(), Build: first.Build.GetBuild(), Exclusive: first.Claims.GetExclusive(),
		Quotas: first.Quotas, Filling: j.waitsFor(),
	}
	for _, one := range list[1:] {
		l.Group = append(l.Group, &eventsv1.LeasedVersion{Target: one.Target, Hash: one.Hash, Attempt: one.Attempt})
	}
	return l
}

// renewLease extends the lease while the step runs, and when something else is to be said of it. The step goes on if that cannot be
// written: its result counts if it comes first.
func (w *worker) renewLease(ctx context.Context, j *job) {
	ticker := time.NewTicker(max(w.lease/3, time.Millisecond))
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		case <-j.said:
		}
		open := j.stillOpen()
		if len(open) == 0 {
			continue
		}
		_, err := w.append(ctx, j.queue, w.envelope(j.queue, changeOf(j.step.Build), j.step.Origin.Trace, w.leaseRecord(j, open, time.Now())))
		if err != nil && ctx.Err() == nil {
			w.Logger.Warn("a lease could not be extended", "queue", j.queue, "target", j.step.Target, "error", err)
		}
	}
}

// workplace is what a step needs to run, or why it cannot run.
type workplace struct {
	request    execution.Request
	step       provision.Step
	tree       *gitrepo.Worktree
	repository string
	// space is what of the tree is in it.
	space space
	// part is the tree with its targets, and assembly what it was made with.
	part     buildgraph.Part
	assembly *assembly
	caches   []*caches.Use
	// serverKey says by what server it can be run, "" for none; server is the one that has its tree, if there is one.
	serverKey string
	server    *server
	// problem is why it cannot run, one sentence; workerFault is set if another worker may do better.
	problem     string
	workerFault bool
	// targets are those of the job's steps that are in the tree as they were asked for.
	targets map[steps.Version]targets.Target
}

const otherVersion = "The worker finds another version of the target in the tree than the one asked for: the configuration or a tool " +
	"has changed since the build was prepared, or builders of several versions or configurations are running."

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
		return &workplace{problem: fmt.Sprintf("The worker could not make the tree: %v.", err), workerFault: a == nil || a.conflict == "" && !a.isOfChanges(err)}
	}
	part, invalid, err := loader.Part(ctx, a.repo, tree)
	if err != nil {
		return &workplace{problem: fmt.Sprintf("The worker could not read the tree's targets: %v.", err), workerFault: true}
	}
	target, found := part.Target(j.step.Target)
	switch {
	case !found || target.Hash.String() != j.step.Hash:
		return &workplace{workerFault: true, problem: otherVersion}
	case len(target.Commands) == 0:
		return &workplace{problem: unverifiable(part, invalid)}
	}
	w.fillCaches(ctx, j, a, target)
	key := ""
	if !part.Graph.Leaving().Given(target.Name) { // what is given to a step is gone with the next checkout
		key = w.serverKey(j, tree, target)
	}
	if s := w.takeServer(j, key); s != nil {
		place = &workplace{tree: s.tree, repository: s.repository, server: s}
	} else if place, err = w.checkOut(ctx, j.step.Build.GetRepository(), a.repo, part, target.Name); err != nil {
		return w.notCheckedOut(ctx, j.step.Build.GetRepository(), a, tree, err)
	}
	if lacking := w.lacking(j.step.Claims); lacking != "" {
		return &workplace{problem: lacking}
	}
	place.serverKey, place.part, place.assembly = key, part, a
	w.fillRequest(place, j, target)
	place.targets = map[steps.Version]targets.Target{j.step.Version: target}
	for _, c := range j.companions {
		if other, found := part.Target(c.Target); found && other.Hash.String() == c.Hash {
			place.targets[c.Version] = other
		}
	}
	if place.problem, err = w.denied(ctx, j, a, target); err != nil {
		place.problem, place.workerFault = fmt.Sprintf("The worker could not read the mainline's targets: %v.", err), true
	}
	return place
}

// unverifiable returns why nothing verifies the whole repository, as a sentence.
func unverifiable(part buildgraph.Part, invalid *buildgraph.Invalid) string {
	const lacking = " and the queue has no analysis.whole_repository_steps, so nothing can verify it: "
	switch {
	case len(part.Graph.Unknown()) == 0:
		return "The repository has no targets" + lacking + "landfall init, in a clone, says what to write."
	case invalid != nil:
		return "The tree's targets are not known (" + strings.TrimSuffix(invalid.Message, ".") + ")" + lacking + "correct its definitions."
	}
	return "The tree's targets are not known" + lacking + "landfall init --check says why."
}

// worktreeOf returns the worker's worktree of a repository, and makes it if there is none.
func (w *worker) worktreeOf(ctx context.Context, repository string, repo *gitrepo.Repo) (*gitrepo.Worktree, error) {
	if worktree := w.worktrees[repository]; worktree != nil {
		return worktree, nil
	}
	name := strconv.Itoa(w.number)
	if w.abandoned > 0 {
		name += "-" + strconv.Itoa(w.abandoned)
	}
	dir := filepath.Join(w.dir, "worktrees", fileName(w.Instance), fileName(repository), name)
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return nil, err
	}
	worktree, err := repo.AddWorktree(ctx, dir)
	if err != nil {
		return nil, err
	}
	w.worktrees[repository] = worktree
	return worktree, nil
}

func (w *worker) checkOut(ctx context.Context, repository string, repo *gitrepo.Repo, part buildgraph.Part, target string) (*workplace, error) {
	worktree, err := w.worktreeOf(ctx, repository, repo)
	if err != nil {
		return nil, err
	}
	holds, err := checkOutFor(ctx, worktree, part.Tree, part, target)
	if err != nil {
		return nil, err
	}
	return &workplace{tree: worktree, repository: repository, space: holds}, nil
}

// isOfChanges reports whether the commits of changes are why a tree could not be made, on whatever worker.
func (a *assembly) isOfChanges(err error) bool {
	ofCommits := errors.Is(err, gitrepo.ErrNoSuchCommit) || errors.Is(err, gitrepo.ErrTooLarge) || errors.Is(err, gitrepo.ErrBadObject)
	return ofCommits && a.base != "" // the mainline's tree is there
}

// notCheckedOut returns the workplace of a tree that could not be checked out. A worker that can check the mainline's out there is not at
// fault, unless its disk is full: a link that no system takes must not have the steps of others wait.
func (w *worker) notCheckedOut(ctx context.Context, repository string, a *assembly, tree string, err error) *workplace {
	place := &workplace{problem: fmt.Sprintf("The worker could not check the tree out: %v.", err), workerFault: true}
	if worktree := w.worktrees[repository]; worktree != nil && tree != a.base && !gitrepo.DiskFull(err) && worktree.Checkout(ctx, a.base) == nil {
		place.problem, place.workerFault = fmt.Sprintf("The tree cannot be checked out, while the mainline's can: %v.", err), false
	}
	return place
}

// abandon gives up a worktree in which processes may still be running.
func (w *worker) abandon(place *workplace) {
	place.tree.Release()
	delete(w.worktrees, place.repository)
	w.abandoned++
}
