package outputs

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"landfall.build/engine/targets"
	"landfall.build/services/builder/execution"
)

// Workspace is where a step is about to run: it holds the step's tree and nothing else.
type Workspace struct {
	Dir    string
	Bounds Bounds
	// ID names a target version in the store.
	ID func(targets.Target) string
	// Clean makes it hold the step's tree and nothing else. If the outputs of a target are to be made there, it may be another tree, in
	// which that target has the same version.
	Clean func(ctx context.Context, making *targets.Target) error
	// Run runs the steps of a target in it.
	Run func(ctx context.Context, t targets.Target) execution.Result
	// Retries is how often a target that fails is run again.
	Retries int
	// Say writes a line for those who read the step's log.
	Say func(format string, arguments ...any)
}

// NotMade is the error for outputs that are not kept, and that the steps of their target did not leave when they were run again. It
// proves nothing about the target that was to be given them.
type NotMade struct {
	Target string
	// Aborted is set if the run was ended.
	Aborted bool
	Reason  string
}

// Error returns a sentence without its stop.
func (e *NotMade) Error() string {
	return fmt.Sprintf("the outputs of %s, on which it depends, were not kept, and could not be made again: %s", e.Target, e.Reason)
}

// mostMakings bounds how often the outputs of one target are made because they are gone before they are laid, mostTorn how often what
// was found is gone or corrupt when it is laid.
const (
	mostMakings = 3
	mostTorn    = 100
)

// Given is what Give has done.
type Given struct {
	// Kept counts the targets whose outputs were kept, and Made those whose steps were run for them.
	Kept, Made int
}

// Give lays the outputs of all targets below a target into a workspace. Where outputs are not kept, it first runs the steps of
// their target there, with nothing but a tree and what that target is given itself. An error that is not a *NotMade is this
// machine's.
func (k *Keeper) Give(ctx context.Context, w Workspace, name string, leaving targets.Leaving) (given Given, err error) {
	below := leaving.Below(name)
	made, torn := map[string]int{}, 0
	for len(below) > 0 {
		missing, err := k.lay(ctx, w, below)
		switch {
		case err == nil && missing == nil:
			given.Made, given.Kept = len(made), len(below)-len(made)
			return given, nil
		case errors.Is(err, ErrMissing) && torn < mostTorn:
			torn++ // it is found to be missing the next time
		case err != nil:
			return given, err
		case made[missing.Name] >= mostMakings:
			return given, fmt.Errorf("the outputs of %s are gone as soon as they are kept", missing.Name)
		default:
			made[missing.Name]++
			w.Say("the outputs of %s are not kept: its steps are run for them", missing.Name)
			if err := k.make(ctx, w, *missing, leaving); err != nil {
				return given, err
			}
		}
		if err := w.Clean(ctx, nil); err != nil {
			return given, err
		}
	}
	return given, nil
}

// lay lays the outputs of some targets. If those of a target are not kept it lays none, and returns the first such target. The error
// is ErrMissing if outputs that were found are gone or damaged once they are laid.
func (k *Keeper) lay(ctx context.Context, w Workspace, below []targets.Target) (missing *targets.Target, err error) {
	entries := make([]Entry, len(below))
	for i, t := range below {
		if entries[i], err = k.Find(ctx, w.ID(t), targets.Outputs(t.Commands)); errors.Is(err, ErrMissing) && ctx.Err() == nil {
			return &below[i], nil
		} else if err != nil {
			return nil, err
		}
	}
	for i, e := range entries {
		if err := k.Folder.Lay(ctx, w.Dir, e); err != nil {
			return nil, fmt.Errorf("the outputs of %s: %w", below[i].Name, err)
		}
	}
	for i, e := range entries {
		w.Say("given the outputs of %s: %s", below[i].Name, e)
	}
	return nil, nil
}

// make runs the steps of a target and keeps its outputs.
func (k *Keeper) make(ctx context.Context, w Workspace, t targets.Target, leaving targets.Leaving) error {
	for try := 0; ; try++ {
		if err := w.Clean(ctx, &t); err != nil {
			return err
		}
		inner := w
		inner.Clean = func(ctx context.Context, making *targets.Target) error {
			if making == nil {
				making = &t
			}
			return w.Clean(ctx, making)
		}
		if _, err := k.Give(ctx, inner, t.Name, leaving); err != nil {
			return err
		}
		result := w.Run(ctx, t)
		entry, err := k.Conclude(ctx, w, t, &result)
		switch {
		case err != nil:
			return err
		case result.Leftovers > 0:
			return fmt.Errorf("the steps of %s left %d processes that could not be ended", t.Name, result.Leftovers)
		case result.Outcome == execution.Passed:
			w.Say("kept the outputs of %s: %s", t.Name, entry)
			return nil
		case result.Outcome == execution.Aborted:
			return &NotMade{Target: t.Name, Aborted: true, Reason: result.Reason}
		case result.Outcome != execution.Failed && result.Outcome != execution.TimedOut:
			return fmt.Errorf("the outputs of %s could not be made again: %s", t.Name, result.Reason)
		}
		if try >= w.Retries {
			return &NotMade{Target: t.Name, Reason: result.Reason}
		}
		w.Say("the steps of %s are run again: %s", t.Name, result.Reason)
	}
}

// Conclude keeps the outputs of a target that its steps have left in a workspace, if they have passed and none of their processes
// runs on. If the outputs may not be kept, it makes the result one that failed. An error is this machine's.
func (k *Keeper) Conclude(ctx context.Context, w Workspace, t targets.Target, result *execution.Result) (kept Entry, err error) {
	leaves := targets.Outputs(t.Commands)
	if len(leaves) == 0 || result.Outcome != execution.Passed || result.Leftovers > 0 {
		return Entry{}, nil
	}
	kept, err = k.Keep(ctx, w.ID(t), w.Dir, leaves, w.Bounds)
	if fault, is := errors.AsType[*Fault](err); is {
		at := slices.IndexFunc(t.Commands, func(c targets.Command) bool { return slices.Contains(c.Outputs, fault.Output) })
		result.Outcome, result.FailedCommand = execution.Failed, t.Commands[at].Name
		result.Reason = fmt.Sprintf("Command %q passed, but the step %s.", result.FailedCommand, fault.Message)
		return Entry{}, nil
	}
	return kept, err
}
