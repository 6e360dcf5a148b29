package audit

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"landfall.build/engine/decisive"
	"landfall.build/engine/targets"
	"landfall.build/platform/configuration"
	"landfall.build/platform/gitrepo"
	"landfall.build/services/builder/execution"
	"landfall.build/services/builder/outputs"
	"landfall.build/services/builder/provision"
	"landfall.build/services/builder/reading"
	"landfall.build/services/builder/secrets"
)

// Progress is how far an audit is.
type Progress struct {
	// Done of Total target versions.
	Done, Total int
	// Running are the targets that run at this moment, at most as many as there are workers.
	Running []string
	// Bad counts the versions that are not green so far.
	Bad int
	// Remaining is a prediction from what has been run; 0 while nothing has.
	Remaining time.Duration
}

// worker runs steps in a worktree of its own.
type worker struct {
	auditor *Auditor
	tree    *gitrepo.Worktree
	scratch string
	// lines are the decisive ones of the last step that did not pass.
	lines []string
}

// mostLog bounds what is kept of a step's output to find them.
const mostLog = 8 << 20

// round is one call's work, shared by the workers.
type round struct {
	auditor *Auditor
	mu      sync.Mutex
	// freed is told when a task has ended: another one may take what it had.
	freed  *sync.Cond
	agenda *agenda
	report *Report
	shown  Progress
	err    error
}

// run carries out the agenda.
func (a *Auditor) run(ctx context.Context, wanted *agenda, report *Report) error {
	r := &round{auditor: a, agenda: wanted, report: report, shown: Progress{Total: len(wanted.waiting)}}
	r.freed, wanted.has = sync.NewCond(&r.mu), a.o.Resources
	if err := a.startWorkers(ctx, min(a.o.Workers, r.shown.Total)); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var wg sync.WaitGroup
	for _, w := range a.pool {
		wg.Go(func() {
			for t := r.next(); t != nil; t = r.next() {
				if err := w.run(ctx, r, t); err != nil {
					r.fail(err)
					cancel()
					return
				}
			}
		})
	}
	wg.Wait()
	return r.err
}

// startWorkers makes sure that there are n workers.
func (a *Auditor) startWorkers(ctx context.Context, n int) error {
	for len(a.pool) < n {
		name := fmt.Sprint(len(a.pool) + 1)
		tree, err := a.o.Repo.AddWorktree(ctx, filepath.Join(a.o.Dir, "tree-"+name))
		if err != nil {
			return fmt.Errorf("a worktree for the audit: %w", err)
		}
		a.pool = append(a.pool, &worker{auditor: a, tree: tree, scratch: filepath.Join(a.o.Dir, "scratch-"+name)})
	}
	return nil
}

// next returns the task to be run now, nil if the round is over.
func (r *round) next() *task {
	r.mu.Lock()
	defer r.mu.Unlock()
	t := r.agenda.take(r.auditor.usual)
	for t == nil && len(r.agenda.waiting) > 0 && r.err == nil {
		r.freed.Wait()
		t = r.agenda.take(r.auditor.usual)
	}
	if t != nil {
		r.shown.Running = append(r.shown.Running, t.target.Name)
		r.show()
	}
	return t
}

func (r *round) fail(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err == nil {
		r.err = err
	}
	r.freed.Broadcast()
}

// finished notes a task that has its verdict.
func (r *round) finished(t *task, took time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.agenda.release(t)
	r.freed.Broadcast()
	r.auditor.usual[t.target.Name] = took
	r.report.Steps += t.finding.Runs
	r.report.Busy += took
	r.shown.Done++
	switch {
	case t.finding.Verdict != Green && t.finding.excused:
	case t.finding.Verdict != Green:
		r.shown.Bad++
	case t.finding.Runs > 1:
		r.report.Flaky = append(r.report.Flaky, t.finding)
	}
	for i, name := range r.shown.Running {
		if name == t.target.Name {
			r.shown.Running = append(r.shown.Running[:i:i], r.shown.Running[i+1:]...)
			break
		}
	}
	r.show()
}

func (r *round) show() {
	if r.auditor.o.Progress == nil {
		return
	}
	p := r.shown
	p.Running = append([]string(nil), p.Running...)
	p.Remaining = r.agenda.remaining(r.auditor.usual) / time.Duration(len(r.auditor.pool))
	r.auditor.o.Progress(p)
}

// run finds the verdict of a task. An error ends the audit.
func (w *worker) run(ctx context.Context, r *round, t *task) error {
	begun := time.Now()
	for {
		if err := w.tree.Checkout(ctx, t.tree); err != nil {
			return fmt.Errorf("check out %s: %w", t.tree, err)
		}
		result, err := w.verify(ctx, t)
		if err != nil {
			return err
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if result.Leftovers > 0 {
			return fmt.Errorf("%s left %d processes that could not be ended; end them and audit again", t.target.Name, result.Leftovers)
		}
		t.finding.settle(result, w.lines, time.Since(begun))
		if t.finding.Verdict == Green || t.finding.Runs > w.auditor.o.Retries {
			break
		}
		w.auditor.o.Logger.Info("a step is run again", "target", t.target.Name, "outcome", t.finding.Outcome, "reason", t.finding.Reason)
	}
	r.finished(t, time.Since(begun))
	return nil
}

// verify gives a target what those that it depends on have left, and runs its commands.
func (w *worker) verify(ctx context.Context, t *task) (execution.Result, error) {
	w.lines = nil
	bounds := w.auditor.o.Steps.Outputs
	workspace := outputs.Workspace{
		Dir: w.tree.Dir(), Bounds: outputs.Bounds{Each: int64(bounds.MaxSize), Total: int64(bounds.MaxTotal)}, Retries: w.auditor.o.Retries,
		ID: func(of targets.Target) string {
			return fmt.Sprintf("%x", sha256.Sum256(fmt.Appendf(nil, "%q %s", of.Name, of.Hash)))
		},
		Clean: func(ctx context.Context, _ *targets.Target) error { return w.tree.Checkout(ctx, t.tree) },
		Run:   w.execute,
		Say:   func(string, ...any) {},
	}
	if _, err := w.auditor.outputs.Give(ctx, workspace, t.target.Name, t.leaving); err != nil {
		if _, is := errors.AsType[*outputs.NotMade](err); is {
			return execution.Result{Outcome: execution.CouldNotRun, Reason: "The step was not run: " + err.Error()}, nil
		}
		return execution.Result{}, err
	}
	result := w.execute(ctx, t.target)
	_, err := w.auditor.outputs.Conclude(ctx, workspace, t.target, &result)
	return result, err
}

// execute runs a target's commands, given what the queue's workers give them. Caches are the audit's own.
func (w *worker) execute(ctx context.Context, t targets.Target) execution.Result {
	queue := configuration.Queue{Name: w.auditor.o.Queue, Analysis: w.auditor.o.Analysis, Steps: w.auditor.o.Steps}
	queue.Steps.Isolation = configuration.IsolationOff // what is audited has landed, and whoever audits shares caches with it
	step := provision.Step{Queue: queue, Target: t, Scratch: w.scratch, Limit: queue.Steps.Timeout, Caches: map[string]string{}}
	for _, name := range provision.CacheNames(queue, t) {
		dir := filepath.Join(w.auditor.o.Dir, "caches", name)
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return execution.Result{Outcome: execution.CouldNotRun, Reason: err.Error()}
		}
		step.Caches[name] = dir
	}
	// What is audited is the mainline, so its steps may have what they name.
	step.Secrets = map[string][]byte{}
	for _, name := range provision.SecretNames(t) {
		value, err := secrets.Read(ctx, name, queue.Steps.Secrets[name])
		if err != nil {
			return execution.Result{Outcome: execution.CouldNotRun, Reason: err.Error()}
		}
		step.Secrets[name] = value
	}
	var log bytes.Buffer
	request := execution.Request{Worktree: w.tree.Dir(), Log: &log, OutputLimit: mostLog}
	step.Fill(&request)
	result := execution.Run(ctx, request)
	if result.Outcome == execution.Failed || result.Outcome == execution.TimedOut {
		if tree, closeTree, err := reading.Tree(request, result); err == nil { // the outcome stands without them
			defer closeTree()
			w.lines = decisive.Lines(log.Bytes(), tree)
		}
	}
	return result
}

// Subject returns the first line of a commit's message.
func Subject(message string) string {
	line, _, _ := strings.Cut(strings.TrimLeft(message, "\n"), "\n")
	return strings.ToValidUTF8(line, "\uFFFD")
}
