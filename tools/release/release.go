// Package release knows the release before this code, and what this code has in common with it: which records and snapshots it reads,
// and which releases it runs beside (decision 0102).
package release

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Release is a state of the code that others run.
type Release struct {
	// Version is what its command calls itself, Commit what it is built from.
	Version, Commit string
}

// pinned stands for release 0.1.0 until that is tagged: tools/replay/recompute/testdata/snapshots-0.1 was taken by it.
var pinned = Release{"0.1.0", "7fe5fc8a64475226a113a44e4af9bd0c5507569d"}

// ErrNoHistory is returned where there is no git history that holds the last release: no clone, or a shallow one.
var ErrNoHistory = errors.New("the git history here does not reach back to the last release")

// Last returns the last release before the commit that is checked out in a clone: the newest tag v* behind it, or the pinned commit if
// there is none.
func Last(ctx context.Context, clone string) (Release, error) {
	head, err := git(ctx, clone, "rev-parse", "HEAD")
	if err != nil {
		return Release{}, fmt.Errorf("%w: %w", ErrNoHistory, err)
	}
	tags, err := git(ctx, clone, "for-each-ref", "--merged=HEAD", "--sort=-version:refname", "--format=%(refname:short) %(*objectname) %(objectname)", "refs/tags/v*")
	if err != nil {
		return Release{}, err
	}
	last := pinned
	for line := range strings.SplitSeq(string(tags), "\n") {
		// An annotated tag has the commit first, another one has it alone.
		if words := strings.Fields(line); len(words) > 1 && words[1] != strings.TrimSpace(string(head)) {
			last = Release{strings.TrimPrefix(words[0], "v"), words[1]}
			break
		}
	}
	if _, err := git(ctx, clone, "cat-file", "-e", last.Commit+"^{commit}"); err != nil {
		shallow, _ := git(ctx, clone, "rev-parse", "--is-shallow-repository")
		if strings.TrimSpace(string(shallow)) == "true" {
			return last, fmt.Errorf("%w: the clone is shallow, and lacks %s (%s); git fetch --unshallow --tags brings it", ErrNoHistory, last.Version, last.Commit)
		}
		return last, fmt.Errorf("the whole history is here and lacks %s (%s), which package release takes for the last release: %w", last.Version, last.Commit, err)
	}
	return last, nil
}

// File returns a file of the release.
func (r Release) File(ctx context.Context, clone, path string) ([]byte, error) {
	return git(ctx, clone, "show", r.Commit+":"+path)
}

// Build writes the release's sources into a folder, and builds its command from them.
func (r Release) Build(ctx context.Context, clone, dir string) (binary string, err error) {
	sources, binary := filepath.Join(dir, "sources"), filepath.Join(dir, "landfall-"+r.Version)
	if err := os.MkdirAll(sources, 0o755); err != nil {
		return "", err
	}
	archive := filepath.Join(dir, "sources.tar")
	if _, err := git(ctx, clone, "archive", "--format=tar", "--output="+archive, r.Commit); err != nil {
		return "", err
	}
	if _, err := run(ctx, dir, "tar", "-xf", archive, "-C", sources); err != nil {
		return "", err
	}
	_, err = run(ctx, sources, "go", "build", "-trimpath", "-buildvcs=false", "-ldflags", "-X main.version="+r.Version, "-o", binary, "./tools/cmd/landfall")
	return binary, err
}

func git(ctx context.Context, dir string, args ...string) ([]byte, error) {
	return run(ctx, dir, "git", args...)
}

func run(ctx context.Context, dir, program string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir = dir
	var failure bytes.Buffer
	cmd.Stderr = &failure
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w: %s", program, args[0], err, strings.TrimSpace(failure.String()))
	}
	return out, nil
}
