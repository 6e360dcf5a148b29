package execution

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"landfall.build/platform/sandbox"
	"landfall.build/platform/sandbox/lookups"
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
	return tryOut(ctx, dir, Request{
		Sandbox:  &sandbox.Spec{Network: network},
		Commands: []Command{{Name: "true", Argv: []string{"true"}}},
	})
}

// LayersAvailable reports why steps in a sandbox cannot be given folders of layers that lie in a directory. It is asked once,
// too.
func LayersAvailable(ctx context.Context, directory string) error {
	dir, err := os.MkdirTemp(directory, "layers-")
	if err != nil {
		return err
	}
	defer RemoveAll(dir)
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return err
	}
	names := []string{"lower", "upper", "work", "view"}
	for _, name := range names {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			return err
		}
	}
	view := filepath.Join(dir, "view")
	err = tryOut(ctx, dir, Request{
		Sandbox:  &sandbox.Spec{Network: sandbox.Host},
		Overlays: []Overlay{{Overlay: sandbox.Overlay{Path: view, Dir: dir, Lower: names[:1], Upper: names[1], Work: names[2]}}},
		Commands: []Command{{Name: "mkdir", Argv: []string{"mkdir", filepath.Join(view, "made")}}},
	})
	if err != nil {
		return err
	}
	_, err = os.Stat(filepath.Join(dir, "upper", "made"))
	return err
}

// LookupsAvailable reports why what steps look for cannot be watched. It is asked once, too.
func LookupsAvailable(ctx context.Context) error {
	dir, err := os.MkdirTemp("", "landfall-lookups-")
	if err != nil {
		return err
	}
	defer RemoveAll(dir)
	worktree := filepath.Join(dir, "worktree")
	if err := os.Mkdir(worktree, 0o700); err != nil {
		return err
	}
	result := Run(ctx, Request{
		Worktree: worktree, Timeout: availableLimit, Environment: []string{"PATH=/usr/local/bin:/usr/bin:/bin"},
		Missing:  &lookups.Missing{Absent: []string{"absent"}},
		Commands: []Command{{Name: "sh", Argv: []string{"sh", "-c", "test ! -e absent"}}},
	})
	switch {
	case result.Outcome != Passed:
		return errors.New(result.Reason)
	case len(result.Lookups) == 0:
		return errors.New("a lookup was not seen")
	}
	return nil
}

// tryOut runs a step in a directory.
func tryOut(ctx context.Context, dir string, request Request) error {
	worktree := filepath.Join(dir, "worktree")
	if err := os.Mkdir(worktree, 0o700); err != nil {
		return err
	}
	request.Worktree, request.ScratchDir, request.Timeout = worktree, filepath.Join(dir, "scratch"), availableLimit
	request.Environment = []string{"PATH=/usr/local/bin:/usr/bin:/bin"}
	result := Run(ctx, request)
	if result.Outcome != Passed {
		return errors.New(result.Reason)
	}
	if result.Isolation == ProcessTree {
		return fmt.Errorf("%w: steps run without namespaces", sandbox.ErrUnavailable)
	}
	return nil
}
