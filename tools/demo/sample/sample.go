// Package sample makes the monorepo that the demo and the end-to-end tests land changes on: a small bookshop
// in Go of some 30 targets, one of which is slow to test, and the changes of eight people, each with what has
// to become of it.
//
// Everything is made from scratch and always the same: the ids of all commits are.
package sample

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Branch is the mainline.
const Branch = "main"

// Repository is the sample in a bare git repository.
type Repository struct {
	// Dir is the bare repository.
	Dir string
	// Head is the mainline to begin with; every change is based on it.
	Head string
	// Changes are all that are to be landed, with the ids of their commits set.
	Changes []Change
	// Direct is a commit on Head that somebody pushes past the queue, rebased.
	Direct Change
}

// Find returns a change by its name.
func (r *Repository) Find(name string) *Change {
	for i := range r.Changes {
		if r.Changes[i].Name == name {
			return &r.Changes[i]
		}
	}
	return nil
}

// Restrict leaves out every change but those named. What they require must be among them.
func (r *Repository) Restrict(names []string) {
	r.Changes = slices.DeleteFunc(r.Changes, func(c Change) bool { return !slices.Contains(names, c.Name) })
}

// Fewer leaves out changes until about n are left: those that the scenario needs, others spread over all kinds, and what they
// require.
func (r *Repository) Fewer(n int) {
	keep := map[string]bool{}
	var add func(name string)
	add = func(name string) {
		keep[name] = true
		for _, required := range r.Find(name).Requires {
			add(required)
		}
	}
	for _, name := range []string{Slow, Withdrawn, Resubmitted, Hotfix} {
		add(name)
	}
	for at := 0; at < n && len(keep) < n; at++ {
		add(r.Changes[at*len(r.Changes)/n].Name)
	}
	r.Restrict(slices.Collect(maps.Keys(keep)))
}

// Prepared lists the ids of all commits of changes.
func (r *Repository) Prepared() []string {
	var out []string
	for _, c := range append(r.Changes[:len(r.Changes):len(r.Changes)], r.Direct) {
		for _, commit := range append(c.Commits[:len(c.Commits):len(c.Commits)], c.Better...) {
			out = append(out, commit.ID)
		}
	}
	return out
}

// Make makes the bare repository in a folder, which must not be there yet.
func Make(ctx context.Context, dir string) (*Repository, error) {
	if _, err := os.Stat(dir); err == nil {
		return nil, fmt.Errorf("%s is there already; the sample needs a place of its own", dir)
	}
	r := &Repository{Dir: dir, Direct: direct()}
	for _, changes := range [][]Change{slow(), independent(), textual(), breaking(), failing(), units()} {
		r.Changes = append(r.Changes, changes...)
	}
	s := &stream{}
	if err := r.describe(s); err != nil {
		return nil, err
	}
	if _, err := git(ctx, filepath.Dir(dir), nil, "init", "--quiet", "--bare", "--initial-branch="+Branch, dir); err != nil {
		return nil, err
	}
	marks := filepath.Join(dir, "marks")
	if _, err := git(ctx, dir, &s.text, "fast-import", "--quiet", "--done", "--export-marks="+marks); err != nil {
		return nil, err
	}
	return r, r.readMarks(marks, s)
}

// describe writes all commits into the stream.
func (r *Repository) describe(s *stream) error {
	base, err := s.mainline(&r.Head)
	if err != nil {
		return err
	}
	for i := range r.Changes {
		c := &r.Changes[i]
		if err := s.branch("refs/heads/"+c.Branch(), base, c.Author, c.Commits); err != nil {
			return fmt.Errorf("change %s: %w", c.Name, err)
		}
		if err := s.branch("refs/prepared/"+c.Name, base, c.Author, c.Better); err != nil {
			return fmt.Errorf("change %s, done better: %w", c.Name, err)
		}
	}
	if err := s.branch("refs/prepared/direct", base, r.Direct.Author, r.Direct.Commits); err != nil {
		return fmt.Errorf("the direct push: %w", err)
	}
	s.text.WriteString("done\n")
	return nil
}

// readMarks sets the commits' ids.
func (r *Repository) readMarks(file string, s *stream) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	set := 0
	for _, line := range strings.Fields(strings.ReplaceAll(string(text), ":", "")) {
		// Lines are ":1 <id>": numbers and ids take turns.
		if len(line) < 40 {
			if set, err = strconv.Atoi(line); err != nil || set < 1 || set > len(s.ids) {
				return fmt.Errorf("git's marks have %q", line)
			}
			continue
		}
		*s.ids[set-1] = line
	}
	for i, id := range s.ids {
		if *id == "" {
			return fmt.Errorf("git did not say which commit has mark %d", i+1)
		}
	}
	return os.Remove(file)
}

// Resubmit moves a change's branch to its better commits, as a push of its author would.
func (r *Repository) Resubmit(ctx context.Context, c *Change) error {
	_, err := git(ctx, r.Dir, nil, "update-ref", "refs/heads/"+c.Branch(), c.Better[len(c.Better)-1].ID, c.Commits[len(c.Commits)-1].ID)
	return err
}

// git runs a git that sees no configuration of this machine or user.
func git(ctx context.Context, dir string, in *bytes.Buffer, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir = dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.DevNull, "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=" + os.DevNull, "LC_ALL=C"}
	if in != nil {
		cmd.Stdin = in
	}
	var failure bytes.Buffer
	cmd.Stderr = &failure
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w: %s", args[0], err, strings.TrimSpace(failure.String()))
	}
	return strings.TrimSpace(string(out)), nil
}
