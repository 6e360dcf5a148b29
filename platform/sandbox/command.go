package sandbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
)

// enterArgument is os.Args[1] of a process that enters a sandbox and then becomes a program. What it needs follows.
const enterArgument = "__landfall-sandboxed"

// exitUnavailable is the exit code of one that cannot enter. It says why on its standard error.
const exitUnavailable = 125

// errNotCalled keeps a program from starting itself without end.
var errNotCalled = errors.New("this program does not call sandbox.MaybeEnter first thing in main")

// called is set once this process has called MaybeEnter.
var called bool

// entry holds the settings of a process that enters a sandbox.
type entry struct {
	Spec Spec
	// Path is the program; "" for one that ends once it is in the sandbox.
	Path, Dir string
	Args      []string
}

// Try reports why this system cannot give such a sandbox.
func (s Spec) Try(ctx context.Context) error {
	cmd := exec.CommandContext(ctx, "")
	cmd.Err = nil // it has no program
	if err := s.Wrap(cmd); err != nil {
		return err
	}
	var said bytes.Buffer
	cmd.Stderr = &said
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return fmt.Errorf("%w: %w: %s", ErrUnavailable, err, strings.TrimSpace(said.String()))
	}
	return nil
}
