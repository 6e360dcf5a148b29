package gitrepo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"time"
)

// RemoteHead asks the remote itself for the commit at a branch (or a refs/… name).
// ErrNoBranch if it has none, ErrUnreachable if it does not answer.
func (r *Repo) RemoteHead(ctx context.Context, branch string) (string, error) {
	ref, err := branchRef(branch)
	if err != nil {
		return "", err
	}
	heads, err := r.remoteRefs(ctx, ref)
	if err != nil {
		return "", err
	}
	if id, ok := heads[ref]; ok {
		return id, nil
	}
	return "", fmt.Errorf("%w: %s at %s", ErrNoBranch, ref, r.shownRemote)
}

// RemoteRefs asks the remote itself for the commits at refs, all at once. The result has them by their full names, a
// commit for a tag that names one; it leaves out refs that the remote lacks and names that git does not allow.
// ErrUnreachable if it does not answer.
func (r *Repo) RemoteRefs(ctx context.Context, refs []string) (map[string]string, error) {
	at := make(map[string]string, len(refs))
	for len(refs) > 0 {
		var names []string
		for bytes := 0; len(refs) > 0 && bytes < maxNameBytes; refs = refs[1:] {
			if full, err := branchRef(refs[0]); err == nil && full == refs[0] {
				names = append(names, full, full+peeled)
				bytes += 2 * len(full)
			}
		}
		if len(names) == 0 {
			break
		}
		out, err := r.run(ctx, invocation{network: true, args: append([]string{"ls-remote", "--quiet", "--", r.remote}, names...)})
		if err != nil {
			return nil, unreachable(ctx, err)
		}
		// What a tag names follows the tag.
		for ref, id := range listedRefs(out) {
			at[strings.TrimSuffix(ref, peeled)] = id
		}
	}
	return at, nil
}

const (
	// maxNameBytes bounds the arguments of one git ls-remote, of which Linux takes two megabytes.
	maxNameBytes = 256 << 10
	peeled       = "^{}"
)

// remoteRefs asks the remote for refs by their full names.
func (r *Repo) remoteRefs(ctx context.Context, refs ...string) (map[string]string, error) {
	out, err := r.run(ctx, invocation{network: true, args: append([]string{"ls-remote", "--quiet", "--refs", "--", r.remote}, refs...)})
	if err != nil {
		return nil, unreachable(ctx, err)
	}
	heads := make(map[string]string)
	for ref, id := range listedRefs(out) {
		heads[ref] = id
	}
	return heads, nil
}

// listedRefs returns the lines of git ls-remote, in order. git matches the ends of names as well, so refs may be among them
// that nobody asked for.
func listedRefs(out []byte) iter.Seq2[string, string] {
	return func(yield func(ref, id string) bool) {
		for line := range strings.Lines(string(out)) {
			id, ref, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
			if ok && IsID(id) && !yield(ref, id) {
				return
			}
		}
	}
}

// unreachable marks a failed command as the remote's silence, unless it was us who ended
// it.
func unreachable(ctx context.Context, err error) error {
	if ctx.Err() != nil || errors.Is(err, ErrTooLarge) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrUnreachable, err)
}

// Push moves a branch of the remote from old to new if it is still at old: a
// compare-and-swap. old is "" for a branch that must not exist yet; otherwise new must
// descend from it. nil means that the branch is at new now, or was when the remote
// answered; it is nil too where somebody else had pushed the very same commit.
//
// ErrMoved and ErrRefused: nothing was pushed, and the head was read to see it. ErrUnreachable
// and any other error: it may have arrived or not; ask RemoteHead.
func (r *Repo) Push(ctx context.Context, branch, old, new string) error {
	ref, err := branchRef(branch)
	if err != nil {
		return err
	}
	if old != "" {
		descends, err := r.IsAncestor(ctx, old, new)
		if err != nil {
			return fmt.Errorf("push %s: %w", ref, err)
		}
		if !descends {
			return fmt.Errorf("%w: push %s: %s does not descend from %s", ErrInvalid, ref, new, old)
		}
	}
	return r.pushRef(ctx, ref, old, new)
}

// CheckPush returns why the remote would not take a push onto a branch: a rehearsal, in which the remote is asked for the
// right to write, and nothing is pushed. Rules that it applies to what is pushed, such as those of hooks, are not asked.
func (r *Repo) CheckPush(ctx context.Context, branch, head string) error {
	ref, err := branchRef(branch)
	if err != nil {
		return err
	}
	_, err = r.run(ctx, invocation{network: true, args: []string{
		"push", "--dry-run", "--porcelain", "--quiet", "--no-verify", "--", r.remote, head + ":" + ref,
	}})
	return err
}

// MoveBranch moves a branch from one commit to another, which need not descend from it, if it is still at the first. ref is its full
// name. Its errors are those of Push.
func (r *Repo) MoveBranch(ctx context.Context, ref, from, to string) error {
	if !strings.HasPrefix(ref, "refs/heads/") || from == "" || to == "" {
		return fmt.Errorf("%w: move %q from %q to %q", ErrInvalid, clip(ref), clip(from), clip(to))
	}
	return r.pushRef(ctx, ref, from, to)
}

// pushRef is Push for any ref, by its full name, to any object: new need not descend
// from old, and "" deletes the ref.
func (r *Repo) pushRef(ctx context.Context, ref, old, new string) error {
	full, err := branchRef(ref)
	if err != nil || full != ref {
		return fmt.Errorf("%w: %q is not a full ref name (refs/…)", ErrInvalid, clip(ref))
	}
	for what, id := range map[string]string{"old": old, "new": new} {
		if id == "" {
			continue
		}
		if err := checkID(what+" commit", id); err != nil {
			return err
		}
	}
	if old == "" && new == "" {
		return fmt.Errorf("%w: push %s: neither an old nor a new commit is given", ErrInvalid, ref)
	}
	if new != "" {
		got, err := r.readers.objects(ctx, []string{new}, 0)
		if err != nil {
			return err
		}
		if got[0].kind == "" {
			return fmt.Errorf("%w: %s to push to %s", ErrNoSuchCommit, new, ref)
		}
	}
	out, err := r.run(ctx, invocation{network: true, push: true, args: []string{
		"push", "--porcelain", "--quiet", "--no-verify", "--no-follow-tags", "--no-signed", "--recurse-submodules=no",
		"--force-with-lease=" + ref + ":" + old, "--", r.remote, new + ":" + ref,
	}})
	r.log.Info("pushed", "ref", ref, "old", old, "new", new, "error", err)
	if err == nil {
		return nil
	}
	return r.explainPush(ctx, ref, old, new, string(out), err)
}

// explainPush distinguishes a push that changed nothing from one whose outcome is unknown, by the
// status line that git prints once the remote has answered: "!<tab>refs<tab>[kind] (why)".
func (r *Repo) explainPush(ctx context.Context, ref, old, new, out string, failure error) error {
	var summary string
	for line := range strings.Lines(out) {
		if fields := strings.SplitN(strings.TrimSuffix(line, "\n"), "\t", 3); len(fields) == 3 && fields[0] == "!" {
			summary = fields[2]
		}
	}
	refused := refusal(summary, failure)
	switch {
	case strings.HasPrefix(summary, "[rejected]"):
		return fmt.Errorf("%w: %s is not at %q any more: %s", ErrMoved, ref, old, summary)
	case refused == nil:
		return fmt.Errorf("push %s: %w", ref, unreachable(ctx, failure))
	}
	summary = cmp.Or(summary, "[no access]")
	// Of two pushes that arrive together the loser meets the winner's lock, perhaps just
	// before the winner's value is there to be read.
	contended := strings.Contains(summary, "lock") || strings.Contains(summary, "failed to update ref")
	for attempt := 0; ; attempt++ {
		head, err := r.RemoteHead(ctx, ref)
		if errors.Is(err, ErrNoBranch) {
			head, err = "", nil
		}
		switch {
		case err == nil && head == new:
			return nil
		case err == nil && head != old:
			return fmt.Errorf("%w: %s is at %q: %s", ErrMoved, ref, head, summary)
		case err != nil:
			return fmt.Errorf("push %s: %s, and the branch cannot be read then: %w", ref, summary, err)
		case !contended || attempt == 5:
			refused.Err = fmt.Errorf("%w: %s: %s: %w", ErrRefused, ref, summary, failure)
			return refused
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("push %s: %s: %w", ref, summary, context.Cause(ctx))
		case <-time.After(50 * time.Millisecond << attempt):
		}
	}
}
