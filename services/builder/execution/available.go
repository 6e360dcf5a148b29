package execution

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"landfall.build/platform/sandbox"
)

// availableLimit bounds how long a system may take to show that it has a sandbox.
const availableLimit = 20 * time.Second

// Available reports why steps cannot run in a sandbox with a network on this system: it runs one. It is asked once, at the
// start of a service. Later a step could see to it that the answer is another.
func Available(ctx context.Context, network sandbox.Network) error {
	dir, err := os.MkdirTemp("", "landfall-sandbox-")
	if err != nil {
		return err
	}
	defer RemoveAll(dir)
	worktree := filepath.Join(dir, "worktree")
	if err := os.Mkdir(worktree, 0o700); err != nil {
		return err
	}
	result := Run(ctx, Request{
		Worktree: worktree, ScratchDir: filepath.Join(dir, "scratch"), Sandbox: &sandbox.Spec{Network: network}, Timeout: availableLimit,
		Commands: []Command{{Name: "true", Argv: []string{"true"}, Environment: []string{"PATH=/usr/local/bin:/usr/bin:/bin"}}},
	})
	if result.Outcome != Passed {
		return errors.New(result.Reason)
	}
	if result.Isolation == ProcessTree {
		return fmt.Errorf("%w: steps run without namespaces", sandbox.ErrUnavailable)
	}
	return nil
}
