package builder

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"landfall.build/engine/steps"
	"landfall.build/engine/targets"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/telemetry"
	"landfall.build/services/builder/execution"
	"landfall.build/services/builder/groups"
)

// groupOf returns what the targets have in common that one invocation can verify together with this one; "" if it runs alone.
func groupOf(target targets.Target) (key string, results targets.Results) {
	if target.Closed || len(target.Commands) != 1 || target.Commands[0].Group == nil {
		return "", ""
	}
	c := target.Commands[0]
	needs := c.Needs
	needs.Caches, needs.RunsOn = nil, nil
	if !needs.IsZero() {
		return "", ""
	}
	return fmt.Sprintf("%q %q %q %q %q %q", c.Name, c.Dir, c.Env, c.Needs.Caches, c.Needs.RunsOn, c.Group.Argv) + string(c.Group.Results), c.Group.Results
}

// trusts holds which reports count, by their format.
var trusts = map[targets.Results]groups.Trust{
	targets.GoTest:     {Streams: true},
	targets.GoBuild:    {ExitSpeaks: true},
	targets.BazelBuild: {Streams: true}, targets.BazelTest: {Streams: true},
}

// groupRun is one invocation for the steps of a group.
type groupRun struct {
	*worker
	job   *job
	place *workplace
	// lease is that of the group, tally what the tool reports, and members the steps by what it calls them.
	tally   *groups.Tally
	members map[string]steps.Step
	logs    *memberLogs
	command targets.Command
	// kills is how many processes of the machine had been ended for want of memory when it began.
	kills int
	began time.Time
	// since is when the last result came.
	since time.Time
	// written is the offset of the last record.
	written int64
}

// runGroup makes one attempt at each of some steps, by one invocation, and writes the end of each as it comes.
func (w *worker) runGroup(ctx context.Context, j *job, place *workplace, open []steps.Step) {
	now := time.Now()
	g := &groupRun{worker: w, job: j, place: place, members: map[string]steps.Step{}, kills: execution.MemoryKills(), began: now, since: now, written: -1}
	// The worker is free once all ends are read back: else the first of them that is would be given out without the others.
	defer func() {
		partition := w.partitionOf(j.queue)
		reading, cancel := context.WithTimeout(j.ending.ctx, w.lease)
		defer cancel()
		w.await(reading, func() bool { return w.shared.builds[partition] > g.written })
	}()
	defer func() {
		if failure := recover(); failure != nil {
			w.Logger.Error("panic in a worker", "worker", w.name, "group", j.lease, "panic", failure, "stack", string(debug.Stack()))
			w.fitness.failed(time.Now())
			g.endAll(eventsv1.StepOutcome_STEP_OUTCOME_COULD_NOT_RUN, fmt.Sprintf("The worker failed: %v.", failure))
		}
	}()
	for _, one := range open {
		target, laidOut := place.targets[one.Version]
		if place.problem == "" && !laidOut {
			g.end(one, eventsv1.StepOutcome_STEP_OUTCOME_COULD_NOT_RUN, otherVersion)
			continue
		}
		if laidOut {
			g.members[target.Commands[0].Group.Label] = one
		}
	}
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, errLost):
	case cause != nil:
		g.endAll(eventsv1.StepOutcome_STEP_OUTCOME_ABORTED, abortReason(cause))
	case !w.anyWanted(j):
		g.endAll(eventsv1.StepOutcome_STEP_OUTCOME_ABORTED, abortReason(errUnwanted))
	case place.problem != "":
		if place.workerFault {
			w.fitness.failed(now)
		}
		g.endAll(eventsv1.StepOutcome_STEP_OUTCOME_COULD_NOT_RUN, place.problem)
	default:
		g.invoke(ctx)
	}
}

// anyWanted reports whether some build needs a result about a step of a job.
func (w *worker) anyWanted(j *job) (any bool) {
	w.shared.read(func() {
		list, _ := j.wanted(w.shared.queue(j.queue))
		any = len(list) > 0
	})
	return any
}

// invoke runs the tool, and writes results as they come.
func (g *groupRun) invoke(ctx context.Context) {
	labels, limit := g.fill()
	g.tally = groups.NewTally(labels, trusts[g.command.Group.Results])
	g.logs = g.newMemberLogs(g.members)
	defer g.logs.close()
	g.place.step.Limit = limit
	reports, err := g.listen(labels)
	if err != nil {
		g.fitness.failed(time.Now())
		g.endAll(eventsv1.StepOutcome_STEP_OUTCOME_COULD_NOT_RUN, fmt.Sprintf("The worker could not make the folder of a group: %v.", err))
		return
	}
	defer g.closeReports(reports)
	ticker := time.NewTicker(reportsEvery)
	defer ticker.Stop()
	type ended struct {
		execution.Result
		workerFault bool
	}
	done := make(chan ended, 1)
	go func() {
		result, workerFault := g.execute(ctx, g.job, g.place, nil)
		g.endCaches(g.place, g.job, result)
		done <- ended{result, workerFault}
	}()
	for {
		select {
		case <-g.tally.Changed():
			g.publishResults(ctx, g.tally.Take(), execution.Result{})
			continue
		case <-ticker.C:
			reports.poll()
			continue
		case e := <-done:
			reports.finish()
			g.conclude(ctx, e.Result, e.workerFault)
		}
		return
	}
}

// fill makes the request's target one that stands for the group, and returns its labels and its time limit: that of the target
// which may take longest.
func (g *groupRun) fill() (labels []string, limit time.Duration) {
	limit = g.place.step.Limit
	var members []string
	longest := time.Duration(0)
	for label, one := range g.members {
		c := g.place.targets[one.Version].Commands[0]
		g.command = c
		labels = append(labels, label)
		if c.Group.Member != "" {
			members = append(members, c.Group.Member)
		}
		if c.Timeout == 0 {
			c.Timeout = limit
		}
		longest = max(longest, c.Timeout)
	}
	slices.Sort(labels)
	slices.Sort(members)
	g.command.Argv, g.command.Timeout = slices.Concat(g.command.Group.Argv, members), longest
	g.place.step.Target = targets.Target{Commands: []targets.Command{g.command}}
	return labels, limit
}

// conclude writes the results of those steps that have none when the tool has ended.
func (g *groupRun) conclude(ctx context.Context, result execution.Result, workerFault bool) {
	if result.Leftovers > 0 {
		g.abandon(g.place)
	}
	if workerFault {
		g.fitness.failed(time.Now())
	} else {
		g.fitness.succeeded()
	}
	exited, code := false, 0
	if n := len(result.Commands); n > 0 && (result.Outcome == execution.Passed || result.Outcome == execution.Failed) {
		exited, code = result.Commands[n-1].Signal == "", result.Commands[n-1].ExitCode
	}
	rest := g.tally.End(exited, code)
	if slices.ContainsFunc(rest, func(r groups.Result) bool { return r.Outcome == groups.Nothing }) {
		g.leaveServer()
	}
	if strange, contradicted := g.tally.Odd(); len(strange)+len(contradicted) > 0 {
		g.Logger.Warn("a tool named targets that nobody asked for, or contradicted itself", "queue", g.job.queue, "command", g.command.Name,
			"strange", strange, "contradicted", contradicted)
	}
	if errors.Is(context.Cause(ctx), errLost) {
		return
	}
	g.publishResults(ctx, rest, result)
}

// publishResults writes results that came together. Each is said to have taken an equal share of the time since the last one. The
// time up to the first one is mostly the tool's start: it is shared among all targets, so that they are not taken for long ones.
func (g *groupRun) publishResults(ctx context.Context, list []groups.Result, whole execution.Result) {
	now := g.now()
	among := max(1, len(list))
	if g.since == g.began {
		among = len(g.members)
	}
	share := now.Sub(g.since) / time.Duration(among)
	for i, r := range list {
		one := g.members[r.Label]
		finished := now.Add(-share * time.Duration(len(list)-1-i))
		record := g.record(one, finished.Add(-share), finished)
		g.judge(ctx, record, r, whole)
		g.finish(one, record)
	}
	g.since = now
}

// now is the time by the clock as it stood when the group began: one that is set back meanwhile puts no result before an earlier one.
func (g *groupRun) now() time.Time { return g.began.Add(time.Since(g.began)) }

// judge fills in what a result means. What failed while the machine lacked memory or room shows nothing.
func (g *groupRun) judge(ctx context.Context, record *eventsv1.StepFinished, r groups.Result, whole execution.Result) {
	name := g.command.Name
	strained := ""
	switch {
	case r.Outcome != groups.Failed:
	case execution.MemoryKills() > g.kills:
		strained = "the worker ran out of memory meanwhile"
	case execution.Full(g.place.request.Worktree, 4<<20), execution.Full(filepath.Dir(g.scratch), 4<<20):
		strained = "the worker's disk was full"
	}
	if strained != "" {
		r = groups.Result{Label: r.Label, Why: "it failed, and " + strained}
	}
	took := time.Duration(record.FinishedUs-record.StartedUs) * time.Microsecond
	command := &eventsv1.CommandFinished{Name: name, DurationUs: took.Microseconds()}
	switch {
	case r.Outcome == groups.Passed:
		record.Outcome = eventsv1.StepOutcome_STEP_OUTCOME_PASSED
	case r.Outcome == groups.Failed:
		record.Outcome, record.FailedCommand = eventsv1.StepOutcome_STEP_OUTCOME_FAILED, name
		record.Reason = fmt.Sprintf("Command %q, run for %d targets, reported that this one failed.", name, len(g.members))
		command.ExitCode = 1
	case whole.Outcome == execution.Aborted:
		record.Outcome, record.Reason = eventsv1.StepOutcome_STEP_OUTCOME_ABORTED, abortReason(context.Cause(ctx))
		command.ExitCode = -1
	default:
		record.Outcome, record.Unreported = eventsv1.StepOutcome_STEP_OUTCOME_ABORTED, true
		record.Reason = fmt.Sprintf("Command %q, run for %d targets, gave no result for this one: %s. %sIt is run again.", name, len(g.members), r.Why, spaced(whole.Reason))
		command.ExitCode = -1
	}
	command.Outcome = record.Outcome
	record.Commands = []*eventsv1.CommandFinished{command}
	failed := r.Outcome == groups.Failed
	g.logs.end(record, r.Label, failed || record.Unreported)
	record.Log = g.keepLog(record.Log, failed)
	if failed {
		record.Decisive = g.decisiveLines(g.place, execution.Result{FailedCommand: name}, g.logs.output(r.Label, record.Log), g.began)
	}
}

func spaced(sentence string) string {
	if sentence == "" {
		return ""
	}
	return strings.TrimSpace(sentence) + " "
}

func (g *groupRun) record(one steps.Step, started, finished time.Time) *eventsv1.StepFinished {
	return &eventsv1.StepFinished{
		Target: one.Target, Hash: one.Hash, Attempt: one.Attempt, Worker: g.name, Build: one.Build.GetBuild(), Group: g.job.lease,
		StartedUs: started.UnixMicro(), FinishedUs: max(started.UnixMicro(), finished.UnixMicro()),
	}
}

// end writes that a step was not run.
func (g *groupRun) end(one steps.Step, outcome eventsv1.StepOutcome, reason string) {
	record := g.record(one, g.since, g.now())
	record.Outcome, record.Reason = outcome, reason
	g.finish(one, record)
}

// endAll writes that of all steps that have no result.
func (g *groupRun) endAll(outcome eventsv1.StepOutcome, reason string) {
	for _, one := range g.job.stillOpen() {
		g.end(one, outcome, reason)
	}
}

// finish writes the end of a step, whose lease is extended no more.
func (g *groupRun) finish(one steps.Step, record *eventsv1.StepFinished) {
	g.metrics.step(g.job.queue, record)
	g.Logger.Info("step finished", "queue", g.job.queue, "change", changeOf(one.Build), "target", one.Target, "attempt", one.Attempt,
		"outcome", record.Outcome.String(), "reason", record.Reason, "worker", g.name, "group", len(g.members), telemetry.TraceID(one.Origin.Trace))
	g.written = max(g.written, g.publishEnd(g.job, record))
	g.job.setOpen(slices.DeleteFunc(g.job.stillOpen(), func(o steps.Step) bool { return o.Version == one.Version }))
}
