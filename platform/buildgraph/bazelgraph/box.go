package bazelgraph

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	"landfall.build/platform/outbound"
	"landfall.build/platform/sandbox"
)

// box runs Bazel in a sandbox: its server and all else that the code of a tree has started end with the call. What Bazel has
// fetched and unpacked is kept from trees of the mainline alone; what it writes for another tree is in a layer that goes with
// the call, so that no tree can put a forged file where Bazel finds it for another one.
type box struct {
	spec sandbox.Spec
	dir  string
	// layers is set if the system can lay a layer over what is kept. If not, nothing is kept.
	layers bool
	// mainline is set if the tree is one of the mainline.
	mainline bool
}

// Names of the folders below dir. The work folder is the system's.
const (
	keptFolder  = "mainline"
	callFolder  = "call"
	upperFolder = callFolder + "/upper"
	workFolder  = callFolder + "/work"
)

// newBox returns nil if this system has no sandbox, and none is required.
func newBox(ctx context.Context, o *Options, place, checkout, binary string) (*box, error) {
	dir, err := filepath.EvalSymlinks(place)
	if err != nil {
		return nil, err
	}
	b := &box{spec: *o.Sandbox, dir: dir}
	b.spec.Read = append(slices.Clone(b.spec.Read), binary)
	b.spec.Write = append(slices.Clone(b.spec.Write), checkout)
	err = outbound.Try(ctx, b.spec)
	if err != nil && b.spec.Network == sandbox.Outbound && !o.SandboxRequired && ctx.Err() == nil {
		// As the builder does with steps, which warns.
		b.spec.Network = sandbox.Host
		err = outbound.Try(ctx, b.spec)
	}
	if err != nil {
		if ctx.Err() != nil || o.SandboxRequired {
			return nil, fmt.Errorf("it runs code of the change, and this system cannot isolate it, as steps.isolation: required asks for: %w", err)
		}
		return nil, nil
	}
	if err := errors.Join(b.clean(), os.MkdirAll(b.folder(), 0o755)); err != nil {
		return nil, err
	}
	layered, err := b.layered()
	if err == nil {
		err = outbound.Try(ctx, layered)
	}
	if b.layers = err == nil; !b.layers {
		err = removeAll(b.folder()) // it may be from before a sandbox without layers
	}
	return b, errors.Join(b.clean(), err, os.MkdirAll(b.folder(), 0o755))
}

// folder is where Bazel finds its folders, whichever tree it reads.
func (b *box) folder() string { return filepath.Join(b.dir, keptFolder) }

func (b *box) clean() error { return removeAll(filepath.Join(b.dir, callFolder)) }

// layered returns the sandbox in which what is written goes with the call.
func (b *box) layered() (sandbox.Spec, error) {
	for _, name := range []string{upperFolder, workFolder} {
		if err := os.MkdirAll(filepath.Join(b.dir, name), 0o755); err != nil {
			return sandbox.Spec{}, err
		}
	}
	spec := b.spec
	spec.Overlays = []sandbox.Overlay{{Path: b.folder(), Dir: b.dir, Lower: []string{keptFolder}, Upper: upperFolder, Work: workFolder}}
	return spec, nil
}

// wrap makes a command run in the sandbox. end has to be called once it has ended.
func (b *box) wrap(cmd *exec.Cmd) (end func(), err error) {
	if b.mainline || !b.layers {
		spec := b.spec
		spec.Write = append(slices.Clone(spec.Write), b.folder())
		stop, err := outbound.Wrap(spec, cmd)
		if err != nil {
			return nil, err
		}
		return func() {
			stop()
			if !b.mainline {
				_ = removeAll(b.folder())
				_ = os.MkdirAll(b.folder(), 0o755)
			}
		}, nil
	}
	if err := b.clean(); err != nil {
		return nil, err
	}
	spec, err := b.layered()
	if err != nil {
		return nil, err
	}
	stop, err := outbound.Wrap(spec, cmd)
	if err != nil {
		return nil, err
	}
	return func() {
		stop()
		_ = b.clean()
	}, nil
}

// removeAll is os.RemoveAll, also of what Bazel has made read-only.
func removeAll(dir string) error {
	if os.RemoveAll(dir) == nil {
		return nil
	}
	_ = filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if entry != nil && entry.IsDir() {
			_ = os.Chmod(path, 0o700)
		}
		return nil
	})
	return os.RemoveAll(dir)
}
