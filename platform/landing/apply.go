package landing

import (
	"context"
	"fmt"
	"slices"

	"landfall.build/platform/gitrepo"
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

// PairConflict is why git does not make one tree of two changes, whichever lands first.
type PairConflict struct {
	// Conflict is that of one change after the other; its Pick is of the one behind. Nil where both orders merge, but to
	// trees that differ: one change takes back what the other does.
	Conflict *Conflict
	// Behind is the change that does not merge after the other: 0 for the first, 1 for the second.
	Behind int
	// Trees are what both make together with the first change ahead, and with the second.
	Trees [2]string
}

// ApplyBoth merges two changes with a tree in both orders, since git need not find the same in them (M5). Nil: they make
// one tree, or one of them does not even merge alone.
func ApplyBoth(ctx context.Context, repo Repository, onto string, first, second []Pick) (*PairConflict, error) {
	pair := &PairConflict{}
	for i, order := range [2][2][]Pick{{first, second}, {second, first}} {
		trees, conflict, err := ApplyTree(ctx, repo, onto, slices.Concat(order[0], order[1]))
		if err != nil {
			return nil, err
		}
		alone := len(order[0])
		switch {
		case conflict != nil && conflict.Pick < alone:
			return nil, nil
		case conflict != nil && pair.Conflict == nil:
			conflict.Pick -= alone
			pair.Conflict, pair.Behind = conflict, 1-i
		case conflict == nil:
			pair.Trees[i] = append([]string{onto}, trees...)[len(trees)]
		}
	}
	if pair.Conflict == nil && pair.Trees[0] == pair.Trees[1] {
		return nil, nil
	}
	return pair, nil
}
