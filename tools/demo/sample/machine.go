package sample

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

// ErrNoGo is returned if the machine lacks what the sample's steps need.
var ErrNoGo = errors.New("the sample monorepo is in Go, and there is no go command; install Go 1.26 or newer (https://go.dev/dl)")

// BuildCache is the folder in which Go keeps what it compiled, for all worktrees together: it goes by
// content. Without it every step would compile the standard library.
func BuildCache(ctx context.Context) (string, error) {
	return run(ctx, ".", nil, "env", "GOCACHE")
}

// Warm compiles the sample once, in a folder that is removed again, and links one test: the first time on a
// machine this takes as long as the standard library does.
func Warm(ctx context.Context, cache string) error {
	all, err := content()
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "landfall-sample-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	for name, text := range all {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			return err
		}
	}
	environment := []string{
		"GOCACHE=" + cache, "CGO_ENABLED=0", "GOENV=off", "GOFLAGS=-trimpath -buildvcs=false -mod=readonly", "GOGC=400", "GOPROXY=off", "GOTELEMETRY=off",
		"GOTOOLCHAIN=local", "GOWORK=off", "HOME=" + dir, "PATH=" + os.Getenv("PATH"),
	}
	if _, err := run(ctx, dir, environment, "build", "./..."); err != nil {
		return err
	}
	_, err = run(ctx, dir, environment, "test", "-count=1", "-vet=off", "-run=^$", "./lib/roman")
	return err
}

// run runs a go command; environment nil is this process's.
func run(ctx context.Context, dir string, environment []string, args ...string) (string, error) {
	if _, err := exec.LookPath("go"); err != nil {
		return "", ErrNoGo
	}
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir, cmd.Env = dir, environment
	var failure bytes.Buffer
	cmd.Stderr = &failure
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("go %s: %w: %s", args[0], err, strings.TrimSpace(failure.String()))
	}
	return strings.TrimSpace(string(out)), nil
}
