package gitrepo

import (
	"context"
	"fmt"
	"strconv"
	"strings"
)

// Resolve returns the id of the commit that a name denotes in the mirror, as of the last
// Fetch: a full id, a ref of the remote (refs/heads/x, refs/pull/7/head), a branch, a
// tag, or the beginning of an id (at least 4 digits, and only one commit has it).
// ErrNoSuchCommit if there is none.
func (r *Repo) Resolve(ctx context.Context, name string) (string, error) {
	var candidates []string
	switch {
	case IsID(name):
		candidates = []string{name}
	case checkRefName(name) != nil:
		return "", checkRefName(name)
	case strings.HasPrefix(name, "refs/"):
		candidates = []string{mirrorRef(name)}
	default:
		candidates = []string{remoteHeads + name, remoteTags + name}
		if isHex(name) && len(name) >= minAbbreviate && len(name) < idLength {
			candidates = append(candidates, name)
		}
	}
	for i := range candidates {
		candidates[i] += "^{commit}"
	}
	got, err := r.readers.objects(ctx, candidates, 0)
	if err != nil {
		return "", err
	}
	for _, answer := range got {
		if answer.kind == "commit" {
			return answer.id, nil
		}
	}
	return "", fmt.Errorf("%w: %q in the mirror of %s", ErrNoSuchCommit, clip(name), r.shownRemote)
}

// IsAncestor reports whether ancestor is descendant itself or one of its ancestors. Both are full
// ids of commits of the mirror.
func (r *Repo) IsAncestor(ctx context.Context, ancestor, descendant string) (bool, error) {
	if err := r.checkCommits(ctx, ancestor, descendant); err != nil {
		return false, err
	}
	if ancestor == descendant {
		return true, nil
	}
	_, err := r.git(ctx, "merge-base", "--is-ancestor", ancestor, descendant)
	if exitCode(err) == 1 {
		return false, nil
	}
	return err == nil, err
}

// MergeBase returns the best common ancestor of two commits, "" if they have none. Where
// there are several (criss-cross merges) it is git's first.
func (r *Repo) MergeBase(ctx context.Context, a, b string) (string, error) {
	if err := r.checkCommits(ctx, a, b); err != nil {
		return "", err
	}
	out, err := r.git(ctx, "merge-base", a, b)
	if exitCode(err) == 1 {
		return "", nil
	}
	return strings.TrimSpace(string(out)), err
}

// checkCommits returns ErrNoSuchCommit for a missing commit, which a caller can fetch; any other error is a failing git.
func (r *Repo) checkCommits(ctx context.Context, ids ...string) error {
	for _, id := range ids {
		if err := checkID("commit", id); err != nil {
			return err
		}
	}
	got, err := r.readers.objects(ctx, ids, 0)
	if err != nil {
		return err
	}
	for i, answer := range got {
		if answer.kind != "commit" {
			return fmt.Errorf("%w: %s is not in the mirror of %s", ErrNoSuchCommit, ids[i], r.shownRemote)
		}
	}
	return nil
}

// FirstParents lists the mainline from the commit after `from` to `to`, oldest first.
// ErrNotFirstParent if from is not on it, ErrTooLarge if there are more than limit. With
// from "" it is the newest `limit` commits up to to.
func (r *Repo) FirstParents(ctx context.Context, from, to string, limit int) ([]string, error) {
	ids := []string{to}
	args := []string{"rev-list", "--first-parent", "--parents", "--max-count=" + strconv.Itoa(limit+1), to}
	if limit <= 0 {
		return nil, fmt.Errorf("%w: limit %d of a listing", ErrInvalid, limit)
	}
	if from != "" {
		ids = append(ids, from)
	}
	if err := r.checkCommits(ctx, ids...); err != nil {
		return nil, err
	}
	if from == to {
		return nil, nil
	}
	out, err := r.git(ctx, args...)
	if err != nil {
		return nil, err
	}
	var chain []string // newest first
	next := to
	for line := range strings.Lines(string(out)) {
		fields := strings.Fields(line)
		if len(chain) == limit || len(fields) == 0 || fields[0] != next {
			break
		}
		chain = append(chain, next)
		if next = ""; len(fields) > 1 {
			next = fields[1]
		}
		if next == from || next == "" {
			break
		}
	}
	if from != "" && next != from {
		if next != "" && len(chain) == limit {
			if ahead, err := r.IsAncestor(ctx, from, next); err != nil || ahead {
				return nil, fmt.Errorf("more than %d commits between %s and %s: %w", limit, from, to, orTooLarge(err))
			}
		}
		return nil, fmt.Errorf("%w: %s of %s", ErrNotFirstParent, from, to)
	}
	return reversed(chain), nil
}

func orTooLarge(err error) error {
	if err != nil {
		return err
	}
	return ErrTooLarge
}

func reversed(ids []string) []string {
	for i, j := 0, len(ids)-1; i < j; i, j = i+1, j-1 {
		ids[i], ids[j] = ids[j], ids[i]
	}
	return ids
}

// maxCommits bounds Commits: what one change may consist of, with room.
const maxCommits = 10_000

// Commits lists the commits that head has and base has not, parents before children.
// ErrTooLarge above 10,000.
func (r *Repo) Commits(ctx context.Context, base, head string) ([]string, error) {
	if err := r.checkCommits(ctx, base, head); err != nil {
		return nil, err
	}
	out, err := r.git(ctx, "rev-list", "--topo-order", "--max-count="+strconv.Itoa(maxCommits+1), head, "^"+base)
	if err != nil {
		return nil, err
	}
	ids := strings.Fields(string(out))
	if len(ids) > maxCommits {
		return nil, fmt.Errorf("more than %d commits between %s and %s: %w", maxCommits, base, head, ErrTooLarge)
	}
	return reversed(ids), nil
}
