package landing

import (
	"context"
	"fmt"

	"landfall.build/services/gitrepo"
)

// Conflict is a pick that does not merge.
type Conflict struct {
	Pick int // index of the first pick that does not merge
	*gitrepo.Conflict
}

// ApplyTree puts picks on a tree, one after the other, and returns the tree after each.
// On a conflict it returns the trees of the picks before it.
func ApplyTree(ctx context.Context, repo Repository, onto string, picks []Pick) (trees []string, conflict *Conflict, err error) {
	current := onto
	for i, pick := range picks {
		base, err := repo.TreeOf(ctx, pick.Base)
		if err != nil {
			return nil, nil, fmt.Errorf("base of landing commit %d: %w", i+1, err)
		}
		head, err := repo.TreeOf(ctx, pick.Head)
		if err != nil {
			return nil, nil, fmt.Errorf("head of landing commit %d: %w", i+1, err)
		}
		next, inConflict, err := repo.MergeTrees(ctx, base, current, head)
		if err != nil {
			return nil, nil, fmt.Errorf("landing commit %d: %w", i+1, err)
		}
		if inConflict != nil {
			return trees, &Conflict{Pick: i, Conflict: inConflict}, nil
		}
		trees = append(trees, next)
		current = next
	}
	return trees, nil, nil
}
