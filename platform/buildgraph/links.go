package buildgraph

import (
	"context"
	"fmt"

	"landfall.build/platform/gitrepo"
)

// maxLink is the longest target of a symbolic link that a file system takes, in bytes.
const maxLink = 4095

// checkLinks checks the symbolic links that a tree has and the base has not: one without a target, or with one
// that is too long, cannot be checked out, and whoever builds the tree would be blamed for that. The error is
// gitrepo.ErrBadObject or gitrepo.ErrTooLarge then.
func checkLinks(ctx context.Context, repo Repository, base, tree string) error {
	if base == tree {
		return nil
	}
	entries, err := repo.Tree(ctx, tree)
	if err != nil {
		return err
	}
	var links []gitrepo.Entry
	for _, e := range entries {
		if e.Kind == gitrepo.Symlink {
			links = append(links, e)
		}
	}
	if len(links) == 0 {
		return nil
	}
	there, err := repo.Tree(ctx, base)
	if err != nil {
		return nil // the base itself is at fault, which its own analysis says
	}
	known := map[string]bool{}
	for _, e := range there {
		if e.Kind == gitrepo.Symlink {
			known[e.Object] = true
		}
	}
	for _, e := range links {
		if known[e.Object] {
			continue
		}
		target, err := repo.Blob(ctx, e.Object, maxLink)
		if err != nil {
			return fmt.Errorf("the link %q: %w", e.Path, err)
		}
		if len(target) == 0 {
			return fmt.Errorf("%w: the link %q is empty", gitrepo.ErrBadObject, e.Path)
		}
	}
	return nil
}
