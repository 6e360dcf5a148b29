package builder

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"landfall.build/engine/decisive"
	"landfall.build/engine/targets"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/steplog"
	"landfall.build/platform/telemetry"
	"landfall.build/services/builder/execution"
	"landfall.build/services/builder/provision"
	"landfall.build/services/builder/reading"
	"landfall.build/services/builder/secrets"
)

// attemptName is an attempt as part of derived ids.
func attemptName(attempt uint32) string { return strconv.FormatUint(uint64(attempt), 10) }

// fillRequest makes the step's request of its target's commands. The queue's time limit holds for each command that has no
// shorter one.
func (w *worker) fillRequest(place *workplace, j *job, target targets.Target) {
	policy, queue := j.step.Build.GetSteps(), w.Configuration.Queues[j.queue]
	limit := time.Duration(policy.GetTimeoutUs()) * time.Microsecond
	if limit <= 0 {
		limit = queue.Steps.Timeout
	}
	r := &place.request
	r.Worktree, r.OutputLimit = place.tree.Dir(), policy.GetLogLimitBytes()
	if r.OutputLimit <= 0 {
		r.OutputLimit = int64(queue.Steps.LogLimit)
	}
	r.Limits, r.Cgroups = w.limits, w.cgroups
	if w.watched && place.space.files != nil {
		r.Missing = &place.space.missing
	}
	if memory := w.Configuration.Builder.MemoryLimit; memory != nil && w.cgroups == nil {
		// For a process that takes memory faster than it is counted. Not where nobody has asked for a limit: sanitizers map far more
		// than they use.
		r.MemoryLimit = 2 * int64(*memory)
	}
	place.step = provision.Step{Queue: queue, Target: target, Scratch: w.scratch, Limit: limit,
		ContainerRuntime: w.Configuration.Builder.ContainerRuntime, Isolated: w.isolated, Network: w.networks[j.queue], Hide: w.hide()}
}

// runStep makes the attempt. Whatever happens, it returns a record.
func (w *worker) runStep(ctx context.Context, j *job, place *workplace) (record *eventsv1.StepFinished) {
	record = &eventsv1.StepFinished{
		Target: j.step.Target, Hash: j.step.Hash, Attempt: j.step.Attempt, Worker: w.name, Build: j.step.Build.GetBuild(),
		StartedUs: time.Now().UnixMicro(),
	}
	workerFault := false // another worker may do better
	defer func() {
		if failure := recover(); failure != nil {
			w.Logger.Error("panic in a worker", "worker", w.name, "target", j.step.Target, "panic", failure, "stack", string(debug.Stack()))
			record.Outcome, record.Reason, workerFault = eventsv1.StepOutcome_STEP_OUTCOME_COULD_NOT_RUN, fmt.Sprintf("The worker failed: %v.", failure), true
		}
		record.FinishedUs = max(record.StartedUs, time.Now().UnixMicro())
		if workerFault {
			w.fitness.failed(time.Now())
		} else {
			w.fitness.succeeded()
		}
		w.metrics.step(j.queue, record)
		w.Logger.Info("step finished", "queue", j.queue, "change", changeOf(j.step.Build), "target", j.step.Target, "attempt", j.step.Attempt,
			"outcome", record.Outcome.String(), "reason", record.Reason, "worker", w.name, telemetry.TraceID(j.step.Origin.Trace))
	}()
	if !w.stillWanted(j) {
		record.Outcome, record.Reason = eventsv1.StepOutcome_STEP_OUTCOME_ABORTED, abortReason(errUnwanted)
		return record
	}
	if cause := context.Cause(ctx); cause != nil {
		record.Outcome, record.Reason = eventsv1.StepOutcome_STEP_OUTCOME_ABORTED, abortReason(cause)
		return record
	}
	if place.problem != "" {
		record.Outcome, record.Reason, workerFault = eventsv1.StepOutcome_STEP_OUTCOME_COULD_NOT_RUN, place.problem, place.workerFault
		return record
	}
	log, name, err := w.createLog(j)
	if err != nil {
		record.Outcome, workerFault = eventsv1.StepOutcome_STEP_OUTCOME_COULD_NOT_RUN, true
		record.Reason = fmt.Sprintf("The worker could not keep the step's log: %v.", err)
		return record
	}
	result, output := execution.Result{Outcome: execution.CouldNotRun}, stepOutput{}
	defer func() { w.endCaches(place, j, result) }()
	if problem, fault := w.giveOutputs(ctx, j, place, log, record); problem != nil {
		result, workerFault = *problem, fault
	} else {
		output.from, _ = log.Seek(0, io.SeekCurrent) // else from the start
		result, workerFault = w.execute(ctx, j, place, log)
		result.Lookups = place.space.known(result.Lookups)
		judgeLookups(&result)
		w.keepOutputs(ctx, j, place, &result, log, record)
	}
	if err := log.Close(); err != nil && result.Outcome != execution.Aborted {
		result.Outcome, workerFault = execution.CouldNotRun, true
		result.Reason = fmt.Sprintf("The worker could not keep the step's log: %v.", err)
	}
	if result.Leftovers > 0 {
		w.abandon(place)
	}
	failed := result.Outcome == execution.Failed || result.Outcome == execution.TimedOut
	record.Log = w.keepLog(name, failed)
	fillRecord(record, result, int(w.Configuration.Queues[j.queue].Steps.OutputTail))
	output.log = filepath.Join(LogDir(w.dir), filepath.FromSlash(record.Log))
	if failed {
		record.Decisive = w.decisiveLines(place, result, output, time.UnixMicro(record.StartedUs))
	}
	if result.Outcome == execution.Passed {
		w.countTests(record, output)
	}
	if result.Outcome == execution.Aborted {
		record.Reason = abortReason(context.Cause(ctx))
	}
	return record
}

// execute gives the step its caches and secrets, and runs it. workerFault is set if another worker may do better.
func (w *worker) execute(ctx context.Context, j *job, place *workplace, log io.Writer) (result execution.Result, workerFault bool) {
	if s := place.server; s != nil {
		place.caches, place.step.Caches, place.step.Layered, place.step.Paths = s.caches, s.folders, s.layered, s.paths
	} else if problem, fault := w.giveCaches(place, j); problem != "" {
		return couldNotRun("%s", problem), fault
	}
	place.step.Secrets = map[string][]byte{}
	for _, name := range provision.SecretNames(place.step.Target) {
		value, err := secrets.Read(ctx, name, place.step.Queue.Steps.Secrets[name])
		if err != nil {
			return couldNotRun("%s", sentence(err)), true
		}
		place.step.Secrets[name] = value
	}
	place.step.Fill(&place.request)
	place.request.Log = log
	place.giveOverlays()
	if place.server != nil || place.serverKey != "" && len(j.companions) > 0 && place.step.Sandboxed() {
		return w.serve(ctx, place, j), false
	}
	return patiently(ctx, place.step.Limit, func() execution.Result { return execution.Run(ctx, place.request) }, func(reason string) {
		w.Logger.Warn("a step cannot be started, and waits until it can", "queue", j.queue, "target", j.step.Target, "reason", reason)
		sayIn(log)("the step could not be started, and is tried again for %s: %s", place.step.Limit, reason)
	}), false
}

// Pauses between two tries to start a step.
const (
	firstPause   = time.Second
	longestPause = 30 * time.Second
)

// patiently runs a step, and again where nothing of it could be started for want of something that a step of another change may have
// taken (Result.Short). That one ends within the time limit, and so long this one waits: to try at once would use up its retries, and
// cost a change that has nothing to do with it its place in the queue. say is called once, before it waits.
func patiently(ctx context.Context, limit time.Duration, run func() execution.Result, say func(reason string)) execution.Result {
	pause, waited := firstPause, time.Duration(0)
	for {
		result := run()
		if !result.Short || waited+pause > limit {
			return result
		}
		if waited == 0 {
			say(result.Reason)
		}
		select {
		case <-ctx.Done(): // the next try is aborted before it starts
		case <-time.After(pause):
		}
		waited += pause
		pause = min(2*pause, longestPause)
	}
}

// giveOverlays adds the caches in layers to the request.
func (p *workplace) giveOverlays() {
	for _, use := range p.caches {
		if use.Overlay != nil {
			p.request.Overlays = append(p.request.Overlays, *use.Overlay)
		}
	}
}

// couldNotRun returns the result of a step that was not started.
func couldNotRun(format string, arguments ...any) execution.Result {
	return execution.Result{Outcome: execution.CouldNotRun, Reason: fmt.Sprintf(format, arguments...)}
}

// stillWanted reports whether some build still needs the result. The state may have changed since the step was chosen.
func (w *worker) stillWanted(j *job) (wanted bool) {
	w.shared.read(func() { wanted = w.shared.queue(j.queue).Wants(j.step.Version) })
	return wanted
}

// abortReason returns a sentence about why a step was ended.
func abortReason(cause error) string {
	switch {
	case errors.Is(cause, errUnwanted):
		return "The step was ended: " + errUnwanted.Error() + "."
	case errors.Is(cause, errPreempted):
		return "The step was ended, and is run again: " + errPreempted.Error() + "."
	case cause == nil:
		return "The step was ended from outside."
	}
	return "The step was ended: " + errStopped.Error() + "."
}

// createLog makes the file for the complete output; name is its path below LogDir.
func (w *worker) createLog(j *job) (file *os.File, name string, err error) {
	name = steplog.Name(steplog.Run{Log: w.Log.ID(), Queue: j.queue, Target: j.step.Target, Hash: j.step.Hash, Attempt: j.step.Attempt, Lease: j.lease})
	full := filepath.Join(LogDir(w.dir), filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
		return nil, "", err
	}
	file, err = os.Create(full)
	if err == nil && j.filled > 0 {
		sayIn(file)("the cache %s was filled from the mainline first, which took %s", goBuildCache, j.filled.Round(time.Second))
	}
	return file, name, err
}

// keepLog gives the log of a step that has failed the name of one, and returns its name.
func (w *worker) keepLog(name string, failed bool) string {
	if !failed {
		return name
	}
	renamed := strings.TrimSuffix(name, steplog.Ending) + steplog.FailedEnding
	full := func(name string) string { return filepath.Join(LogDir(w.dir), filepath.FromSlash(name)) }
	if err := os.Rename(full(name), full(renamed)); err != nil {
		w.Logger.Warn("the log of a step that failed is kept as one that passed", "log", name, "error", err)
		return name
	}
	return renamed
}

var outcomes = map[execution.Outcome]eventsv1.StepOutcome{
	execution.Passed:   eventsv1.StepOutcome_STEP_OUTCOME_PASSED,
	execution.Failed:   eventsv1.StepOutcome_STEP_OUTCOME_FAILED,
	execution.TimedOut: eventsv1.StepOutcome_STEP_OUTCOME_TIMED_OUT,
	execution.Aborted:  eventsv1.StepOutcome_STEP_OUTCOME_ABORTED,
}

// outcomeOf returns the outcome as events have it. One that is not known is not held against the change.
func outcomeOf(o execution.Outcome) eventsv1.StepOutcome {
	if out, known := outcomes[o]; known {
		return out
	}
	return eventsv1.StepOutcome_STEP_OUTCOME_COULD_NOT_RUN
}

// fillRecord copies a result to its record. tail bounds the output in it, in bytes.
func fillRecord(record *eventsv1.StepFinished, r execution.Result, tail int) {
	record.Outcome, record.FailedCommand, record.Reason = outcomeOf(r.Outcome), r.FailedCommand, r.Reason
	for _, c := range r.Commands {
		record.Commands = append(record.Commands, &eventsv1.CommandFinished{
			Name: c.Name, ExitCode: int32(c.ExitCode), Signal: c.Signal, DurationUs: c.Duration.Microseconds(), Outcome: outcomeOf(c.Outcome),
		})
	}
	record.OutputBytes = r.OutputBytes
	record.OutputTail = bytes.ToValidUTF8(r.Tail[max(0, len(r.Tail)-min(execution.TailLimit, tail)):], nil)
}

// stepOutput is the file of a step's log, and where in it the step's own output begins. What comes before is of the builder, and of
// steps of other targets that were run again for it.
type stepOutput struct {
	log  string
	from int64
}

// countTests notes what the log of a step that passed says of its tests. It is for people: the step's outcome stands without it.
func (w *worker) countTests(record *eventsv1.StepFinished, output stepOutput) {
	text, err := output.bothEnds()
	if err != nil {
		w.Logger.Warn("a step's log could not be read for the tests that it ran", "log", output.log, "error", err)
		return
	}
	tests, untested := decisive.Tests(text)
	record.Tests, record.Untested = uint32(tests), untested
}

// mostRead bounds how much of either end of a log is read for what people are told of it.
const mostRead = 4 << 20

// decisiveLines returns the lines that show why a step did not pass, of its log or of the reports that it has left since it
// started. They are for people: whatever goes wrong, the step's outcome stands without them.
func (w *worker) decisiveLines(place *workplace, result execution.Result, from stepOutput, started time.Time) (lines []string) {
	defer func() {
		if failure := recover(); failure != nil {
			w.Logger.Error("panic while a log was read", "log", from.log, "panic", failure, "stack", string(debug.Stack()))
			lines = nil
		}
	}()
	output, err := from.bothEnds()
	if err != nil {
		w.Logger.Warn("a step's log could not be read for its decisive lines", "log", from.log, "error", err)
		return nil
	}
	tree, closeTree, err := reading.Tree(place.request, result)
	if err != nil {
		w.Logger.Warn("the tree of a step could not be opened", "tree", place.request.Worktree, "error", err)
		return nil
	}
	defer closeTree()
	if result.Reason != lookedElsewhere {
		lines = decisive.Lines(output, tree, w.reportsOf(place, output, started)...)
	}
	for _, hint := range []string{place.unreachable(output), place.space.lookedFor(result.Lookups, place.step.Target.Name)} {
		if hint != "" {
			lines = append([]string{hint}, lines...)
		}
	}
	return lines[:min(len(lines), decisive.Most)]
}

// bothEnds reads the output; of a long one its start and its end, with a line between.
func (o stepOutput) bothEnds() ([]byte, error) {
	file, err := os.Open(o.log)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	_, serr := file.Seek(o.from, io.SeekStart)
	if err = errors.Join(err, serr); err != nil || info.Size()-o.from <= 2*mostRead {
		content, rerr := io.ReadAll(io.LimitReader(file, 2*mostRead))
		return content, errors.Join(err, rerr)
	}
	content := make([]byte, 2*mostRead+1)
	_, err = io.ReadFull(file, content[:mostRead])
	content[mostRead] = '\n'
	_, rerr := file.ReadAt(content[mostRead+1:], info.Size()-mostRead)
	return content, errors.Join(err, rerr)
}
