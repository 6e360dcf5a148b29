package gateway

import (
	"context"
	"errors"
	"fmt"

	"landfall.build/platform/gitrepo"
	"landfall.build/services/gateway/api"
	"landfall.build/services/gateway/view"
)

// maxDiffering is how many differences of revisions are worked out at a time.
const maxDiffering = 2

// Differ implements api.Differ. Commits that the mirror lacks are fetched: another gateway may have pinned them.
func (g *Gateway) Differ(ctx context.Context, name string, from, to view.Revision, maxBytes int) (api.Patch, error) {
	q := g.queues[name]
	if q == nil {
		return api.Patch{}, api.ErrUnknownQueue
	}
	select {
	case g.differing <- struct{}{}:
		defer func() { <-g.differing }()
	case <-ctx.Done():
		return api.Patch{}, api.ErrUnanswered
	}
	if _, err := q.mirror(ctx); err != nil {
		return api.Patch{}, fmt.Errorf("%w: %w", api.ErrUnreachable, err)
	}
	patch, err := differ(ctx, q.repository, from, to, maxBytes)
	if !errors.Is(err, gitrepo.ErrNoSuchCommit) {
		return patch, err
	}
	missing, err := q.repository.FetchSome(ctx, gitrepo.Wanted{Commits: []string{from.Base, from.Head, to.Base, to.Head}, Change: true})
	if err != nil {
		return api.Patch{}, fmt.Errorf("%w: %w", api.ErrUnreachable, err)
	}
	if err := lacking(missing); err != nil {
		return api.Patch{}, err
	}
	return differ(ctx, q.repository, from, to, maxBytes)
}

// lacking returns why revisions whose commits were not all fetched cannot be compared, nil if they can.
func lacking(missing gitrepo.Missing) error {
	for _, err := range missing {
		if errors.Is(err, gitrepo.ErrSlow) || errors.Is(err, gitrepo.ErrTooLarge) {
			return fmt.Errorf("%w: %w", api.ErrFetching, err)
		}
	}
	if len(missing) > 0 {
		return api.ErrCommitsGone
	}
	return nil
}

// differ compares two revisions without what the mainline between their bases changed: the older one is put on the base of the newer one
// first. Where that does not merge, their heads are compared.
func differ(ctx context.Context, r *gitrepo.Repo, from, to view.Revision, maxBytes int) (p api.Patch, err error) {
	var trees [4]string
	for i, commit := range []string{from.Base, from.Head, to.Base, to.Head} {
		if trees[i], err = r.TreeOf(ctx, commit); err != nil {
			return p, err
		}
	}
	old := trees[1]
	if trees[0] != trees[2] {
		moved, conflict, err := r.MergeTrees(ctx, trees[0], trees[2], trees[1])
		switch {
		case err != nil:
			return p, err
		case conflict != nil:
			p.WithMainline = true
		default:
			old = moved
		}
	}
	text, cut, err := r.Patch(ctx, old, trees[3], maxBytes)
	p.Text, p.Cut = text, cut
	return p, err
}
