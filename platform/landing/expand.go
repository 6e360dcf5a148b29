package landing

import (
	"context"
	"fmt"
)

// Expand turns the heads of a change, a stack in order from the mainline upwards, into
// its landing commits. mainline is a commit of the target branch; it only serves to find
// where the change begins, so the picks stay what they are when the mainline moves on.
//
// An error names the entry that it is about.
func Expand(ctx context.Context, repo Repository, strategy Strategy, mainline string, entries []string) ([]Pick, error) {
	switch strategy {
	case Squash, Rebase, Merge:
	default:
		return nil, fmt.Errorf("%w: merge strategy %q (squash, rebase or merge)", ErrInvalid, strategy)
	}
	if len(entries) == 0 {
		return nil, fmt.Errorf("%w: a change without a head", ErrInvalid)
	}
	if len(entries) > MaxPicks {
		return nil, fmt.Errorf("%w: %d entries, at most %d", ErrTooMany, len(entries), MaxPicks)
	}
	var picks []Pick
	for i, head := range entries {
		base, err := baseOf(ctx, repo, mainline, entries, i)
		if err != nil {
			return nil, err
		}
		if err := checkNotEmpty(ctx, repo, base, head); err != nil {
			return nil, err
		}
		if strategy != Rebase {
			picks = append(picks, Pick{Head: head, Base: base, Merge: strategy == Merge})
			continue
		}
		single, err := singleCommits(ctx, repo, base, head)
		if err != nil {
			return nil, err
		}
		if picks = append(picks, single...); len(picks) > MaxPicks {
			return nil, fmt.Errorf("%w: more than %d commits up to entry %s", ErrTooMany, MaxPicks, head)
		}
	}
	return picks, nil
}

// baseOf returns where an entry begins: at the head before it, or where the first one left the
// mainline.
func baseOf(ctx context.Context, repo Repository, mainline string, entries []string, i int) (string, error) {
	head := entries[i]
	landed, err := repo.IsAncestor(ctx, head, mainline)
	if err != nil {
		return "", err
	}
	if landed {
		return "", fmt.Errorf("entry %s: %w", head, ErrAlreadyIn)
	}
	if i > 0 {
		below := entries[i-1]
		stacked, err := repo.IsAncestor(ctx, below, head)
		if err != nil {
			return "", err
		}
		if !stacked {
			return "", fmt.Errorf("entry %s: %w, %s", head, ErrNotStacked, below)
		}
		return below, nil
	}
	base, err := repo.MergeBase(ctx, mainline, head)
	if err != nil {
		return "", err
	}
	if base == "" {
		return "", fmt.Errorf("entry %s: %w", head, ErrNoCommonBase)
	}
	return base, nil
}

func checkNotEmpty(ctx context.Context, repo Repository, base, head string) error {
	before, err := repo.TreeOf(ctx, base)
	if err != nil {
		return err
	}
	after, err := repo.TreeOf(ctx, head)
	if err != nil {
		return err
	}
	if before == after {
		return fmt.Errorf("entry %s: %w since %s", head, ErrEmpty, base)
	}
	return nil
}

// singleCommits returns one pick for each commit from base to head, which must follow each
// other in one line.
func singleCommits(ctx context.Context, repo Repository, base, head string) ([]Pick, error) {
	ids, err := repo.Commits(ctx, base, head)
	if err != nil {
		return nil, err
	}
	if len(ids) > MaxPicks {
		return nil, fmt.Errorf("%w: entry %s has %d commits, at most %d", ErrTooMany, head, len(ids), MaxPicks)
	}
	infos, err := repo.CommitInfos(ctx, ids)
	if err != nil {
		return nil, err
	}
	picks := make([]Pick, len(infos))
	for i, info := range infos {
		// With no merge commit above base, every commit has the one before it as its parent.
		if len(info.Parents) != 1 {
			return nil, fmt.Errorf("entry %s %w: %s", head, ErrMergeCommit, info.ID)
		}
		picks[i] = Pick{Head: info.ID, Base: info.Parents[0]}
	}
	return picks, nil
}
