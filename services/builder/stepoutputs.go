package builder

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"landfall.build/engine/targets"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/retention"
	"landfall.build/services/builder/execution"
	"landfall.build/services/builder/outputs"
)

// newKeeper returns the keeper of outputs, in a folder.
func (s *session) newKeeper(ctx context.Context, dir string) (*outputs.Keeper, error) {
	folder, err := outputs.OpenFolder(dir)
	if err != nil {
		return nil, err
	}
	kept := s.Configuration.Retention.Outputs
	keeper := &outputs.Keeper{
		Folder: folder, Limits: outputs.Limits{Age: kept.Age, Size: int64(kept.Size)}, Logger: s.Logger,
		Trimmed: func(deleted []retention.Victim, left int64, err error) {
			s.account(keptOutputs, "", deleted, err)
			s.Kept.Keep(keptOutputs, left)
		},
	}
	shared := s.Configuration.Builder.Outputs
	keeper.Patience, keeper.Rest = shared.Timeout, sharedRest
	keeper.Remote, keeper.Seal, err = outputs.Open(ctx, shared)
	return keeper, err
}

// sharedRest is how long the store that builders share is left alone after it has failed.
const sharedRest = 30 * time.Second

// outputsID returns the id of a target version's outputs. A result counts for one queue of one log, and so do outputs.
func (s *session) outputsID(queue string, t targets.Target) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %q %q", s.Log.ID(), queue, t.Name, t.Hash))
	return hex.EncodeToString(sum[:])
}

// workspace returns what package outputs has to know of a step's worktree. Processes that a run in it leaves are added to leftovers.
func (w *worker) workspace(j *job, place *workplace, log io.Writer, leftovers *int) outputs.Workspace {
	bounds := place.step.Queue.Steps.Outputs
	return outputs.Workspace{
		Dir: place.tree.Dir(), Bounds: outputs.Bounds{Each: int64(bounds.MaxSize), Total: int64(bounds.MaxTotal)},
		Retries: int(j.step.Build.GetSteps().GetFailedRetries()), Say: sayIn(log),
		ID:    func(t targets.Target) string { return w.outputsID(j.queue, t) },
		Clean: func(ctx context.Context, making *targets.Target) error { return w.clean(ctx, j, place, making) },
		Run: func(ctx context.Context, t targets.Target) execution.Result {
			inner := &workplace{tree: place.tree, repository: place.repository, part: place.part, assembly: place.assembly}
			w.fillRequest(inner, j, t)
			result, _ := w.execute(ctx, j, inner, log)
			w.endCaches(inner, j, result)
			*leftovers += result.Leftovers
			return result
		},
	}
}

// giveOutputs lays the outputs of all targets that the step's depends on into the worktree. It returns nil, or the result of a step
// that cannot be run; then workerFault is set if another worker may do better.
func (w *worker) giveOutputs(ctx context.Context, j *job, place *workplace, log io.Writer, record *eventsv1.StepFinished) (result *execution.Result, workerFault bool) {
	leaving := place.part.Graph.Leaving()
	name := place.step.Target.Name
	if !leaving.Given(name) {
		return nil, false
	}
	leftovers := 0
	given, err := w.outputs.Give(ctx, w.workspace(j, place, log, &leftovers), name, leaving)
	record.OutputsGiven, record.OutputsMade = uint32(given.Kept+given.Made), uint32(given.Made)
	if given.Made > 0 {
		w.Logger.Info("outputs that were not kept were made again", "queue", j.queue, "target", name, "made", given.Made, "kept", given.Kept)
	}
	if err == nil {
		return nil, false
	}
	failure := couldNotRun("The step was not run: %s.", strings.TrimSuffix(err.Error(), "."))
	failure.Leftovers = leftovers
	unmade, is := errors.AsType[*outputs.NotMade](err)
	if is && unmade.Aborted || ctx.Err() != nil {
		failure.Outcome = execution.Aborted
	}
	sayIn(log)("%s", failure.Reason)
	return &failure, !is && failure.Outcome != execution.Aborted
}

// clean makes the worktree hold the step's tree and nothing else. If the outputs of a target are to be made in it, and the mainline
// has the same version, it holds the mainline's tree: files of changes that have not landed then have no part in the outputs,
// declared or not.
func (w *worker) clean(ctx context.Context, j *job, place *workplace, making *targets.Target) error {
	tree, target := place.part.Tree, place.step.Target.Name
	if making != nil {
		target = making.Name
		base, _, err := w.graphs[j.queue].Part(ctx, place.assembly.repo, place.assembly.base)
		if err != nil {
			return err
		}
		if same, found := base.Target(making.Name); found && same.Hash == making.Hash {
			tree = place.assembly.base
		}
	}
	// What a run looks for that makes outputs is not watched: the step of its own target was.
	_, err := checkOutFor(ctx, place.tree, tree, place.part, target)
	return err
}

// keepOutputs keeps the outputs of a step that has passed. A step that did not leave what it declares has failed; outputs that this
// machine cannot keep are made again by those who need them.
func (w *worker) keepOutputs(ctx context.Context, j *job, place *workplace, result *execution.Result, log io.Writer, record *eventsv1.StepFinished) {
	passed, target := result.Outcome == execution.Passed, place.step.Target
	kept, err := w.outputs.Conclude(ctx, w.workspace(j, place, log, new(int)), target, result) // nothing is run in it
	switch {
	case err != nil:
		w.Logger.Warn("what a step has left could not be kept, and is made again by those who need it", "queue", j.queue, "target", target.Name, "error", err)
		sayIn(log)("the outputs could not be kept")
		record.Outputs = &eventsv1.StepOutputs{}
	case len(kept.Files) > 0:
		record.Outputs = &eventsv1.StepOutputs{Files: uint32(len(kept.Files)), Bytes: kept.Size(), Kept: true}
		w.Logger.Info("outputs kept", "queue", j.queue, "target", target.Name, "files", len(kept.Files), "bytes", kept.Size())
		sayIn(log)("outputs: %s, kept", kept)
	case passed && result.Outcome != execution.Passed:
		sayIn(log)("%s", result.Reason)
	}
}

// sayIn returns a function that writes lines of the builder into a step's log.
func sayIn(log io.Writer) func(string, ...any) {
	return func(format string, arguments ...any) {
		_, _ = fmt.Fprintf(log, "[%s]\n", fmt.Sprintf(format, arguments...)) // a log that fails is noticed when it is closed
	}
}
