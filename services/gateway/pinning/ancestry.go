package pinning

import (
	"context"
	"fmt"

	"landfall.build/engine/admission"
	"landfall.build/platform/gitrepo"
	"landfall.build/platform/landing"
)

// maxLine bounds how long a line of single parents is followed before git itself is asked.
const maxLine = 200

// ancestry answers questions of descent from the mainline's window and from the commits themselves where
// that proves the answer, and asks git where it does not.
type ancestry struct {
	landing.Repository
	window  *window
	commits *commitReader
}

// IsAncestor implements landing.Repository.
func (a *ancestry) IsAncestor(ctx context.Context, ancestor, descendant string) (bool, error) {
	if ancestor == descendant {
		return true, nil
	}
	if descendant == a.window.head {
		if a.window.members[ancestor] {
			return true, nil
		}
		if _, met, err := a.line(ctx, ancestor, ""); err != nil || met {
			return false, err
		}
		return a.Repository.IsAncestor(ctx, ancestor, descendant)
	}
	line, _, err := a.line(ctx, descendant, ancestor)
	if err != nil {
		return false, err
	}
	if len(line) > 0 && line[len(line)-1] == ancestor {
		return true, nil
	}
	return a.Repository.IsAncestor(ctx, ancestor, descendant)
}

// MergeBase implements landing.Repository.
func (a *ancestry) MergeBase(ctx context.Context, x, y string) (string, error) {
	if x == a.window.head {
		line, met, err := a.line(ctx, y, "")
		if err != nil {
			return "", err
		}
		if met {
			return line[len(line)-1], nil
		}
	}
	return a.Repository.MergeBase(ctx, x, y)
}

// Commits implements landing.Repository.
func (a *ancestry) Commits(ctx context.Context, base, head string) ([]string, error) {
	line, _, err := a.line(ctx, head, base)
	if err != nil {
		return nil, err
	}
	if n := len(line); n > 0 && line[n-1] == base {
		out := make([]string, 0, n-1)
		for i := n - 2; i >= 0; i-- {
			out = append(out, line[i])
		}
		return out, nil
	}
	return a.Repository.Commits(ctx, base, head)
}

// CommitInfos implements landing.Repository, from what was read already.
func (a *ancestry) CommitInfos(ctx context.Context, ids []string) ([]gitrepo.Commit, error) {
	out := make([]gitrepo.Commit, len(ids))
	for i, id := range ids {
		info, err := a.commits.get(ctx, id)
		if err != nil {
			return nil, err
		}
		out[i] = info
	}
	return out, nil
}

// TreeOf implements landing.Repository, from what was read already.
func (a *ancestry) TreeOf(ctx context.Context, commit string) (string, error) {
	info, err := a.commits.get(ctx, commit)
	return info.Tree, err
}

// below returns the commits between a head and the base that it has in common with the mainline, the nearest first. It stops at a
// merge, and after maxLine commits.
func (a *ancestry) below(ctx context.Context, head, base string) ([]string, error) {
	line, _, err := a.line(ctx, head, base)
	if err != nil {
		return nil, err
	}
	if n := len(line); line[n-1] == base || a.window.members[line[n-1]] {
		line = line[:n-1]
	}
	return line[min(1, len(line)):], nil
}

// line follows single parents from a commit, itself included, down to a stop or to the first member of
// the window (met). It ends early at a merge, a root, or after maxLine commits.
func (a *ancestry) line(ctx context.Context, from, stop string) (line []string, met bool, err error) {
	for id := from; ; {
		line = append(line, id)
		if a.window.members[id] {
			return line, true, nil
		}
		if id == stop || len(line) > maxLine {
			return line, false, nil
		}
		info, err := a.commits.get(ctx, id)
		if err != nil {
			return nil, false, err
		}
		if len(info.Parents) != 1 {
			return line, false, nil
		}
		id = info.Parents[0]
	}
}

// commitReader remembers the commits that one request read.
type commitReader struct {
	mirror Mirror
	known  map[string]gitrepo.Commit
	// bytes is how long they are.
	bytes int
}

// mostRead bounds the commits of a request, in bytes: pinsAtOnce of them are looked at at a time. In a pack one with a message of 64 MiB
// takes a few bytes.
const mostRead = 16 << 20

func (c *commitReader) get(ctx context.Context, id string) (gitrepo.Commit, error) {
	if info, ok := c.known[id]; ok {
		return info, nil
	}
	infos, err := c.mirror.CommitInfos(ctx, []string{id})
	if err != nil {
		return gitrepo.Commit{}, err
	}
	info := infos[0]
	c.known[id] = info
	c.bytes += len(info.Message) + len(info.AuthorName) + len(info.AuthorEmail) + len(info.Encoding) + len(info.Parents)*len(id)
	if c.bytes > mostRead {
		return gitrepo.Commit{}, &admission.Refusal{Code: admission.BadRequest, Message: fmt.Sprintf("The commits that would land have messages and names of more than %d MiB together; shorten them, or land them in several changes.", mostRead>>20)}
	}
	return info, nil
}
