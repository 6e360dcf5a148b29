package remote

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

const (
	// maxNamed is how many branches an error names.
	maxNamed = 8
	// branchesWait is how long a repository has to list its branches.
	branchesWait = 10 * time.Second
)

// CheckBranch returns an error if a repository (a path or URL) answers and does not have the branch. It says which there are.
func CheckBranch(ctx context.Context, repository, branch string) error {
	ctx, cancel := context.WithTimeout(ctx, branchesWait)
	defer cancel()
	out, err := ask(ctx, "", "ls-remote", "--heads", "--", repository)
	if err != nil {
		return nil // it may answer later
	}
	var there []string
	for line := range strings.Lines(out) {
		_, ref, _ := strings.Cut(strings.TrimSpace(line), "\t")
		there = append(there, strings.TrimPrefix(ref, "refs/heads/"))
	}
	switch {
	case slices.Contains(there, branch):
		return nil
	case len(there) == 0:
		return fmt.Errorf("%s has no commit yet; push one to %s first", repository, branch)
	}
	named := strings.Join(there[:min(len(there), maxNamed)], ", ")
	if more := len(there) - maxNamed; more > 0 {
		named += fmt.Sprintf(" and %d more", more)
	}
	return fmt.Errorf("%s has no branch %s, only %s; name one of them with --branch, or push %s first", repository, branch, named, branch)
}

// Ahead returns the commit of a clone's upstream's branch if the clone's own branch lacks it; "" if it has it, or if nobody answers.
func Ahead(ctx context.Context, clone, branch string) string {
	address := Upstream(ctx, clone)
	if address == "" {
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, branchesWait)
	defer cancel()
	ref := "refs/heads/" + branch
	out, err := ask(ctx, clone, "ls-remote", "--", address, ref)
	head, _, is := strings.Cut(out, "\t")
	if err != nil || !is {
		return ""
	}
	if _, err := ask(ctx, clone, "merge-base", "--is-ancestor", head, ref); err == nil {
		return ""
	}
	return head
}
