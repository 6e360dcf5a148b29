// Package remote tells what a repository on the command line is: one of this machine or one behind a URL, on which branch
// it lands, and whether git would take a push.
package remote

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// FallbackBranch is the mainline of a repository without a default branch.
const FallbackBranch = "main"

// Local returns the absolute path of a repository on this machine, "" for one that git reaches by a URL.
// A path without a repository is an error: git would try it forever.
func Local(ctx context.Context, url string) (string, error) {
	if _, err := os.Stat(url); err != nil {
		host, _, colon := strings.Cut(url, ":")
		if colon && !strings.Contains(host, "/") { // scheme://…, host:path
			return "", nil
		}
		return "", fmt.Errorf("there is no repository %s: %w", url, err)
	}
	path, err := filepath.Abs(url)
	if err != nil {
		return "", err
	}
	if _, err := ask(ctx, path, "rev-parse", "--git-dir"); err != nil {
		return "", fmt.Errorf("%s is not a git repository: %w", url, err)
	}
	return path, nil
}

// presentBranch returns the branch that a local repository's HEAD is on.
func presentBranch(ctx context.Context, path string) string {
	branch, err := ask(ctx, path, "symbolic-ref", "--quiet", "--short", "HEAD")
	if err != nil || branch == "" {
		return FallbackBranch
	}
	return branch
}

// Mainline returns the branch that a local repository is taken to land on: what HEAD is on; but a clone is on
// whatever its owner works on, so there main comes first where there is one.
func Mainline(ctx context.Context, path string) string {
	if bare, err := ask(ctx, path, "rev-parse", "--is-bare-repository"); err == nil && bare != "true" {
		if _, err := ask(ctx, path, "rev-parse", "--verify", "--quiet", "refs/heads/"+FallbackBranch); err == nil {
			return FallbackBranch
		}
	}
	return presentBranch(ctx, path)
}

// CheckPush returns why a local repository would refuse every landing on a branch: git takes no push onto the
// branch that a clone has checked out.
func CheckPush(ctx context.Context, path, branch string) error {
	if bare, err := ask(ctx, path, "rev-parse", "--is-bare-repository"); err != nil || bare == "true" {
		return err
	}
	if presentBranch(ctx, path) != branch {
		return nil
	}
	rule, _ := ask(ctx, path, "config", "receive.denyCurrentBranch") // not set: refused
	if slices.Contains([]string{"ignore", "warn", "updateinstead", "false"}, strings.ToLower(rule)) {
		return nil
	}
	return fmt.Errorf("%s has %s checked out, and git refuses pushes onto that; name a bare repository, or let the checkout follow: git -C %s config receive.denyCurrentBranch updateInstead", path, branch, path)
}

func ask(ctx context.Context, directory string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir = directory
	cmd.Env = append(os.Environ(), "GIT_TERMINAL_PROMPT=0", "LC_ALL=C")
	out, err := cmd.Output()
	var failed *exec.ExitError
	if errors.As(err, &failed) && len(failed.Stderr) > 0 {
		return "", errors.New(strings.TrimSpace(string(failed.Stderr)))
	}
	return strings.TrimSpace(string(out)), err
}

// Root returns the root of the working folder that a path of a repository is in, the path itself in a bare one.
func Root(ctx context.Context, path string) string {
	if root, err := ask(ctx, path, "rev-parse", "--show-toplevel"); err == nil && root != "" {
		return root
	}
	return path
}

// Upstream returns where changes of a clone go: its remote origin, or its only one; "" if it has neither.
func Upstream(ctx context.Context, clone string) string {
	names, _ := ask(ctx, clone, "remote")
	name := "origin"
	if all := strings.Fields(names); len(all) == 1 {
		name = all[0]
	}
	address, err := ask(ctx, clone, "remote", "get-url", name)
	if err != nil {
		return ""
	}
	if host, _, colon := strings.Cut(address, ":"); address != "" && (!colon || strings.Contains(host, "/")) && !filepath.IsAbs(address) {
		return filepath.Join(clone, address)
	}
	return address
}

// Same reports whether a URL or path of a configuration means a repository on the command line: the same one, or the one that it
// is a clone of.
func Same(ctx context.Context, configured, given string) bool {
	if configured == given {
		return true
	}
	path, err := Local(ctx, given)
	if err != nil || path == "" {
		return false
	}
	configured = plainAddress(configured)
	return configured == plainAddress(path) || configured == plainAddress(Upstream(ctx, path))
}

// plainAddress returns an address without a user's name and password and without the ends that git takes or leaves.
func plainAddress(address string) string {
	if parsed, err := url.Parse(address); err == nil && parsed.User != nil && strings.HasPrefix(parsed.Scheme, "http") {
		parsed.User = nil
		address = parsed.String()
	}
	return strings.TrimSuffix(strings.TrimRight(address, "/"), ".git")
}
